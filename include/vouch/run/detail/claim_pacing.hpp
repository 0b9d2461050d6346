// SPDX-License-Identifier: MIT
// When a queue claims next: at once while claims come back full, when the next entry is due, and ever more rarely while
// a due entry cannot be claimed because another transaction has it open.
//
// Used by one thread.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <optional>

#include <vouch/contract/time.hpp>

namespace vouch {
inline namespace v0 {
namespace detail {

class claim_pacing {
  public:
    using steady = std::chrono::steady_clock;

    explicit claim_pacing(duration poll_interval) noexcept : poll_interval_(poll_interval) {}

    /// Forgets what is due. Call it before each look.
    void forget_due() noexcept { due_in_.reset(); }

    /// Whether a claim may find something. `gate` is called only if the last claim was not full; it returns the queue's
    /// next due time, and `present` the time of the caller's clock.
    template <class Gate, class Present>
    [[nodiscard]] bool is_due(Gate&& gate, Present&& present, steady::time_point now) {
        if (was_full_) {
            return true;
        }
        const std::optional<time_point> next = gate();
        if (!next) {
            return false;
        }
        const time_point now_here = present();
        due_in_ = *next <= now_here ? duration::zero() : *next - now_here;
        if (*due_in_ > duration::zero()) {
            return false;
        }
        if (next != missed_gate_) { // an entry that the last claim did not miss
            missed_gate_ = next;
            pause_ = duration::zero();
            paused_until_ = now;
        }
        return now >= paused_until_;
    }

    /// Whether the last claim got all it asked for.
    [[nodiscard]] bool was_full() const noexcept { return was_full_; }

    /// A claim returned as many entries as it asked for, or fewer. There may be more.
    void claimed(bool is_full) noexcept {
        was_full_ = is_full;
        due_in_ = duration::zero(); // until the next look
        pause_ = duration::zero();
    }

    /// A claim returned nothing although an entry is due: another worker has just claimed it, or has it open.
    void missed(steady::time_point now) noexcept {
        was_full_ = false;
        due_in_ = duration::zero();
        pause_ = std::clamp<duration>(pause_ * 2, shortest_pause, poll_interval_);
        paused_until_ = now + pause_;
    }

    /// When to claim next; the end of time if nothing is due.
    [[nodiscard]] steady::time_point next(steady::time_point now) const noexcept {
        if (was_full_) {
            return now;
        }
        if (!due_in_) {
            return steady::time_point::max();
        }
        // Bounded by the poll interval, because the longest waits would overflow.
        return std::max(now + std::min(*due_in_, poll_interval_), paused_until_);
    }

  private:
    static constexpr std::chrono::milliseconds shortest_pause{1};

    duration poll_interval_;
    bool was_full_ = true;                    ///< the last claim got all it asked for
    std::optional<duration> due_in_{};        ///< at the last look
    std::optional<time_point> missed_gate_{}; ///< the gate that was due when a claim got nothing
    duration pause_{};                        ///< doubles with each claim that misses the same gate
    steady::time_point paused_until_{};
};

} // namespace detail
} // namespace v0
} // namespace vouch
