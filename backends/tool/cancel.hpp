// SPDX-License-Identifier: MIT
// `vouch cancel`: ends an entry as dead, or asks a saga to compensate.
#pragma once

#include <vouch/vouch.hpp>

#include "arguments.hpp"
#include "confirm.hpp"
#include "entry_id.hpp"
#include "output.hpp"
#include "sagas.hpp"

namespace tool {

template <class Database>
int cancel(Database& in, const arguments& with) {
    const auto id = entry_id_of(with);
    auto& store = in.store();
    const auto found = store.find(id);
    if (!found) {
        return report(with, vouch::verdict::unknown, {}, {}, {});
    }
    const auto now = vouch::system_now();
    if (sagas::is_saga(*found) && !with.abandon) {
        if (!is_confirmed(with, "ask saga " + with.entry_id + " to compensate")) {
            return refused;
        }
        const auto v = vouch::transact(store, [&](auto& tx) { return sagas::request_cancel(tx, id, now); });
        return report(with, v, "the saga was asked to compensate", "the saga was already asked", "the saga has ended");
    }
    if (!is_confirmed(with, "end " + with.entry_id + " (" + plain(found->topic) + ") as dead")) {
        return refused;
    }
    const auto v = vouch::transact(store, [&](auto& tx) { return tx.cancel(id, "cancelled", now); });
    return report(with, v, "the entry is dead", "the entry was already dead",
                  "a worker holds the entry, or it has succeeded; `show` tells which");
}

} // namespace tool
