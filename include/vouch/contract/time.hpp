// SPDX-License-Identifier: MIT
// Time as the contract knows it: microseconds of UTC, always handed in by the caller. No store reads a clock,
// so the same calls give the same result, and tests own the time.
#pragma once

#include <chrono>
#include <cstdint>

#include <vouch/version.hpp>

namespace vouch {
inline namespace v0 {

using duration = std::chrono::microseconds;
using time_point = std::chrono::time_point<std::chrono::system_clock, duration>;

/// `at + by`, held at the ends of the representable range instead of overflowing.
[[nodiscard]] constexpr time_point later(time_point at, duration by) noexcept {
    if (by > duration::zero() && at > time_point::max() - by) {
        return time_point::max();
    }
    if (by < duration::zero() && at < time_point::min() - by) {
        return time_point::min();
    }
    return at + by;
}

} // namespace v0
} // namespace vouch
