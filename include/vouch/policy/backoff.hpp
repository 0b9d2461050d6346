// SPDX-License-Identifier: MIT
// How long to wait after the n-th attempt. Pure functions: the same entry and attempt always give the same delay, jitter
// included, so that a schedule can be replayed and a test can pin it. Nothing overflows for any attempt.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <utility>
#include <variant>
#include <vector>
#include <vouch/contract/error.hpp>
#include <vouch/contract/id.hpp>
#include <vouch/contract/time.hpp>

namespace vouch {
inline namespace v0 {

/// min(base * 2^(n-1), max).
struct exponential {
    duration base = std::chrono::seconds{30};
    duration max = std::chrono::hours{1};
    double jitter = 0; ///< 0 to 1: the share of the delay that may be taken off it

    [[nodiscard]] std::optional<duration> raw(std::uint32_t attempt) const noexcept {
        auto delay = std::min(base, max);
        for (std::uint32_t n = 1; n < attempt && delay < max; ++n) {
            if (delay <= duration::zero()) {
                break; // doubling nothing stays nothing
            }
            delay = delay > max / 2 ? max : delay * 2;
        }
        return delay;
    }
};

/// The n-th delay of a list; after its end there is no further try. An empty list means none at all.
struct schedule {
    std::vector<duration> delays{};
    double jitter = 0;

    schedule() = default;
    schedule(std::initializer_list<duration> list, double with_jitter = 0) : delays(list), jitter(with_jitter) {}
    explicit schedule(std::vector<duration> list, double with_jitter = 0)
        : delays(std::move(list)), jitter(with_jitter) {}

    [[nodiscard]] std::optional<duration> raw(std::uint32_t attempt) const noexcept {
        if (attempt > delays.size()) {
            return std::nullopt;
        }
        return delays[attempt - 1];
    }
};

/// Always the same.
struct fixed {
    duration delay{};
    double jitter = 0;

    [[nodiscard]] std::optional<duration> raw(std::uint32_t) const noexcept { return delay; }
};

using backoff = std::variant<exponential, schedule, fixed>;

namespace detail {

/// Takes up to `jitter` of the delay off, by a number in [0, 1) that (entry, attempt) alone decides.
[[nodiscard]] inline duration jittered(duration delay, double jitter, const id& entry, std::uint32_t attempt) noexcept {
    const auto share = std::clamp(jitter, 0.0, 1.0);
    if (!(share > 0) || delay <= duration::zero()) {
        return std::max(delay, duration::zero());
    }
    const auto bits = mix(entry.high ^ mix(entry.low ^ mix(attempt)));
    const auto unit = static_cast<double>(bits >> 11) * 0x1.0p-53;
    const auto off = static_cast<double>(delay.count()) * share * unit;
    return delay - std::min(delay, duration{static_cast<duration::rep>(off)});
}

} // namespace detail

/// The wait after attempt `attempt` (counted from 1) of this entry; nothing if there is to be no further one.
[[nodiscard]] inline std::optional<duration> delay_after(const backoff& how, const id& entry, std::uint32_t attempt) {
    if (attempt == 0) {
        throw error(error_kind::invalid_argument, "backoff: attempt is 0, attempts count from 1");
    }
    const auto after = [&](const auto& policy) -> std::optional<duration> {
        const auto raw = policy.raw(attempt);
        return raw ? std::optional{detail::jittered(*raw, policy.jitter, entry, attempt)} : std::nullopt;
    };
    if (const auto* const doubling = std::get_if<exponential>(&how)) {
        return after(*doubling);
    }
    if (const auto* const listed = std::get_if<schedule>(&how)) {
        return after(*listed);
    }
    return after(std::get<fixed>(how));
}

} // namespace v0
} // namespace vouch
