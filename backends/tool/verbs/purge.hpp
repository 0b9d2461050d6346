// SPDX-License-Identifier: MIT
// `vouch purge`: removes ended entries of a queue.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>

#include <vouch/vouch.hpp>

#include "../any_store.hpp"
#include "../arguments.hpp"
#include "../confirm.hpp"
#include "../database.hpp"
#include "../interrupt.hpp"
#include "../json.hpp"
#include "../output.hpp"
#include "../search.hpp"

namespace tool {

/// How many entries a purge may remove at most: those that live entries need are kept.
[[nodiscard]] inline std::size_t purgeable(database& in, const arguments& with) {
    auto wide = with;
    wide.scan = with.has_scan ? with.scan : UINT64_MAX;
    const auto& stored = in.stored();
    const filter by(in, wide);
    search all(stored, by);
    std::size_t out = 0;
    for (auto e = all.next(); e; e = all.next()) {
        out += is_terminal(e->state) ? 1U : 0U;
    }
    all.remark();
    return out;
}

/// Removes entries in small commits, so that workers can write in between.
[[nodiscard]] inline std::size_t purge_all(any_store& store, const arguments& with, vouch::time_point before) {
    constexpr std::size_t at_once = 500;
    const auto counts = store.counts(with.queue);
    auto unseen = counts[vouch::state::succeeded] + counts[vouch::state::dead];
    std::size_t gone = 0;
    for (bool more = true; more && was_interrupted == 0;) {
        const auto now_gone = vouch::transact(store, [&](auto& tx) {
            return tx.purge({.queue = with.queue,
                             .before = before,
                             .limit = at_once,
                             .state = with.state ? std::optional(with.state->state) : std::nullopt});
        });
        gone += now_gone;
        unseen -= std::min(unseen, at_once); // each call looks at at least this many
        more = now_gone == at_once || unseen > 0;
    }
    return gone;
}

inline int purge(database& in, const arguments& with) {
    if (with.queue.empty() || !with.older_than) {
        throw bad_usage("purge needs --queue and --older-than");
    }
    if (with.state && (vouch::is_live(with.state->state) || with.state->is_compensated)) {
        throw bad_usage("purge removes only ended entries: --state must be succeeded or dead");
    }
    const auto before = vouch::purge_rule::after(*with.older_than).before(vouch::system_now());
    const auto counted = std::to_string(purgeable(in, with));
    const auto what = "permanently remove at most " + counted + ' ' +
                      (with.state ? std::string(name_of(with.state->state)) : std::string("ended")) +
                      " entries of queue " + plain(with.queue);
    if (with.dry_run) {
        print(is_json(with) ? text_of(json{{"matched", std::stoull(counted)}, {"dry_run", true}}) + "\n"
                            : "would " + what + "\n");
        return done;
    }
    if (!is_confirmed(with, what)) {
        return refused;
    }
    catch_interrupts();
    const auto gone = purge_all(in.store(), with, *before);
    print(is_json(with) ? text_of(json{{"purged", gone}}) + "\n" : std::to_string(gone) + " removed\n");
    if (was_interrupted != 0) {
        say("interrupted; the same command does the rest");
        return refused;
    }
    return done;
}

} // namespace tool
