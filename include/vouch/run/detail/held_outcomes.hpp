// SPDX-License-Identifier: MIT
// Outcomes of one queue that a failing hook holds up. They wait here, their leases extended, until the next try. The
// waits between tries grow while the hook keeps failing.
//
// Used by one thread.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <utility>

#include <vouch/contract/time.hpp>
#include <vouch/policy/backoff.hpp>
#include <vouch/run/detail/phases.hpp>
#include <vouch/run/report.hpp>

namespace vouch {
inline namespace v0 {
namespace detail {

template <class Store>
class held_outcomes {
  public:
    using steady = std::chrono::steady_clock;
    using batch = typename phases<Store>::batch;

    held_outcomes(const exponential& waits, duration lease) : waits_(waits), lease_(lease) {}

    [[nodiscard]] bool empty() const noexcept { return held_.empty(); }
    [[nodiscard]] std::size_t size() const noexcept { return held_.size(); }
    /// How many tries have failed in a row.
    [[nodiscard]] std::uint32_t failures() const noexcept { return failures_; }
    /// When there is something to do: a try, or an extension of leases. Requires that it is not empty.
    [[nodiscard]] steady::time_point next() const noexcept { return std::min(try_at_, renew_at_); }

    /// Moves outcomes whose next try is due to the end of `to`, up to `most` in all. They come last, because a hook that
    /// fails for some entries must not hold up the others.
    void move_due(batch& to, std::size_t most, steady::time_point now) {
        if (!held_.empty() && now >= try_at_) {
            const auto count = std::min(held_.size(), most - std::min(most, to.size()));
            const auto end = held_.begin() + static_cast<std::ptrdiff_t>(count);
            std::move(held_.begin(), end, std::back_inserter(to));
            held_.erase(held_.begin(), end);
        }
    }

    /// Keeps the outcomes that a settle at `now` has left, and plans their next try.
    void keep(batch left, steady::time_point now) {
        const bool was_empty = held_.empty();
        std::move(left.begin(), left.end(), std::back_inserter(held_));
        std::stable_partition(held_.begin(), held_.end(), [](const auto& h) { return h.is_untried; });
        if (held_.empty()) {
            failures_ = 0;
        } else if (now >= try_at_ || was_empty) {
            failures_ += 1;
            try_at_ = now + *delay_after(backoff(waits_), held_.front().entry.id, failures_);
            renew_at_ = was_empty ? now : renew_at_;
        }
    }

    /// Extends their leases when that is due. Returns a report of the claims that another worker has taken over.
    [[nodiscard]] report extend_leases(phases<Store>& through, steady::time_point now) {
        if (held_.empty() || now < renew_at_) {
            return {};
        }
        through.extend(held_);
        auto out = through.report_results(held_);
        std::erase_if(held_, [](const auto& h) { return h.result.has_value(); });
        renew_at_ = now + lease_ / 3;
        return out;
    }

    /// Gives up what is left.
    [[nodiscard]] batch take_all() { return std::exchange(held_, {}); }

  private:
    exponential waits_;
    duration lease_;
    batch held_{};
    std::uint32_t failures_ = 0;
    steady::time_point try_at_{};
    steady::time_point renew_at_{};
};

} // namespace detail
} // namespace v0
} // namespace vouch
