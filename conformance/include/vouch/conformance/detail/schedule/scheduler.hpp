// SPDX-License-Identifier: MIT
// Runs one thread at a time: threads pause at certain points, and a callback chooses which one continues. A thread that
// sleeps before it reaches its next point is waiting for another thread inside the store, which is allowed. It continues
// when it can and pauses at its next point. Where the system reports whether a thread sleeps (Linux), the load of the
// machine does not change the schedule.
//
// A thread that sleeps on a socket waits for a server, which either works or lets it wait for another thread. Only time can
// tell: after `server_time_max` without an answer it counts as waiting for another thread. Such guesses are counted,
// because a run with one of them may not be repeatable.
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
    /// A paused thread, and the number of steps that it has completed. Pauses inside the store do not end a step.
    struct ready_thread {
        std::size_t index = 0;
        std::size_t steps = 0;
        bool is_inside = false; ///< paused inside the store
    };
    /// Chooses which of the paused threads continues, by its index. Called on any thread, by one at a time.
    using choice = std::function<std::size_t(const std::vector<ready_thread>&)>;

    scheduler(std::size_t threads, choice choose) : choose_(std::move(choose)), participants_(threads) {}

    // Called by the scheduled threads.

    /// Registers the calling thread as thread `who`. Must be its first call.
    void enter(std::size_t who) {
        const std::lock_guard lock(mutex_);
        participants_[who].thread = thread_probe::current();
        participants_[who].at = position::running;
    }

    /// Ends a step of the thread and waits for its turn.
    void end_step(std::size_t who) {
        participants_[who].steps += 1;
        pause(who);
    }

    /// Waits for the thread's turn.
    void pause(std::size_t who, bool is_inside = false) {
        auto& mine = participants_[who];
        mine.arrives = true; // from here on it does not sleep inside the store
        std::unique_lock lock(mutex_);
        mine.at = position::paused;
        mine.is_inside = is_inside;
        pass_turn();
        mine.turn.wait(lock, [&] { return turn_ == who; });
        turn_ = none;
        mine.at = position::running;
        mine.cpu_time_at_turn = mine.thread.cpu_time();
        mine.arrives = false;
    }

    /// Must be the last call of a thread.
    void finish(std::size_t who) {
        participants_[who].arrives = true;
        const std::lock_guard lock(mutex_);
        participants_[who].at = position::finished;
        pass_turn();
        finished_.notify_one();
    }

    // Called by the thread that has started them.

    /// Returns when all threads have finished. Passes the turn on for threads that wait inside the store.
    void run() {
        constexpr std::chrono::microseconds look_again{20};
        std::unique_lock lock(mutex_);
        while (
            !finished_.wait_for(lock, look_again, [&] { return count(position::finished) == participants_.size(); })) {
            pass_turn();
        }
    }

    /// How often a thread without an answer from its server was taken for one that waits for another thread.
    [[nodiscard]] std::uint64_t guesses() const {
        const std::lock_guard lock(mutex_);
        return guesses_;
    }

  private:
    using clock = std::chrono::steady_clock;
    static constexpr std::chrono::milliseconds server_time_max{5};
    enum class position : std::uint8_t { starting, running, paused, finished };
    struct participant {
        position at = position::starting;
        bool is_inside = false;
        std::atomic<bool> arrives = false;
        std::atomic<std::size_t> steps = 0;
        thread_probe thread{};
        std::chrono::nanoseconds cpu_time_at_turn{}; ///< the CPU time of its thread when it got its turn
        std::chrono::nanoseconds cpu_time_asleep{};  ///< the same when it was last seen asleep on a socket
        clock::time_point asleep_since{};            ///< when that was seen for the first time
        bool is_guessed = false;                     ///< counted in `guesses_` since then
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

    /// Lets a paused thread continue if no other thread is on its way to a point.
    void pass_turn() {
        if (turn_ != none || count(position::paused) == 0 || is_any_running()) {
            return;
        }
        std::vector<ready_thread> ready;
        for (std::size_t i = 0; i < participants_.size(); ++i) {
            if (participants_[i].at == position::paused) {
                ready.push_back({i, participants_[i].steps, participants_[i].is_inside});
            }
        }
        turn_ = choose_(ready);
        participants_[turn_].turn.notify_one();
    }

    [[nodiscard]] bool is_any_running() {
        for (auto& one : participants_) {
            if (one.at == position::starting || (one.at == position::running && !is_waiting_in_store(one))) {
                return true;
            }
        }
        return false;
    }

    /// Whether it sleeps, or has been running for so long that it must be waiting in a loop. The latter is measured in
    /// CPU time, so that the load of the machine does not change the schedule.
    [[nodiscard]] bool is_waiting_in_store(participant& one) {
        constexpr std::chrono::milliseconds spin_max{100};
        const auto cpu_time = one.thread.cpu_time();
        // Asked twice: in between it may have been woken, and even have slept again.
        const bool sleeps = one.thread.is_asleep() && !may_get_answer(one, cpu_time) && one.thread.is_asleep() &&
                            one.thread.cpu_time() == cpu_time;
        const bool spins = cpu_time - one.cpu_time_at_turn > spin_max;
        return (sleeps || spins) && !one.arrives; // read last: a thread sets it before it sleeps in `pause`
    }

    /// Whether a thread that sleeps waits for a server that may still be working for it.
    [[nodiscard]] bool may_get_answer(participant& one, std::chrono::nanoseconds cpu_time) {
        if (!one.thread.is_in_socket_call()) {
            return false;
        }
        const auto now = clock::now();
        if (cpu_time != one.cpu_time_asleep) { // it has been awake since we looked
            one.cpu_time_asleep = cpu_time;
            one.asleep_since = now;
            one.is_guessed = false;
        }
        if (now - one.asleep_since < server_time_max) {
            return true;
        }
        guesses_ += one.is_guessed ? 0 : 1;
        one.is_guessed = true;
        return false;
    }

    choice choose_;
    mutable std::mutex mutex_{};
    std::condition_variable finished_{};
    std::vector<participant> participants_;
    std::size_t turn_ = none;
    std::uint64_t guesses_ = 0;
};

} // namespace conformance::detail
} // namespace v0
} // namespace vouch
