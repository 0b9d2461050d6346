// SPDX-License-Identifier: MIT
// Guesses in which queues the entries have neither group nor lane nor parent, from what the last settles have found. Their
// settles travel with the next claim and the commit. A wrong guess costs one round trip, so after one it takes some settles
// until the queue counts as plain again.
// Safe for any number of threads.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include <vouch/version.hpp>

namespace vouch {
inline namespace v0 {
namespace postgres::detail {

class plain_queues {
  public:
    /// How many plain settles in a row it takes after one that was not.
    static constexpr int plain_min = 8;

    [[nodiscard]] bool contains(std::string_view queue) const {
        const std::lock_guard lock(mutex_);
        return missing_.find(queue) == missing_.end();
    }

    /// A settle of entries that were probably claimed from this queue.
    void note(std::string_view queue, bool was_plain) {
        const std::lock_guard lock(mutex_);
        const auto found = missing_.find(queue);
        if (!was_plain) {
            missing_.insert_or_assign(std::string(queue), plain_min);
        } else if (found != missing_.end() && --found->second == 0) {
            missing_.erase(found);
        }
    }

  private:
    mutable std::mutex mutex_{};
    std::map<std::string, int, std::less<>> missing_{}; ///< how many plain settles it takes yet
};

} // namespace postgres::detail
} // namespace v0
} // namespace vouch
