// SPDX-License-Identifier: MIT
// Ends the process with exit code 3 when a clause takes too long, because a store that hangs cannot be interrupted.
// Before that it prints which clause hangs and lets its owner write the report so far.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>

#include <vouch/version.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

class watchdog {
  public:
    /// `hangs` is called on the watchdog's thread while the owner's thread hangs in what `begin` named.
    watchdog(std::chrono::seconds patience, std::function<void()> hangs)
        : patience_(patience), hangs_(std::move(hangs)), thread_([this](const std::stop_token& stop) { watch(stop); }) {
    }

    /// Starts to watch `what`.
    void begin(std::string what) {
        const std::lock_guard lock(mutex_);
        what_ = std::move(what);
        until_ = std::chrono::steady_clock::now() + patience_;
        changed_.notify_all();
    }
    void end() { begin({}); }

  private:
    void watch(const std::stop_token& stop) {
        std::unique_lock lock(mutex_);
        while (!stop.stop_requested()) {
            if (what_.empty()) {
                changed_.wait(lock, stop, [&] { return !what_.empty(); });
                continue;
            }
            const auto was = until_; // a copy, because the wait reads it while the mutex is unlocked
            if (!changed_.wait_until(lock, stop, was, [&] { return until_ != was; }) && !stop.stop_requested()) {
                std::fprintf(stderr, "\n%s: HANGS: no answer for %lld s\n", what_.c_str(),
                             static_cast<long long>(patience_.count()));
                hangs_();
                std::_Exit(3);
            }
        }
    }

    std::chrono::seconds patience_;
    std::function<void()> hangs_;
    std::mutex mutex_{};
    std::condition_variable_any changed_{};
    std::string what_{}; ///< empty: nothing to watch
    std::chrono::steady_clock::time_point until_{};
    std::jthread thread_; // last: it uses the other members
};

} // namespace conformance::detail
} // namespace v0
} // namespace vouch
