// SPDX-License-Identifier: MIT
// One thread at a time: parties pause at points, and a choice is made who goes on. A party that sleeps before it comes
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
namespace conformance {

class baton {
  public:
    /// Says who of the paused parties goes on; called on any thread, one at a time.
    using choice = std::function<std::size_t(const std::vector<std::size_t>&)>;

    baton(std::size_t parties, choice choose) : choose_(std::move(choose)), seats_(parties) {}

    // For a party.

    /// The thread that calls is this party. Before anything else.
    void enter(std::size_t who) {
        const std::lock_guard lock(mutex_);
        seats_[who].thread = sleeper::current();
        seats_[who].at = position::running;
    }

    /// Waits until it is this party's turn.
    void pause(std::size_t who) {
        auto& mine = seats_[who];
        mine.arrives = true; // if it sleeps from here on, then not in the store
        std::unique_lock lock(mutex_);
        mine.at = position::paused;
        hand_on();
        mine.turn.wait(lock, [&] { return turn_ == who; });
        turn_ = nobody;
        mine.at = position::running;
        mine.set_out = mine.thread.worked();
        mine.arrives = false;
    }
    void finish(std::size_t who) {
        seats_[who].arrives = true;
        const std::lock_guard lock(mutex_);
        seats_[who].at = position::finished;
        hand_on();
        finished_.notify_one();
    }

    // For whoever has started the parties.

    /// Until all have finished. A party that falls asleep in the store cannot hand on itself; one that waits there
    /// without sleep is given a while.
    void conduct() {
        constexpr std::chrono::microseconds look_again{20};
        std::unique_lock lock(mutex_);
        while (!finished_.wait_for(lock, look_again, [&] { return count(position::finished) == seats_.size(); })) {
            hand_on();
        }
    }

  private:
    enum class position : std::uint8_t { coming, running, paused, finished };
    struct seat {
        position at = position::coming;
        std::atomic<bool> arrives = false;
        sleeper thread{};
        std::chrono::nanoseconds set_out{}; ///< what its thread had worked then
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

    /// If nobody is on the way to a point, one of the paused goes on.
    void hand_on() {
        if (turn_ != nobody || count(position::paused) == 0 || is_anybody_on_the_way()) {
            return;
        }
        std::vector<std::size_t> ready;
        for (std::size_t i = 0; i < seats_.size(); ++i) {
            if (seats_[i].at == position::paused) {
                ready.push_back(i);
            }
        }
        turn_ = choose_(ready);
        seats_[turn_].turn.notify_one();
    }

    [[nodiscard]] bool is_anybody_on_the_way() const {
        for (const auto& one : seats_) {
            if (one.at == position::coming || (one.at == position::running && !waits_in_the_store(one))) {
                return true;
            }
        }
        return false;
    }

    /// Asleep, or awake for so long that it must be waiting for somebody. That is counted in time at work: a busy
    /// machine lets a thread lie for seconds, and whether it does must not decide who comes next.
    [[nodiscard]] static bool waits_in_the_store(const seat& one) {
        constexpr std::chrono::milliseconds a_while{100};
        const bool stays = one.thread.is_asleep() || one.thread.worked() - one.set_out > a_while;
        return stays && !one.arrives; // asked last: who sleeps because it arrives has said so before
    }

    choice choose_;
    std::mutex mutex_{};
    std::condition_variable finished_{};
    std::vector<seat> seats_;
    std::size_t turn_ = nobody;
};

} // namespace conformance
} // namespace v0
} // namespace vouch
