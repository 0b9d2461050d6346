// SPDX-License-Identifier: MIT
// When a worker beside producers commits. On many stores writers wait for each other, so a worker that claims every entry
// as soon as it is stored takes as many commits as the producers, and halves their rate. While new work keeps arriving,
// the worker therefore holds back its next commit, for `share` times as long as its commits take and at most for
// `gather_within`, and then claims and settles what has gathered. If no work arrives while two commits could be made, the
// hold ends. Where holds were in vain, they become rare.
//
// Used by one thread.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <utility>

#include <vouch/contract/time.hpp>

namespace vouch {
inline namespace v0 {
namespace detail {

class gathering {
  public:
    using steady = std::chrono::steady_clock;

    explicit gathering(duration at_most) noexcept : at_most_(at_most) {}

    /// The worker has settled or claimed, which took from `begin` to `end`.
    void committed(steady::time_point begin, steady::time_point end) noexcept {
        const auto took = end - begin;
        cost_ = cost_ == steady::duration::zero() ? took : (cost_ * 7 + took) / 8;
        committed_at_ = end;
        phase_ = phase::committed;
    }

    /// Whether to commit nothing now. `wakes` is the store's number of wake-ups of the queue.
    [[nodiscard]] bool holds(std::uint64_t wakes, steady::time_point now) noexcept {
        if (phase_ == phase::committed) { // the commit itself may have changed the number
            look(wakes, now);
            phase_ = is_busy_ ? phase::holding : phase::open;
        } else if (phase_ == phase::open && wakes != wakes_) {
            look(wakes, now);
            phase_ = passes_ == 0 ? phase::holding : phase::over;
            passes_ -= std::min(passes_, 1U);
        } else if (phase_ == phase::holding && now >= next()) {
            wakes != wakes_ ? keep() : give_up();
            look(wakes, now);
        }
        if (now >= longest()) {
            phase_ = phase::over;
        }
        return phase_ == phase::holding;
    }

    /// While it holds: when to ask again.
    [[nodiscard]] steady::time_point next() const noexcept { return std::min(look_at_, longest()); }

  private:
    enum class phase : std::uint8_t { committed, open, holding, over };

    static constexpr int share = 20; ///< a worker beside producers commits for one part in so many of its time
    static constexpr int quiet = 2;  ///< so many commits without new work end a hold
    static constexpr std::chrono::microseconds shortest_quiet{100};
    static constexpr std::uint32_t rare = 255; ///< the most chances of a hold that are passed over

    void look(std::uint64_t wakes, steady::time_point now) noexcept {
        wakes_ = wakes;
        look_at_ = now + std::max<steady::duration>(cost_ * quiet, shortest_quiet);
    }

    void keep() noexcept {
        is_busy_ = true;
        in_vain_ = 0;
    }

    void give_up() noexcept {
        if (!std::exchange(is_busy_, false)) {
            in_vain_ = std::min(in_vain_ * 2 + 1, rare);
            passes_ = in_vain_;
        }
        phase_ = phase::over;
    }

    [[nodiscard]] steady::time_point longest() const noexcept {
        return committed_at_ + std::min<steady::duration>(at_most_, cost_ * share);
    }

    duration at_most_;
    steady::duration cost_{}; ///< of a commit, averaged, waits for other writers included
    steady::time_point committed_at_{};
    steady::time_point look_at_{};
    std::uint64_t wakes_ = 0; ///< at the last look
    phase phase_ = phase::over;
    bool is_busy_ = false;      ///< work arrived during the last hold
    std::uint32_t in_vain_ = 0; ///< how many chances of a hold to pass over after a hold in vain
    std::uint32_t passes_ = 0;  ///< how many of them are left
};

} // namespace detail
} // namespace v0
} // namespace vouch
