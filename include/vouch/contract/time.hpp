// SPDX-License-Identifier: MIT
// Time in the contract: microseconds of UTC, always an argument. No store reads a clock, so the same calls give the
// same results, and tests control the time.
#pragma once

#include <chrono>
#include <cstdint>

#include <vouch/version.hpp>

namespace vouch {
inline namespace v0 {

/// A length of time.
using duration = std::chrono::microseconds;
/// A point in time, UTC.
using time_point = std::chrono::time_point<std::chrono::system_clock, duration>;

/// `at + by`, or the last (first) representable time if the sum would overflow.
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
