// SPDX-License-Identifier: MIT
// All that this program knows about sagas. A saga is never just killed with work done: cancelling one asks it to turn
// round and compensate. Nor does a dead one do its work twice, unless that is asked for: it is resumed.
#pragma once

#include <string>

#include <vouch/saga.hpp>
#include <vouch/sqlite.hpp>
#include <vouch/vouch.hpp>

namespace tool::sagas {

using vouch::is_saga;
using vouch::request_cancel;
using vouch::requeue_saga;

/// Where it stands, in words; times count from now.
[[nodiscard]] inline std::string standing(const vouch::sqlite::store& store, const vouch::entry& e,
                                          vouch::time_point now) {
    const auto status = vouch::inspect(store, e.id);
    return status ? to_string(*status, now) : "its progress cannot be read";
}

} // namespace tool::sagas
