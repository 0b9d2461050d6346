// SPDX-License-Identifier: MIT
// `vouch requeue`: gives one dead entry a successor.
#pragma once

#include <cstdio>

#include <vouch/vouch.hpp>

#include "arguments.hpp"
#include "confirm.hpp"
#include "entry_id.hpp"
#include "json.hpp"
#include "output.hpp"
#include "sagas.hpp"

namespace tool {

template <class Database>
int requeue(Database& in, const arguments& with) {
    const auto id = entry_id_of(with);
    if (with.resume && with.afresh) {
        throw bad_usage("requeue takes --resume or --afresh, not both");
    }
    auto& store = in.store();
    const auto found = store.find(id);
    if (!found) {
        return report(with, vouch::verdict::unknown, {}, {}, {});
    }
    const bool is_saga = sagas::is_saga(*found);
    if (is_saga && !with.resume && !with.afresh) {
        std::fprintf(stderr,
                     "vouch: refused: the entry is a saga; --resume continues it, --afresh repeats all its steps\n");
        return refused;
    }
    if (is_saga && with.afresh && !is_confirmed(with, "repeat all steps of saga " + with.entry_id)) {
        return refused;
    }
    const vouch::outbox outbox(store);
    const auto fresh = outbox.fresh_id();
    const auto got = vouch::transact(store, [&](auto& tx) {
        return with.resume ? vouch::resume(tx, {.dead = id, .successor = fresh, .now = outbox.now()})
               : is_saga   ? sagas::requeue_saga(tx, {.dead = id, .successor = fresh, .now = outbox.now()})
                           : vouch::requeue(tx, {.dead = id, .successor = fresh, .now = outbox.now()});
    });
    using kind = vouch::receipt::kind;
    if (with.json) {
        print(json_object{}.text("receipt", name_of(got.what)).id("id", got.id).str() + "\n");
    } else if (got.what == kind::refused) {
        std::fprintf(stderr, "vouch: refused: only a dead entry without a parent can be requeued\n");
    } else {
        print((got.what == kind::inserted ? "the successor is " : "the entry already has a successor: ") +
              to_string(got.id) + "\n");
    }
    return got.what == kind::refused ? refused : done;
}

} // namespace tool
