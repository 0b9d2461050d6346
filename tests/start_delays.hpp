// SPDX-License-Identifier: MIT
// Measures, on any store, how long due entries wait for their handler while workers are idle.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <deque>
#include <future>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <vouch/vouch.hpp>
#include <vouch/worker.hpp>

namespace start_delay {

using namespace std::chrono_literals;
using delays = std::vector<vouch::duration>;

/// The delay that the fraction `of` of all delays does not exceed.
[[nodiscard]] inline vouch::duration percentile(delays all, double of) {
    std::sort(all.begin(), all.end());
    return all.at(std::min(all.size() - 1, static_cast<std::size_t>(of * static_cast<double>(all.size()))));
}

/// The smallest percentile of three measurements: a busy machine only adds delay.
template <class Measure>
[[nodiscard]] vouch::duration best_percentile(double of, std::size_t entries, Measure&& measure) {
    auto best = vouch::duration::max();
    for (int round = 0; round < 3; ++round) {
        const delays all = measure();
        best = all.size() == entries ? std::min(best, percentile(all, of)) : best;
    }
    return best;
}

/// Workers on threads of their own. The handler of "fast" records how late it is called; the handler of "slow" runs
/// until the pool is destroyed.
template <class Store>
class worker_pool {
  public:
    worker_pool(Store& store, std::size_t size) : outbox_(store) {
        routes_.on("fast", [this](vouch::delivery& d) {
            const std::lock_guard lock(mutex_);
            delays_.push_back(d.now() - d.entry().created_at);
        });
        routes_.on("slow", [this](vouch::delivery&) {
            slow_started_ = true;
            while (!slow_may_finish_) {
                std::this_thread::sleep_for(1ms);
            }
        });
        for (std::size_t i = 0; i < size; ++i) {
            auto& worker = workers_.emplace_back(outbox_, vouch::worker_options{.name = std::to_string(i)});
            worker.serve(routes_, {.queue = "q"});
        }
        for (auto& worker : workers_) {
            runs_.push_back(std::async(std::launch::async, [&worker, stop = stop_.get_token()] { worker.run(stop); }));
        }
    }
    worker_pool(const worker_pool&) = delete;
    worker_pool& operator=(const worker_pool&) = delete;
    ~worker_pool() {
        slow_may_finish_ = true;
        stop_.request_stop();
    }

    [[nodiscard]] delays seen() const {
        const std::lock_guard lock(mutex_);
        return delays_;
    }
    /// Waits until the fast handler has been called `count` times. Returns false on a timeout.
    [[nodiscard]] bool wait_for_calls(std::size_t count) const {
        return eventually([&] { return seen().size() >= count; });
    }
    [[nodiscard]] bool wait_for_slow_handler() const {
        return eventually([&] { return slow_started_.load(); });
    }
    void clear() {
        const std::lock_guard lock(mutex_);
        delays_.clear();
    }
    [[nodiscard]] const vouch::outbox<Store>& outbox() const noexcept { return outbox_; }

  private:
    template <class Predicate>
    [[nodiscard]] static bool eventually(Predicate&& p) {
        for (int i = 0; i < 10'000 && !p(); ++i) {
            std::this_thread::sleep_for(1ms);
        }
        return p();
    }

    vouch::outbox<Store> outbox_;
    mutable std::mutex mutex_;
    delays delays_{};
    std::atomic<bool> slow_started_ = false;
    std::atomic<bool> slow_may_finish_ = false;
    vouch::router<Store> routes_{outbox_};
    std::deque<vouch::worker<Store>> workers_{};
    std::stop_source stop_{};
    std::vector<std::future<void>> runs_{}; ///< joined first
};

/// Lets three workers learn that the handlers are fast, then emits one slow entry among 300 fast ones.
template <class Store>
[[nodiscard]] delays delays_beside_a_slow_handler(Store& store) {
    worker_pool workers(store, 3);
    const std::vector<vouch::emission> some(200, {.queue = "q", .topic = "fast"});
    workers.outbox().emit(some);
    if (!workers.wait_for_calls(200)) {
        return {};
    }
    workers.clear();
    for (int round = 0; round < 30; ++round) {
        if (round == 3) {
            workers.outbox().emit({.queue = "q", .topic = "slow"});
        }
        workers.outbox().emit(std::vector<vouch::emission>(10, {.queue = "q", .topic = "fast"}));
        std::this_thread::sleep_for(5ms);
    }
    return workers.wait_for_slow_handler() && workers.wait_for_calls(300) ? workers.seen() : delays{};
}

/// Emits one entry at a time to eight idle workers.
template <class Store>
[[nodiscard]] delays delays_of_idle_workers(Store& store) {
    worker_pool workers(store, 8);
    for (int n = 0; n < 40; ++n) {
        std::this_thread::sleep_for(20ms);
        workers.outbox().emit({.queue = "q", .topic = "fast"});
    }
    return workers.wait_for_calls(40) ? workers.seen() : delays{};
}

} // namespace start_delay
