// SPDX-License-Identifier: MIT
// One thread at a time: parties pause at points, and a conductor says who goes on. A party that sleeps before it comes
// to its next point is waiting for another one inside the store, which is its right; it goes on by itself when it can,
// and pauses at its next point. Where the system tells whether a thread sleeps, a busy machine changes no schedule.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include <vouch/conformance/sleeper.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance {

class baton {
  public:
    explicit baton(std::size_t parties) : seats_(parties) {}

    // For a party.

    /// The thread that calls is this party. Before anything else.
    void enter(std::size_t who) {
        const std::lock_guard lock(mutex_);
        seats_[who].thread = sleeper::current();
        seats_[who].at = position::running;
    }

    /// Waits until it is this party's turn.
    void pause(std::size_t who) {
        std::unique_lock lock(mutex_);
        auto& mine = seats_[who];
        mine.at = position::paused;
        conductor_.notify_one();
        mine.turn.wait(lock, [&] { return turn_ == who; });
        turn_ = nobody;
        mine.at = position::running;
    }
    void finish(std::size_t who) {
        const std::lock_guard lock(mutex_);
        seats_[who].at = position::finished;
        seats_[who].thread = {};
        conductor_.notify_one();
    }

    // For the conductor.

    /// Lets `choose(paused parties) -> party` say who goes on, until all have finished.
    template <class Choose>
    void conduct(Choose&& choose) {
        std::unique_lock lock(mutex_);
        for (;;) {
            settle_down(lock);
            if (count(position::finished) == seats_.size()) {
                return;
            }
            std::vector<std::size_t> ready;
            for (std::size_t i = 0; i < seats_.size(); ++i) {
                if (seats_[i].at == position::paused) {
                    ready.push_back(i);
                }
            }
            turn_ = choose(ready);
            seats_[turn_].at = position::running;
            seats_[turn_].turn.notify_one();
        }
    }

  private:
    enum class position : std::uint8_t { coming, running, paused, finished };
    struct seat {
        position at = position::coming;
        sleeper thread{};
        std::condition_variable turn{};
    };
    static constexpr std::size_t nobody = ~std::size_t{0};

    [[nodiscard]] std::size_t count(position p) const {
        std::size_t n = 0;
        for (const auto& one : seats_) {
            n += one.at == p ? 1U : 0U;
        }
        return n;
    }

    [[nodiscard]] std::size_t moving() const { return count(position::coming) + count(position::running); }

    /// Until nobody runs, or those who do are asleep and somebody else is ready.
    void settle_down(std::unique_lock<std::mutex>& lock) {
        constexpr std::chrono::microseconds look_again{40};
        constexpr int looks = 2; // once, it may have been on its way
        for (int asleep = 0; asleep < looks;) {
            const bool is_quiet =
                conductor_.wait_for(lock, look_again, [&] { return moving() == 0 && turn_ == nobody; });
            if (is_quiet) {
                return;
            }
            asleep = turn_ == nobody && count(position::paused) > 0 && all_moving_sleep() ? asleep + 1 : 0;
        }
    }

    [[nodiscard]] bool all_moving_sleep() const {
        for (const auto& one : seats_) {
            if (one.at == position::coming || (one.at == position::running && !one.thread.is_asleep())) {
                return false;
            }
        }
        return true;
    }

    std::mutex mutex_{};
    std::condition_variable conductor_{};
    std::vector<seat> seats_;
    std::size_t turn_ = nobody;
};

} // namespace conformance
} // namespace v0
} // namespace vouch
