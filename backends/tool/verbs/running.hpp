// SPDX-License-Identifier: MIT
// `vouch running`: which worker holds which entry, since when, and how much of its lease is left.
#pragma once

#include <algorithm>
#include <string>

#include <vouch/vouch.hpp>

#include "../arguments.hpp"
#include "../database.hpp"
#include "../json.hpp"
#include "../output.hpp"
#include "../search.hpp"
#include "../table.hpp"
#include "../times.hpp"

namespace tool {

inline int running(database& in, const arguments& with) {
    auto claimed = with;
    claimed.state = wanted_state{.state = vouch::state::claimed};
    const auto& stored = in.stored();
    const filter by(in, claimed);
    search found(stored, by);
    table rows(with, {"WORKER", "ID", "QUEUE", "TOPIC", "ATTEMPT", "HELD FOR", "LEASE"});
    while (rows.size() < with.limit) {
        const auto e = found.next();
        if (!e) {
            break;
        }
        const auto left = until(e->lease_until.value_or(by.now), by.now);
        const bool is_over = left <= vouch::duration::zero();
        const auto held = e->last_attempt_at ? -until(*e->last_attempt_at, by.now) : vouch::duration{};
        rows.add({cell_text(e->worker),
                  to_string(e->id),
                  cell_text(e->queue),
                  cell_text(e->topic),
                  std::to_string(e->attempts) + (e->attempts_max != 0 ? " of " + std::to_string(e->attempts_max) : ""),
                  e->last_attempt_at ? roughly(std::max(held, vouch::duration{})) : "",
                  {is_over ? "expired " + roughly(-left) + " ago" : roughly(left) + " left", is_over ? "31" : ""}},
                 {{"worker", e->worker},
                  {"id", to_string(e->id)},
                  {"queue", e->queue},
                  {"topic", e->topic},
                  {"attempts", e->attempts},
                  {"claimed_at", json_of(e->last_attempt_at)},
                  {"lease_until", json_of(e->lease_until)},
                  {"lease_is_over", is_over}});
    }
    const bool has_more = rows.size() == with.limit && found.next();
    rows.print_all("no worker holds an entry\n");
    if (has_more) {
        say("there are more; --limit prints more of them");
    }
    found.remark();
    return done;
}

} // namespace tool
