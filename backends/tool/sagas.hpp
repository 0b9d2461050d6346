// SPDX-License-Identifier: MIT
// What this program knows about sagas. `cancel` asks a saga to compensate instead of ending it with work done.
// `requeue` resumes a dead saga; it repeats finished steps only on request.
#pragma once

#include <algorithm>
#include <string>

#include <vouch/saga.hpp>
#include <vouch/vouch.hpp>

namespace tool::sagas {

using vouch::is_saga;
using vouch::request_cancel;
using vouch::requeue_saga;

/// The status of a saga as text, with times relative to now.
template <vouch::reader Reader>
[[nodiscard]] std::string status_of(const Reader& in, const vouch::entry& e, vouch::time_point now) {
    auto status = vouch::inspect(in, e.id);
    if (status && status->waits_until) { // an extreme time would overflow the difference
        status->waits_until = std::max(*status->waits_until, vouch::time_point::min() + now.time_since_epoch());
    }
    return status ? to_string(*status, now) : "the saga's progress cannot be read";
}

} // namespace tool::sagas
