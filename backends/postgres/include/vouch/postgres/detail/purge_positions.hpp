// SPDX-License-Identifier: MIT
// Where the last purge of a queue stopped. Kept in memory only: a new process begins with the oldest entries. Safe for any
// number of threads.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include <vouch/contract/request.hpp>
#include <vouch/contract/state.hpp>

namespace vouch {
inline namespace v0 {
namespace postgres::detail {

/// A place in the order in which entries have ended. A default place is before all entries.
struct ended_position {
    std::int64_t updated_at = INT64_MIN;
    std::uint64_t sequence = 0;

    [[nodiscard]] friend constexpr auto operator<=>(const ended_position&, const ended_position&) noexcept = default;
};

class purge_positions {
  public:
    [[nodiscard]] ended_position of(const purge_request& request) {
        const std::lock_guard lock(mutex_);
        const auto found = positions_.find({request.queue, request.state});
        return found == positions_.end() ? ended_position{} : found->second;
    }
    /// Nothing: the next purge begins with the oldest.
    void set(const purge_request& request, const std::optional<ended_position>& stopped) {
        const std::lock_guard lock(mutex_);
        if (stopped) {
            positions_[{request.queue, request.state}] = *stopped;
        } else {
            positions_.erase({request.queue, request.state});
        }
    }

  private:
    std::mutex mutex_{};
    std::map<std::pair<std::string, std::optional<state>>, ended_position> positions_{};
};

} // namespace postgres::detail
} // namespace v0
} // namespace vouch
