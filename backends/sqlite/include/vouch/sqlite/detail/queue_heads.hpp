// SPDX-License-Identifier: MIT
// Which queues the commits of other processes concern. A commit can make work in a queue due sooner if the queue has a new
// entry, or another entry is first in turn. So both are remembered for each queue that a thread waits for, and compared
// when another process has committed.
//
// Safe for any number of threads.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <vouch/contract/time.hpp>

namespace vouch {
inline namespace v0 {
namespace sqlite::detail {

/// What is stored in a queue, as far as it matters to a thread that waits.
struct queue_head {
    std::optional<std::pair<time_point, std::uint64_t>>
        first{};            ///< gate and sequence of the entry that is first in turn
    std::uint64_t last = 0; ///< the highest sequence of the file
    bool has_new = false;   ///< a live entry has a higher sequence than was asked for
};

class queue_heads {
  public:
    /// How often a commit was found to concern the queue. `commits` is the present number of commits of other processes;
    /// `read(after)` returns the queue's present head, with `has_new` for sequences above `after`.
    template <class Read>
    [[nodiscard]] std::uint64_t count_changes(std::string_view queue, std::uint64_t commits, const Read& read) {
        std::uint64_t after = INT64_MAX; // the first time, nothing counts as new
        {
            const std::lock_guard lock(mutex_);
            if (const auto found = heads_.find(queue); found != heads_.end()) {
                if (found->second.commits >= commits) {
                    return found->second.changes;
                }
                after = found->second.head.last;
            }
        }
        const queue_head now = read(after);
        const std::lock_guard lock(mutex_);
        auto& k = heads_[std::string(queue)];
        if (k.commits < commits || k.changes == 0) { // no other thread was faster
            k.changes += k.changes == 0 || now.has_new || now.first != k.head.first ? 1U : 0U;
            k.head = now;
            k.commits = commits;
        }
        return k.changes;
    }

  private:
    struct known {
        queue_head head{};
        std::uint64_t commits = 0;
        std::uint64_t changes = 0; ///< 0: not read yet
    };
    std::mutex mutex_{};
    std::map<std::string, known, std::less<>> heads_{};
};

} // namespace sqlite::detail
} // namespace v0
} // namespace vouch
