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

/// The delay that this share of all does not exceed.
[[nodiscard]] inline vouch::duration share(delays all, double of) {
    std::sort(all.begin(), all.end());
    return all.at(std::min(all.size() - 1, static_cast<std::size_t>(of * static_cast<double>(all.size()))));
}

/// That of the quietest of three measurements: a busy machine only ever adds.
template <class Measure>
[[nodiscard]] vouch::duration best_share(double of, std::size_t entries, Measure&& measure) {
    auto best = vouch::duration::max();
    for (int round = 0; round < 3; ++round) {
        const delays all = measure();
        best = all.size() == entries ? std::min(best, share(all, of)) : best;
    }
    return best;
}

/// Workers on threads of their own, whose handler of "fast" notes how late it was called and whose handler of "slow"
/// takes until it is told to end.
template <class Store>
class crew {
  public:
    crew(Store& store, std::size_t size) : outbox_(store) {
        routes_.on("fast", [this](vouch::delivery& d) {
            const std::lock_guard lock(mutex_);
            delays_.push_back(d.now() - d.entry().created_at);
        });
        routes_.on("slow", [this](vouch::delivery&) {
            is_slow_ = true;
            while (!over_) {
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
    crew(const crew&) = delete;
    crew& operator=(const crew&) = delete;
    ~crew() {
        over_ = true;
        stop_.request_stop();
    }

    [[nodiscard]] delays seen() const {
        const std::lock_guard lock(mutex_);
        return delays_;
    }
    /// Whether so many fast ones have been called, in the end.
    [[nodiscard]] bool reaches(std::size_t count) const {
        return waits_until([&] { return seen().size() >= count; });
    }
    [[nodiscard]] bool becomes_slow() const {
        return waits_until([&] { return is_slow_.load(); });
    }
    void forget() {
        const std::lock_guard lock(mutex_);
        delays_.clear();
    }
    [[nodiscard]] const vouch::outbox<Store>& outbox() const noexcept { return outbox_; }

  private:
    template <class Predicate>
    [[nodiscard]] static bool waits_until(Predicate&& p) {
        for (int i = 0; i < 10'000 && !p(); ++i) {
            std::this_thread::sleep_for(1ms);
        }
        return p();
    }

    vouch::outbox<Store> outbox_;
    mutable std::mutex mutex_;
    delays delays_{};
    std::atomic<bool> is_slow_ = false;
    std::atomic<bool> over_ = false;
    vouch::router<Store> routes_{outbox_};
    std::deque<vouch::worker<Store>> workers_{};
    std::stop_source stop_{};
    std::vector<std::future<void>> runs_{}; ///< joined first
};

/// Three workers that know the handlers as fast; then one slow entry in front of 300 fast ones.
template <class Store>
[[nodiscard]] delays beside_a_slow_handler(Store& store) {
    crew workers(store, 3);
    const std::vector<vouch::emission> some(200, {.queue = "q", .topic = "fast"});
    workers.outbox().emit(some);
    if (!workers.reaches(200)) {
        return {};
    }
    workers.forget();
    for (int round = 0; round < 30; ++round) {
        if (round == 3) {
            workers.outbox().emit({.queue = "q", .topic = "slow"});
        }
        workers.outbox().emit(std::vector<vouch::emission>(10, {.queue = "q", .topic = "fast"}));
        std::this_thread::sleep_for(5ms);
    }
    return workers.becomes_slow() && workers.reaches(300) ? workers.seen() : delays{};
}

/// Eight idle workers, and now and then one entry.
template <class Store>
[[nodiscard]] delays of_idle_workers(Store& store) {
    crew workers(store, 8);
    for (int n = 0; n < 40; ++n) {
        std::this_thread::sleep_for(20ms);
        workers.outbox().emit({.queue = "q", .topic = "fast"});
    }
    return workers.reaches(40) ? workers.seen() : delays{};
}

} // namespace start_delay
