// SPDX-License-Identifier: MIT
// Whether a failed attempt is tried again, and when. Policy lives here and in the runner; the store carries none.
// What an entry says goes before what its handler says, and that before the default.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include <vouch/contract/entry.hpp>
#include <vouch/contract/outcome.hpp>
#include <vouch/contract/time.hpp>
#include <vouch/policy/backoff.hpp>

namespace vouch {
inline namespace v0 {

inline constexpr std::uint32_t default_attempts_max = 8;

/// What is left open is decided elsewhere: for a route by the runner's policy, for a runner by the defaults.
struct retry_policy {
    std::optional<vouch::backoff> backoff{}; ///< unset, in the end: exponential, from 30 s to 1 h
    std::uint32_t attempts_max = 0; ///< 0: as many as a schedule has delays, and one; else `default_attempts_max`

    // Presets, by the kind of work.

    /// Calls of other systems, for hours: 30 s, doubling up to 1 h, 8 attempts. The same as a default `retry_policy`.
    [[nodiscard]] static retry_policy external_call() {
        return {.backoff = exponential{.base = std::chrono::seconds{30}, .max = std::chrono::hours{1}},
                .attempts_max = default_attempts_max};
    }
    /// Listeners of events, for minutes: after 1, 10, 60 and 300 s, 5 attempts.
    [[nodiscard]] static retry_policy listener() {
        using std::chrono::seconds;
        return {.backoff = schedule{seconds{1}, seconds{10}, seconds{60}, seconds{300}}};
    }
    /// Deliveries to subscribers: `base`, doubling without end, as many attempts as are configured.
    [[nodiscard]] static retry_policy webhook(duration base, std::uint32_t attempts_max) {
        return {.backoff = exponential{.base = base, .max = duration::max()}, .attempts_max = attempts_max};
    }
    /// Compensations of a saga: 5 retries after the first try, 1 s doubling up to 1 min; then the saga is dead.
    [[nodiscard]] static retry_policy compensation() {
        return {.backoff = exponential{.base = std::chrono::seconds{1}, .max = std::chrono::minutes{1}},
                .attempts_max = 6};
    }
    /// One attempt: an entry that fails is dead at once.
    [[nodiscard]] static retry_policy none() { return {.backoff = schedule{}}; }
};

/// `own`, with what it leaves open taken from `fallback`. A schedule of its own brings its own number of attempts.
[[nodiscard]] inline retry_policy filled_up(retry_policy own, const retry_policy& fallback) {
    const bool is_counted = own.backoff && own.backoff->attempts();
    if (!own.backoff) {
        own.backoff = fallback.backoff;
    }
    if (own.attempts_max == 0 && !is_counted) {
        own.attempts_max = fallback.attempts_max;
    }
    return own;
}

/// The wait after attempt `attempt` of this entry; nothing if there is to be no further one.
[[nodiscard]] inline std::optional<duration> delay_after(const retry_policy& policy, const id& entry,
                                                         std::uint32_t attempt) {
    return policy.backoff ? delay_after(*policy.backoff, entry, attempt) : delay_after(backoff{}, entry, attempt);
}

/// How often this entry may be claimed between two checkpoints.
[[nodiscard]] inline std::uint32_t attempts_max_of(const entry& e, const retry_policy& policy) noexcept {
    if (e.attempts_max != 0) {
        return e.attempts_max;
    }
    if (policy.attempts_max != 0) {
        return policy.attempts_max;
    }
    return policy.backoff ? policy.backoff->attempts().value_or(default_attempts_max) : default_attempts_max;
}

/// What a failed attempt of a claimed entry comes to: a retry, or a burial when its attempts or its time are used up.
[[nodiscard]] inline outcome after_failure(const entry& e, std::string error, const retry_policy& policy,
                                           time_point now) {
    if (e.attempts >= attempts_max_of(e, policy)) {
        return bury{.error = std::move(error)};
    }
    const auto delay = delay_after(policy, e.id, e.attempts);
    if (!delay) {
        return bury{.error = std::move(error)};
    }
    return retry{.error = std::move(error), .at = later(now, *delay)};
}

} // namespace v0
} // namespace vouch
