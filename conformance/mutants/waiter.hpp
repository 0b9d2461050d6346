// SPDX-License-Identifier: MIT
// The wait of a plain store for the wake number of a queue, with the defects it may have.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include <vouch/contract/error.hpp>

#include "shared_state.hpp"

namespace mutants {

class waiter {
  public:
    waiter(shared_state& in, std::string_view queue, std::uint64_t seen, const void* handle)
        : shared_(in), queue_(queue), seen_(seen), handle_(handle) {}

    [[nodiscard]] std::uint64_t wait(std::chrono::nanoseconds at_most, std::stop_token stop) {
        using std::chrono::milliseconds;
        if (shared_.is(defect::wait_ignores_stop) ||
            (shared_.is(defect::wait_ignores_a_late_stop) && !stop.stop_requested())) {
            stop = {};
        }
        if (shared_.is(defect::wait_overflows) && at_most > std::chrono::hours{24 * 365 * 200}) {
            at_most = {};
        }
        if (shared_.is(defect::wait_of_zero_waits) && at_most.count() <= 0) {
            at_most = milliseconds{1'600};
        }
        at_most = std::min<std::chrono::nanoseconds>(at_most, std::chrono::hours{24});
        at_most /= shared_.is(defect::wait_gives_up_early) ? 2 : 1;
        std::unique_lock lock(shared_.mutex);
        sleep(lock, at_most, stop);
        if (shared_.is(defect::wait_throws_when_stopped) && stop.stop_requested()) {
            throw vouch::error(vouch::error_kind::busy, "plain: the wait was stopped");
        }
        return shared_.is(defect::wait_returns_the_old_number) && is_different_ ? seen_ : shared_.wake_number(queue_);
    }

  private:
    using clock = std::chrono::steady_clock;

    void sleep(std::unique_lock<state_mutex>& lock, std::chrono::nanoseconds at_most, const std::stop_token& stop) {
        if (is_different() || stop.stop_requested()) {
            if (!shared_.is(defect::wait_ignores_wakes)) {
                return;
            }
        }
        auto& changed = shared_.wakes_changed;
        if (shared_.is(defect::wait_ignores_wakes) || shared_.is(defect::wait_sleeps_once_it_waits)) {
            changed.wait_for(lock, stop, at_most, [] { return false; });
        } else if (shared_.is(defect::wait_holds_the_lock)) {
            for (const auto until = clock::now() + at_most; clock::now() < until && !stop.stop_requested();) {
                std::this_thread::sleep_for(std::chrono::milliseconds{1});
            }
        } else if (shared_.is(defect::wait_ends_for_other_queues)) {
            const auto before = shared_.version;
            changed.wait_for(lock, stop, at_most, [&] { return shared_.version != before; });
        } else if (shared_.is(defect::wait_restarts_its_time)) {
            auto before = shared_.version;
            while (changed.wait_for(lock, stop, at_most, [&] { return shared_.version != before; }) &&
                   !is_different() && !stop.stop_requested()) {
                before = shared_.version;
            }
        } else if (shared_.is(trait::wakes_follow_later) || shared_.file) { // another process cannot notify
            for (const auto until = clock::now() + at_most;
                 clock::now() < until && !stop.stop_requested() && !is_different();) {
                changed.wait_for(lock, stop, std::chrono::milliseconds{1}, [] { return false; });
            }
        } else {
            is_different_ = changed.wait_for(lock, stop, at_most, [&] { return is_different(); });
        }
    }

    [[nodiscard]] bool is_different() const {
        const bool is_deaf = shared_.is(defect::wait_hears_its_own_handle_only) && shared_.last_writer != handle_;
        return shared_.wake_number(queue_) != seen_ && !is_deaf;
    }

    shared_state& shared_;
    std::string queue_;
    std::uint64_t seen_;
    const void* handle_;
    bool is_different_ = false; ///< it changed while this slept
};

} // namespace mutants
