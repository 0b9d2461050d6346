// SPDX-License-Identifier: MIT
// All that this program knows about sagas. A saga is never just killed with work done: cancelling one asks it to turn
// round and compensate.
#pragma once

#include <optional>
#include <string>

#include <vouch/sqlite.hpp>
#include <vouch/vouch.hpp>

namespace tool::sagas {

[[nodiscard]] inline bool is_saga(const vouch::entry& /*e*/) { return false; }

/// Where it stands, in words.
[[nodiscard]] inline std::string standing(const vouch::entry& /*e*/) { return {}; }

/// Asks it to turn round.
[[nodiscard]] inline vouch::verdict request_cancel(vouch::sqlite::transaction& /*tx*/, const vouch::id& /*saga*/,
                                                   vouch::time_point /*now*/) {
    return vouch::verdict::unknown;
}

} // namespace tool::sagas
