// SPDX-License-Identifier: MIT
// `vouch purge`: removes ended entries.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>

#include <vouch/vouch.hpp>

#include "arguments.hpp"
#include "confirm.hpp"
#include "json.hpp"
#include "output.hpp"

namespace tool {

/// Removes entries in small commits, so that workers can write in between.
template <class Database>
int purge(Database& in, const arguments& with) {
    if (with.queue.empty() || !with.older_than) {
        throw bad_usage("purge needs --queue and --older-than");
    }
    if (with.state && vouch::is_live(*with.state)) {
        throw bad_usage("purge removes only ended entries: --state must be succeeded or dead");
    }
    auto& store = in.store();
    const auto what = with.state ? std::string(name_of(*with.state)) + " entries" : std::string("ended entries");
    if (!is_confirmed(with, "permanently remove " + what + " of queue " + plain(with.queue))) {
        return refused;
    }
    const auto before = vouch::purge_rule::after(*with.older_than).before(vouch::system_now());
    constexpr std::size_t at_once = 500;
    const auto counts = store.counts(with.queue);
    auto unseen = counts[vouch::state::succeeded] + counts[vouch::state::dead];
    std::size_t gone = 0;
    for (bool more = true; more;) {
        const auto now_gone = vouch::transact(store, [&](auto& tx) {
            return tx.purge({.queue = with.queue, .before = *before, .limit = at_once, .state = with.state});
        });
        gone += now_gone;
        unseen -= std::min(unseen, at_once); // each call looks at at least this many
        more = now_gone == at_once || unseen > 0;
    }
    print(with.json ? json_object{}.number("purged", gone).str() + "\n" : std::to_string(gone) + " removed\n");
    return done;
}

} // namespace tool
