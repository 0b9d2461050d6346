// SPDX-License-Identifier: MIT
// Where `now` comes from. A clock is any callable that returns a time. Runners, workers and outboxes have one; stores
// do not.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>

#include <vouch/contract/time.hpp>

namespace vouch {
inline namespace v0 {

/// Must be callable from several threads if its user is.
using clock = std::function<time_point()>;

/// The machine's UTC time, in whole microseconds.
[[nodiscard]] inline time_point system_now() noexcept {
    return std::chrono::time_point_cast<duration>(std::chrono::system_clock::now());
}

/// A clock for tests, which moves only when the test says so. Copies share one time. Thread-safe.
class manual_clock {
  public:
    explicit manual_clock(time_point start = time_point{std::chrono::hours{24 * 365 * 50}})
        : now_(std::make_shared<std::atomic<duration::rep>>(start.time_since_epoch().count())) {}

    [[nodiscard]] time_point operator()() const noexcept { return time_point{duration{now_->load()}}; }
    /// Sets the time, forwards or backwards.
    void set(time_point now) const noexcept { now_->store(now.time_since_epoch().count()); }
    /// Moves the time by `by`.
    void pass(duration by) const noexcept {
        auto seen = now_->load();
        while (!now_->compare_exchange_weak(seen, later(time_point{duration{seen}}, by).time_since_epoch().count())) {
        }
    }

  private:
    std::shared_ptr<std::atomic<duration::rep>> now_;
};

} // namespace v0
} // namespace vouch
