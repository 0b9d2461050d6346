// SPDX-License-Identifier: MIT
// One thread at a time: parties pause at points, and a conductor says who goes on. A party that does not come to its
// next point soon is waiting for another one inside the store, which is its right; it goes on by itself when it can,
// and pauses at its next point.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

namespace vouch {
inline namespace v0 {
namespace conformance {

class baton {
  public:
    explicit baton(std::size_t parties) : seats_(parties, seat::running) {}

    // For a party.

    /// Waits until it is this party's turn.
    void pause(std::size_t who) {
        std::unique_lock lock(mutex_);
        seats_[who] = seat::paused;
        changed_.notify_all();
        changed_.wait(lock, [&] { return turn_ == who; });
        turn_ = nobody;
        seats_[who] = seat::running;
        changed_.notify_all();
    }
    void finish(std::size_t who) {
        const std::lock_guard lock(mutex_);
        seats_[who] = seat::finished;
        changed_.notify_all();
    }

    // For the conductor.

    /// Lets `choose(paused parties) -> party` say who goes on, until all have finished.
    template <class Choose>
    void conduct(Choose&& choose) {
        std::unique_lock lock(mutex_);
        for (;;) {
            changed_.wait(lock, [&] { return paused() > 0 || all_finished(); });
            // Those still running may be on their way to their next point.
            changed_.wait_for(lock, soon, [&] { return running() == 0; });
            if (all_finished()) {
                return;
            }
            std::vector<std::size_t> ready;
            for (std::size_t i = 0; i < seats_.size(); ++i) {
                if (seats_[i] == seat::paused) {
                    ready.push_back(i);
                }
            }
            if (ready.empty()) {
                continue;
            }
            const auto chosen = choose(ready);
            turn_ = chosen;
            changed_.notify_all();
            changed_.wait(lock, [&] { return turn_ == nobody; });
        }
    }

  private:
    enum class seat : std::uint8_t { running, paused, finished };
    static constexpr std::size_t nobody = ~std::size_t{0};
    static constexpr std::chrono::microseconds soon{200};

    [[nodiscard]] std::size_t count(seat s) const {
        std::size_t n = 0;
        for (const auto one : seats_) {
            n += one == s ? 1U : 0U;
        }
        return n;
    }
    [[nodiscard]] std::size_t paused() const { return count(seat::paused); }
    [[nodiscard]] std::size_t running() const { return count(seat::running); }
    [[nodiscard]] bool all_finished() const { return count(seat::finished) == seats_.size(); }

    std::mutex mutex_{};
    std::condition_variable changed_{};
    std::vector<seat> seats_;
    std::size_t turn_ = nobody;
};

} // namespace conformance
} // namespace v0
} // namespace vouch
