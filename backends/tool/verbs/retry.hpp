// SPDX-License-Identifier: MIT
// `vouch retry`: makes waiting entries due now.
#pragma once

#include <vouch/vouch.hpp>

#include "../arguments.hpp"
#include "../bulk.hpp"
#include "../confirm.hpp"
#include "../database.hpp"
#include "../entry_id.hpp"

namespace tool {

inline constexpr bulk_act retry_all{
    .verb = "retry",
    .applied = "due now",
    .repeated = "already due",
    .refused = "ended meanwhile",
    .may_apply = [](const vouch::entry& e, const arguments&, vouch::time_point) { return is_live(e.state); },
    .apply = [](any_transaction& tx, const vouch::entry& e, const arguments&,
                vouch::time_point now) { return answer_of(tx.nudge(e.id, now)); }};

inline int retry_one(database& in, const arguments& with) {
    const auto which = entry_id_of(in, with);
    bool is_held = false;
    const auto v = vouch::transact(in.store(), [&](auto& tx) {
        const auto found = tx.find(which);
        is_held = found && found->state == vouch::state::claimed;
        return tx.nudge(which, vouch::system_now());
    });
    return report(with, v,
                  is_held ? "a worker holds the entry; if it has to run again, it is due as soon as that claim ends"
                          : "the entry is due now",
                  is_held ? "a worker holds the entry, and it is already marked to be due when that claim ends"
                          : "the entry was already due",
                  "the entry has ended; `requeue` gives a dead entry a successor");
}

inline int retry(database& in, const arguments& with) {
    if (!with.entry_id.empty()) {
        return retry_one(in, with);
    }
    auto live = with;
    live.only_live = true;
    return act_on_all(in, live, retry_all);
}

} // namespace tool
