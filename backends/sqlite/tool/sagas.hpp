// SPDX-License-Identifier: MIT
// All that this program knows about sagas. A saga is never just killed with work done: cancelling one asks it to turn
// round and compensate. Nor does a dead one do its work twice, unless that is asked for: it is resumed.
#pragma once

#include <algorithm>
#include <string>

#include <vouch/saga.hpp>
#include <vouch/vouch.hpp>

#include "database.hpp"

namespace tool::sagas {

using vouch::is_saga;
using vouch::request_cancel;
using vouch::requeue_saga;

/// Where it stands, in words; times count from now.
[[nodiscard]] inline std::string standing(const view& in, const vouch::entry& e, vouch::time_point now) {
    auto status = vouch::inspect(in, e.id);
    if (status && status->waits_until) { // none is so long ago that the time since then has no number
        status->waits_until = std::max(*status->waits_until, vouch::time_point::min() + now.time_since_epoch());
    }
    return status ? to_string(*status, now) : "its progress cannot be read";
}

} // namespace tool::sagas
