// SPDX-License-Identifier: MIT
// Requests stops on a thread of its own. A request runs the callbacks that a handler has registered. They may take any
// time, and the thread that extends leases must not wait for them.
#pragma once

#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include <vouch/version.hpp>

namespace vouch {
inline namespace v0 {
namespace detail {

class stop_caller {
  public:
    stop_caller() : thread_([this] { work(); }) {}
    stop_caller(const stop_caller&) = delete;
    stop_caller& operator=(const stop_caller&) = delete;
    /// Waits for the callbacks.
    ~stop_caller() {
        {
            const std::lock_guard lock(mutex_);
            closed_ = true;
        }
        changed_.notify_one();
    }

    void request(std::vector<std::stop_source> stops) {
        if (stops.empty()) {
            return;
        }
        {
            const std::lock_guard lock(mutex_);
            for (auto& s : stops) {
                waiting_.push_back(std::move(s));
            }
        }
        changed_.notify_one();
    }

  private:
    void work() {
        std::unique_lock lock(mutex_);
        for (;;) {
            changed_.wait(lock, [&] { return closed_ || !waiting_.empty(); });
            if (waiting_.empty()) {
                return;
            }
            auto now = std::exchange(waiting_, {});
            lock.unlock();
            for (auto& s : now) {
                s.request_stop();
            }
            now.clear();
            lock.lock();
        }
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    std::vector<std::stop_source> waiting_{};
    bool closed_ = false;
    std::jthread thread_; ///< created last, joined before anything it uses is destroyed
};

} // namespace detail
} // namespace v0
} // namespace vouch
