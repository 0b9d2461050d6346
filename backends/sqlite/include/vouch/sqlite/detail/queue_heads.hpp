// SPDX-License-Identifier: MIT
// Which queues the commits of other processes concern. A commit can make work in a queue due sooner only if another entry
// is first in turn after it. So the first entry of each queue that a thread waits for is remembered, and compared when
// another process has committed.
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

/// The entry that is first in turn in a queue: its gate and its sequence. None if no entry has a gate.
using first_due = std::optional<std::pair<time_point, std::uint64_t>>;

class queue_heads {
  public:
    /// How often the queue was found with another first entry after a commit. `commits` is the present number of commits of
    /// other processes; `read()` returns the queue's present first entry.
    template <class Read>
    [[nodiscard]] std::uint64_t count_changes(std::string_view queue, std::uint64_t commits, const Read& read) {
        {
            const std::lock_guard lock(mutex_);
            const auto known = heads_.find(queue);
            if (known != heads_.end() && known->second.commits >= commits) {
                return known->second.changes;
            }
        }
        const first_due first = read();
        const std::lock_guard lock(mutex_);
        auto& known = heads_[std::string(queue)];
        if (known.commits < commits || known.changes == 0) { // no other thread was faster
            known.changes += known.changes == 0 || known.first != first ? 1U : 0U;
            known.first = first;
            known.commits = commits;
        }
        return known.changes;
    }

  private:
    struct head {
        first_due first{};
        std::uint64_t commits = 0;
        std::uint64_t changes = 0; ///< 0: not read yet
    };
    std::mutex mutex_{};
    std::map<std::string, head, std::less<>> heads_{};
};

} // namespace sqlite::detail
} // namespace v0
} // namespace vouch
