// SPDX-License-Identifier: MIT
// Lets one thread at a time do something, and limits how long the others wait for it.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#include <vouch/version.hpp>

namespace vouch {
inline namespace v0 {
namespace kafka::detail {

class turn {
  public:
    using deadline = std::chrono::steady_clock::time_point;

    /// Holds the turn until the end of the scope, unless it was not free in time.
    class hold {
      public:
        hold(turn& of, deadline until) : of_(of) {
            std::unique_lock lock(of_.mutex_);
            is_held_ = of_.freed_.wait_until(lock, until, [&] { return !of_.is_taken_; });
            of_.is_taken_ = of_.is_taken_ || is_held_;
        }
        hold(const hold&) = delete;
        hold& operator=(const hold&) = delete;
        ~hold() {
            if (is_held_) {
                const std::lock_guard lock(of_.mutex_);
                of_.is_taken_ = false;
                of_.freed_.notify_one();
            }
        }
        [[nodiscard]] explicit operator bool() const noexcept { return is_held_; }

      private:
        turn& of_;
        bool is_held_ = false;
    };

  private:
    std::mutex mutex_;
    std::condition_variable freed_;
    bool is_taken_ = false;
};

} // namespace kafka::detail
} // namespace v0
} // namespace vouch
