// SPDX-License-Identifier: MIT
// A wait that ends when its time is over, when the store reports new work (if it has wake-ups), or when it is
// interrupted. An interruption before the wait ends the next wait at once, so none is lost.
//
// One thread waits; any thread may interrupt.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <stop_token>
#include <string>

#include <vouch/contract/store.hpp>

namespace vouch {
inline namespace v0 {
namespace detail {

class interruptible_wait {
  public:
    void interrupt() noexcept {
        std::stop_source listening(std::nostopstate);
        {
            const std::lock_guard lock(mutex_);
            interrupted_ = true;
            listening = listening_;
        }
        changed_.notify_one();
        listening.request_stop();
    }

    void wait(std::chrono::nanoseconds at_most) {
        std::unique_lock lock(mutex_);
        changed_.wait_for(lock, at_most, [&] { return interrupted_; });
        interrupted_ = false;
    }

    /// Also ends when `wakes` of the queue differs from `seen`.
    template <waking_store Store>
    void wait(Store& store, const std::string& queue, std::uint64_t seen, std::chrono::nanoseconds at_most) {
        const std::stop_source listening;
        if (!begin_listening(listening)) {
            return;
        }
        try {
            store.wait(queue, seen, at_most, listening.get_token());
        } catch (...) {
            end_listening();
            throw;
        }
        end_listening();
    }

  private:
    [[nodiscard]] bool begin_listening(const std::stop_source& how) {
        const std::lock_guard lock(mutex_);
        if (interrupted_) {
            interrupted_ = false;
            return false;
        }
        listening_ = how;
        return true;
    }
    void end_listening() {
        const std::lock_guard lock(mutex_);
        listening_ = std::stop_source(std::nostopstate);
        interrupted_ = false;
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    std::stop_source listening_{std::nostopstate};
    bool interrupted_ = false;
};

} // namespace detail
} // namespace v0
} // namespace vouch
