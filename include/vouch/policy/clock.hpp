// SPDX-License-Identifier: MIT
// Where the `now` of a call comes from. A clock is any callable that gives a time; the core asks it at its edges and
// hands the answer down.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>

#include <vouch/contract/time.hpp>

namespace vouch {
inline namespace v0 {

using clock = std::function<time_point()>;

/// The machine's UTC time, in whole microseconds.
[[nodiscard]] inline time_point system_now() noexcept {
    return std::chrono::time_point_cast<duration>(std::chrono::system_clock::now());
}

/// A clock that moves only when told. Copies share one time, so a test keeps one and hands others out. Thread-safe.
class manual_clock {
  public:
    explicit manual_clock(time_point start = time_point{std::chrono::hours{24 * 365 * 50}})
        : now_(std::make_shared<std::atomic<duration::rep>>(start.time_since_epoch().count())) {}

    [[nodiscard]] time_point operator()() const noexcept { return time_point{duration{now_->load()}}; }
    void set(time_point now) const noexcept { now_->store(now.time_since_epoch().count()); }
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
