// SPDX-License-Identifier: MIT
// How a connection waits for a lock: in short sleeps of random length. SQLite's own busy handler sleeps longer and
// longer, so that the connection that has waited longest looks least often. Here the first in the queue looks again
// within half a millisecond. All others look every 50 ms, in case the first was stopped in its sleep.
//
// Used by one thread at a time.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <thread>

#include <vouch/contract/id.hpp>
#include <vouch/sqlite/detail/turnstile.hpp>

namespace vouch {
inline namespace v0 {
namespace sqlite::detail {

class lock_wait {
  public:
    lock_wait(std::chrono::milliseconds limit, turnstile& queue) noexcept : limit_(limit), queue_(queue) {}

    using clock = std::chrono::steady_clock;

    /// Counts the limit of the following waits from `start`; without a value, from the first look of each wait.
    void count_from(std::optional<clock::time_point> start) noexcept { start_ = start; }

    /// Sleeps. Returns whether to look again; `looks` is how often that was done for this lock.
    bool wait(int looks) noexcept {
        auto now = clock::now();
        if (looks == 0) {
            since_ = start_.value_or(now);
            queue_.line_up();
        }
        if (now - since_ >= limit_) {
            return false;
        }
        const auto look_by = std::min(now + look_every, since_ + limit_);
        do {
            sleep();
            now = clock::now();
        } while (!queue_.is_next() && now < look_by);
        return true;
    }

  private:
    static constexpr std::chrono::milliseconds look_every{50};

    void sleep() noexcept {
        constexpr std::uint64_t shortest = 50;
        constexpr std::uint64_t spread = 350;
        noise_ = vouch::detail::mix(noise_ + 0x9e3779b97f4a7c15U);
        std::this_thread::sleep_for(std::chrono::microseconds{static_cast<std::int64_t>(shortest + noise_ % spread)});
    }

    std::chrono::milliseconds limit_;
    turnstile& queue_;
    std::optional<clock::time_point> start_{};
    clock::time_point since_{};
    std::uint64_t noise_ = std::hash<std::thread::id>{}(std::this_thread::get_id());
};

} // namespace sqlite::detail
} // namespace v0
} // namespace vouch
