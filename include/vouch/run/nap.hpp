// SPDX-License-Identifier: MIT
// How a clerk rests: until a time comes, new work is heard of (where the store has wake-ups), or somebody interrupts.
// An interruption that comes while nobody rests ends the next rest at once, so none is lost.
//
// One thread rests; any may interrupt.
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

class nap {
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

    void rest(std::chrono::nanoseconds at_most) {
        std::unique_lock lock(mutex_);
        changed_.wait_for(lock, at_most, [&] { return interrupted_; });
        interrupted_ = false;
    }

    /// Rests until `wakes` of the queue differs from `seen`, too.
    template <waking_store Store>
    void rest(Store& store, const std::string& queue, std::uint64_t seen, std::chrono::nanoseconds at_most) {
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
