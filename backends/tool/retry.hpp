// SPDX-License-Identifier: MIT
// `vouch retry`: makes a waiting entry due now.
#pragma once

#include <vouch/vouch.hpp>

#include "arguments.hpp"
#include "confirm.hpp"
#include "entry_id.hpp"

namespace tool {

template <class Database>
int retry(Database& in, const arguments& with) {
    const auto id = entry_id_of(with);
    bool is_held = false;
    const auto v = vouch::transact(in.store(), [&](auto& tx) {
        const auto found = tx.find(id);
        is_held = found && found->state == vouch::state::claimed;
        return tx.nudge(id, vouch::system_now());
    });
    return report(with, v,
                  is_held ? "a worker holds the entry; if it has to run again, it is due as soon as that claim ends"
                          : "the entry is due now",
                  is_held ? "a worker holds the entry, and it is already marked to be due when that claim ends"
                          : "the entry was already due",
                  "the entry has ended; `requeue` gives a dead entry a successor");
}

} // namespace tool
