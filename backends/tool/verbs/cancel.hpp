// SPDX-License-Identifier: MIT
// `vouch cancel`: ends entries as dead, and asks sagas to compensate instead of ending them with work done.
#pragma once

#include <string>

#include <vouch/vouch.hpp>

#include "../arguments.hpp"
#include "../bulk.hpp"
#include "../confirm.hpp"
#include "../database.hpp"
#include "../entry_id.hpp"
#include "../output.hpp"

namespace tool {

[[nodiscard]] inline bool asks_saga(const vouch::entry& e, const arguments& with) {
    return vouch::is_saga(e) && !with.abandon;
}

inline constexpr bulk_act cancel_all{
    .verb = "cancel",
    .applied = "cancelled",
    .repeated = "already cancelled",
    .refused = "claimed or ended meanwhile",
    .may_apply =
        [](const vouch::entry& e, const arguments& with, vouch::time_point now) {
            const bool is_held = e.state == vouch::state::claimed && e.lease_until && *e.lease_until > now;
            return is_live(e.state) && (!is_held || asks_saga(e, with));
        },
    .apply =
        [](any_transaction& tx, const vouch::entry& e, const arguments& with, vouch::time_point now) {
            return answer_of(asks_saga(e, with) ? vouch::request_cancel(tx, e.id, now)
                                                : tx.cancel(e.id, "cancelled", now));
        }};

inline int cancel_one(database& in, const arguments& with) {
    const auto e = entry_of(in, with);
    const auto now = vouch::system_now();
    if (asks_saga(e, with)) {
        if (!is_confirmed(with, "ask saga " + to_string(e.id) + " to compensate")) {
            return refused;
        }
        const auto v = vouch::transact(in.store(), [&](auto& tx) { return vouch::request_cancel(tx, e.id, now); });
        return report(with, v, "the saga was asked to compensate", "the saga was already asked", "the saga has ended");
    }
    if (!is_confirmed(with, "end " + to_string(e.id) + " (" + plain(e.topic) + ") as dead")) {
        return refused;
    }
    const auto v = vouch::transact(in.store(), [&](auto& tx) { return tx.cancel(e.id, "cancelled", now); });
    return report(with, v, "the entry is dead", "the entry was already dead",
                  "a worker holds the entry, or it has succeeded; `show` tells which");
}

inline int cancel(database& in, const arguments& with) {
    if (!with.entry_id.empty()) {
        return cancel_one(in, with);
    }
    auto live = with;
    live.only_live = true;
    return act_on_all(in, live, cancel_all);
}

} // namespace tool
