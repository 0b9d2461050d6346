// SPDX-License-Identifier: MIT
// A thread that carries out one step at a time, so that a check can let two transactions overlap. A step that waits
// inside the store for another transaction is left alone; it ends when it can.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

#include <vouch/conformance/detail/repeating_store.hpp>
#include <vouch/conformance/detail/schedule/thread_probe.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

class party {
  public:
    party() : thread_([this] { run(); }) {}
    party(const party&) = delete;
    party& operator=(const party&) = delete;
    ~party() {
        {
            const std::lock_guard lock(mutex_);
            ends_ = true;
            changed_.notify_all();
        }
        thread_.join();
    }

    /// Carries out a step after the earlier ones. Returns when it has ended, or when the thread waits inside the store.
    void start(std::function<void()> step) {
        constexpr std::chrono::microseconds look_again{20};
        std::unique_lock lock(mutex_);
        steps_.push_back(std::move(step));
        changed_.notify_all();
        while (!changed_.wait_for(lock, look_again, [&] { return steps_.empty(); })) {
            // `arrives_` is read last: it is set before the thread may sleep outside the store.
            if (is_running_ && probe_.is_asleep() && !arrives_) {
                return;
            }
        }
    }

    /// Waits until all steps have ended. Throws what a step has thrown.
    void finish() {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return steps_.empty(); });
        if (const auto thrown = std::exchange(thrown_, nullptr)) {
            std::rethrow_exception(thrown);
        }
    }

  private:
    void run() {
        const shown_conflicts raw; // transactions that overlap are not repeated behind their back
        std::unique_lock lock(mutex_);
        probe_ = thread_probe::current();
        for (;;) {
            changed_.wait(lock, [&] { return ends_ || !steps_.empty(); });
            if (steps_.empty()) {
                return;
            }
            const auto step = steps_.front();
            arrives_ = false;
            is_running_ = true;
            lock.unlock();
            std::exception_ptr thrown;
            try {
                step();
            } catch (...) {
                thrown = std::current_exception();
            }
            arrives_ = true; // from here on it does not sleep inside the store
            lock.lock();
            is_running_ = false;
            thrown_ = thrown_ ? thrown_ : thrown;
            steps_.pop_front();
            changed_.notify_all();
        }
    }

    std::mutex mutex_{};
    std::condition_variable changed_{};
    std::deque<std::function<void()>> steps_{}; ///< the first one is being carried out
    std::exception_ptr thrown_{};
    thread_probe probe_{};
    std::atomic<bool> arrives_ = false;
    bool is_running_ = false;
    bool ends_ = false;
    std::thread thread_; // last: it uses the other members
};

} // namespace conformance::detail
} // namespace v0
} // namespace vouch
