// SPDX-License-Identifier: MIT
// How long to wait between attempts. The functions are pure: the same entry and attempt always give the same delay,
// jitter included, so a run can be replayed and a test can expect an exact time. No attempt number overflows.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <utility>
#include <vector>

#include <vouch/contract/detail/mix.hpp>
#include <vouch/contract/error.hpp>
#include <vouch/contract/id.hpp>
#include <vouch/contract/time.hpp>

namespace vouch {
inline namespace v0 {

/// `base` after the first attempt, then twice as long after each one, up to `max`.
struct exponential {
    duration base = std::chrono::seconds{30};
    duration max = std::chrono::hours{1};
    double jitter = 0; ///< 0 to 1: up to this share of the delay is taken off
};

/// The delays in order. After the last one the entry is not tried again; an empty list allows one attempt.
struct schedule {
    std::vector<duration> delays{};
    double jitter = 0; ///< as in `exponential`

    schedule() = default;
    schedule(std::initializer_list<duration> list, double with_jitter = 0) : delays(list), jitter(with_jitter) {}
    explicit schedule(std::vector<duration> list, double with_jitter = 0)
        : delays(std::move(list)), jitter(with_jitter) {}
};

/// The same delay after every attempt.
struct fixed {
    duration delay{};
    double jitter = 0; ///< as in `exponential`
};

/// Any of the three. A default one is a default `exponential`.
class backoff {
  public:
    backoff() = default;
    backoff(const exponential& e) : doubling_(e) {}                                             // NOLINT: implicit
    backoff(const fixed& f) : doubling_{.base = f.delay, .max = f.delay, .jitter = f.jitter} {} // NOLINT: implicit
    backoff(schedule s)
        : doubling_{.jitter = s.jitter}, delays_(std::move(s.delays)), listed_(true) {} // NOLINT: implicit

    /// The number of attempts that a schedule allows, which is one more than its delays; nothing if there is no end.
    [[nodiscard]] std::optional<std::uint32_t> attempts() const noexcept {
        return listed_ ? std::optional{static_cast<std::uint32_t>(delays_.size() + 1)} : std::nullopt;
    }

    friend std::optional<duration> delay_after(const backoff& how, const id& entry, std::uint32_t attempt);

  private:
    [[nodiscard]] duration doubled(std::uint32_t attempt) const noexcept {
        auto delay = std::min(doubling_.base, doubling_.max);
        for (std::uint32_t n = 1; n < attempt && delay < doubling_.max && delay > duration::zero(); ++n) {
            delay = delay > doubling_.max / 2 ? doubling_.max : delay * 2;
        }
        return delay;
    }

    /// Takes up to `jitter` of the delay off. How much depends on the entry and the attempt only.
    [[nodiscard]] duration jittered(duration delay, const id& entry, std::uint32_t attempt) const noexcept {
        const auto share = std::clamp(doubling_.jitter, 0.0, 1.0);
        if (!(share > 0) || delay <= duration::zero()) {
            return std::max(delay, duration::zero());
        }
        const auto bits = detail::mix(entry.high ^ detail::mix(entry.low ^ detail::mix(attempt)));
        const auto unit = static_cast<double>(bits >> 11) * 0x1.0p-53;
        const auto off = static_cast<double>(delay.count()) * share * unit;
        return delay - std::min(delay, duration{static_cast<duration::rep>(off)});
    }

    exponential doubling_{};
    std::vector<duration> delays_{};
    bool listed_ = false; ///< uses `delays_`, else `doubling_`
};

/// The delay after attempt number `attempt`, counted from 1; nothing if the entry is not to be tried again. Throws
/// `invalid_argument` if `attempt` is 0.
[[nodiscard]] inline std::optional<duration> delay_after(const backoff& how, const id& entry, std::uint32_t attempt) {
    if (attempt == 0) {
        throw error(error_kind::invalid_argument, "backoff: attempt is 0, attempts count from 1");
    }
    if (how.listed_ && attempt > how.delays_.size()) {
        return std::nullopt;
    }
    return how.jittered(how.listed_ ? how.delays_[attempt - 1] : how.doubled(attempt), entry, attempt);
}

} // namespace v0
} // namespace vouch
