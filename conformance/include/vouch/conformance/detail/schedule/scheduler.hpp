// SPDX-License-Identifier: MIT
// One thread at a time: threads pause at points, and a choice is made who goes on. A thread that sleeps before it comes
// to its next point is waiting for another one inside the store, which is its right; it goes on by itself when it can,
// and pauses at its next point. Where the system tells whether a thread sleeps, a busy machine changes no schedule.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include <vouch/conformance/detail/schedule/thread_probe.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

class scheduler {
  public:
    /// Says who of the paused threads goes on; called on any thread, one at a time.
    using choice = std::function<std::size_t(const std::vector<std::size_t>&)>;

    scheduler(std::size_t threads, choice choose) : choose_(std::move(choose)), participants_(threads) {}

    // For a thread.

    /// The thread that calls is this thread. Before anything else.
    void enter(std::size_t who) {
        const std::lock_guard lock(mutex_);
        participants_[who].thread = thread_probe::current();
        participants_[who].at = position::running;
    }

    /// Waits until it is this thread's turn.
    void pause(std::size_t who) {
        auto& mine = participants_[who];
        mine.arrives = true; // if it sleeps from here on, then not in the store
        std::unique_lock lock(mutex_);
        mine.at = position::paused;
        pass_turn();
        mine.turn.wait(lock, [&] { return turn_ == who; });
        turn_ = none;
        mine.at = position::running;
        mine.cpu_time_at_turn = mine.thread.cpu_time();
        mine.arrives = false;
    }
    void finish(std::size_t who) {
        participants_[who].arrives = true;
        const std::lock_guard lock(mutex_);
        participants_[who].at = position::finished;
        pass_turn();
        finished_.notify_one();
    }

    // For whoever has started the threads.

    /// Until all have finished. A thread that falls asleep in the store cannot hand on itself; one that waits there
    /// without sleep is given a while.
    void run() {
        constexpr std::chrono::microseconds look_again{20};
        std::unique_lock lock(mutex_);
        while (
            !finished_.wait_for(lock, look_again, [&] { return count(position::finished) == participants_.size(); })) {
            pass_turn();
        }
    }

  private:
    enum class position : std::uint8_t { coming, running, paused, finished };
    struct participant {
        position at = position::coming;
        std::atomic<bool> arrives = false;
        thread_probe thread{};
        std::chrono::nanoseconds cpu_time_at_turn{}; ///< what its thread had cpu_time then
        std::condition_variable turn{};
    };
    static constexpr std::size_t none = ~std::size_t{0};

    [[nodiscard]] std::size_t count(position p) const {
        std::size_t n = 0;
        for (const auto& one : participants_) {
            n += one.at == p ? 1U : 0U;
        }
        return n;
    }

    /// If none is on the way to a point, one of the paused goes on.
    void pass_turn() {
        if (turn_ != none || count(position::paused) == 0 || is_any_on_the_way()) {
            return;
        }
        std::vector<std::size_t> ready;
        for (std::size_t i = 0; i < participants_.size(); ++i) {
            if (participants_[i].at == position::paused) {
                ready.push_back(i);
            }
        }
        turn_ = choose_(ready);
        participants_[turn_].turn.notify_one();
    }

    [[nodiscard]] bool is_any_on_the_way() const {
        for (const auto& one : participants_) {
            if (one.at == position::coming || (one.at == position::running && !waits_in_the_store(one))) {
                return true;
            }
        }
        return false;
    }

    /// Asleep, or awake for so long that it must be waiting for somebody. That is counted in time at work: a busy
    /// machine lets a thread lie for seconds, and whether it does must not decide who comes next.
    [[nodiscard]] static bool waits_in_the_store(const participant& one) {
        constexpr std::chrono::milliseconds a_while{100};
        const bool stays = one.thread.is_asleep() || one.thread.cpu_time() - one.cpu_time_at_turn > a_while;
        return stays && !one.arrives; // asked last: who sleeps because it arrives has said so before
    }

    choice choose_;
    std::mutex mutex_{};
    std::condition_variable finished_{};
    std::vector<participant> participants_;
    std::size_t turn_ = none;
};

} // namespace conformance::detail
} // namespace v0
} // namespace vouch
