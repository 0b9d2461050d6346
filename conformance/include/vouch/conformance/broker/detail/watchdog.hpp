// SPDX-License-Identifier: MIT
// Ends the process with exit code 3 when a clause takes too long, because a client that hangs cannot be interrupted.
// Before that it lets its owner write the report so far.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <stop_token>
#include <thread>
#include <utility>

#include <vouch/version.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::broker::detail {

class watchdog {
  public:
    /// `hangs` is called on the watchdog's thread while the owner's thread hangs.
    watchdog(std::chrono::seconds patience, std::function<void()> hangs)
        : patience_(patience), hangs_(std::move(hangs)), thread_([this](const std::stop_token& stop) { watch(stop); }) {
    }

    void begin() { set(true); }
    void end() { set(false); }

  private:
    void set(bool watches) {
        const std::lock_guard lock(mutex_);
        watches_ = watches;
        ++turn_;
        changed_.notify_all();
    }

    void watch(const std::stop_token& stop) {
        std::unique_lock lock(mutex_);
        while (!stop.stop_requested()) {
            const auto turn = turn_;
            const auto has_changed = [&] { return turn_ != turn; };
            if (!watches_) {
                changed_.wait(lock, stop, has_changed);
            } else if (!changed_.wait_for(lock, stop, patience_, has_changed) && !stop.stop_requested()) {
                hangs_();
                std::_Exit(3);
            }
        }
    }

    std::chrono::seconds patience_;
    std::function<void()> hangs_;
    std::mutex mutex_{};
    std::condition_variable_any changed_{};
    bool watches_ = false;
    unsigned turn_ = 0;
    std::jthread thread_; // last: it uses the other members
};

} // namespace conformance::broker::detail
} // namespace v0
} // namespace vouch
