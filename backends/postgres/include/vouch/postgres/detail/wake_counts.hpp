// SPDX-License-Identifier: MIT
// The numbers that waiting threads watch, one for each queue. Safe for any number of threads.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>

#include <vouch/version.hpp>

namespace vouch {
inline namespace v0 {
namespace postgres::detail {

class wake_counts {
  public:
    void raise(const std::string& queue) noexcept {
        {
            const std::lock_guard lock(mutex_);
            try {
                counts_[queue] += 1;
            } catch (...) {
                all_ += 1; // no memory for the name: wakes every queue
            }
        }
        raised_.notify_all();
    }
    void raise_all() noexcept {
        {
            const std::lock_guard lock(mutex_);
            all_ += 1;
        }
        raised_.notify_all();
    }

    [[nodiscard]] std::uint64_t of(std::string_view queue) const {
        const std::lock_guard lock(mutex_);
        return count_of(queue);
    }

    /// Waits until the number differs from `seen`, `at_most` has passed, or a stop is requested. Returns the number.
    std::uint64_t wait(std::string_view queue, std::uint64_t seen, std::chrono::nanoseconds at_most,
                       std::stop_token stop) {
        std::unique_lock lock(mutex_);
        raised_.wait_for(lock, std::move(stop), at_most, [&] { return count_of(queue) != seen; });
        return count_of(queue);
    }

  private:
    [[nodiscard]] std::uint64_t count_of(std::string_view queue) const {
        const auto found = counts_.find(queue);
        return found == counts_.end() ? all_ : found->second + all_;
    }

    mutable std::mutex mutex_{};
    std::condition_variable_any raised_{};
    std::map<std::string, std::uint64_t, std::less<>> counts_{};
    std::uint64_t all_ = 0;
};

} // namespace postgres::detail
} // namespace v0
} // namespace vouch
