// SPDX-License-Identifier: MIT
// Whether a failed attempt is tried again, and when. The runner applies the policy; a store has none. The entry's own
// limit comes first, then the policy of its route, then that of the runner, then the defaults.
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

/// The number of attempts where neither the entry nor a policy sets one.
inline constexpr std::uint32_t default_attempts_max = 8;

/// When and how often to retry. A route takes the fields it leaves unset from its runner, a runner from the defaults.
struct retry_policy {
    std::optional<vouch::backoff> backoff{}; ///< default: exponential, from 30 s to 1 h
    std::uint32_t attempts_max = 0;          ///< default: what a schedule allows, else `default_attempts_max`

    // Presets by kind of work.

    /// For calls of other systems, over hours: 30 s, doubling up to 1 h, 8 attempts. These are the defaults.
    [[nodiscard]] static retry_policy external_call() {
        return {.backoff = exponential{.base = std::chrono::seconds{30}, .max = std::chrono::hours{1}},
                .attempts_max = default_attempts_max};
    }
    /// For listeners to events, over minutes: after 1, 10, 60 and 300 s, 5 attempts.
    [[nodiscard]] static retry_policy listener() {
        using std::chrono::seconds;
        return {.backoff = schedule{seconds{1}, seconds{10}, seconds{60}, seconds{300}}};
    }
    /// For deliveries to subscribers: `base`, doubling without a limit, `attempts_max` attempts.
    [[nodiscard]] static retry_policy webhook(duration base, std::uint32_t attempts_max) {
        return {.backoff = exponential{.base = base, .max = duration::max()}, .attempts_max = attempts_max};
    }
    /// For the compensations of a saga: 1 s, doubling up to 1 min, 6 attempts; then the saga is dead.
    [[nodiscard]] static retry_policy compensation() {
        return {.backoff = exponential{.base = std::chrono::seconds{1}, .max = std::chrono::minutes{1}},
                .attempts_max = 6};
    }
    /// One attempt. An entry that fails is dead at once.
    [[nodiscard]] static retry_policy none() { return {.backoff = schedule{}}; }
};

/// `own`, with the fields it leaves unset taken from `fallback`. If `own` has a schedule, that sets the number of
/// attempts.
[[nodiscard]] inline retry_policy with_fallback(retry_policy own, const retry_policy& fallback) {
    const bool is_counted = own.backoff && own.backoff->attempts();
    if (!own.backoff && fallback.backoff) {
        own.backoff.emplace(*fallback.backoff);
    }
    if (own.attempts_max == 0 && !is_counted) {
        own.attempts_max = fallback.attempts_max;
    }
    return own;
}

/// The delay after attempt number `attempt`, counted from 1; nothing if the entry is not to be tried again.
[[nodiscard]] inline std::optional<duration> delay_after(const retry_policy& policy, const id& entry,
                                                         std::uint32_t attempt) {
    return policy.backoff ? delay_after(*policy.backoff, entry, attempt) : delay_after(backoff{}, entry, attempt);
}

/// How many attempts this entry has before it is dead. A checkpoint sets its count back to 0.
[[nodiscard]] inline std::uint32_t attempts_max_of(const entry& e, const retry_policy& policy) noexcept {
    if (e.attempts_max != 0) {
        return e.attempts_max;
    }
    if (policy.attempts_max != 0) {
        return policy.attempts_max;
    }
    return policy.backoff ? policy.backoff->attempts().value_or(default_attempts_max) : default_attempts_max;
}

/// The outcome of a failed attempt of a claimed entry: a retry, or a bury if its attempts or its schedule are used up.
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
