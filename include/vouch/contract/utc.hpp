// SPDX-License-Identifier: MIT
// A time as text, for logs and for the output of failing tests.
#pragma once

#include <array>
#include <chrono>
#include <cstdio>
#include <string>

#include <vouch/contract/time.hpp>

namespace vouch {
inline namespace v0 {

/// `2026-11-16T16:13:34.123456Z`, for any year.
[[nodiscard]] inline std::string to_utc(time_point at) {
    const auto day = std::chrono::floor<std::chrono::days>(at);
    const std::chrono::year_month_day date{day};
    const auto since = (at - std::chrono::time_point_cast<duration>(day)).count();
    const auto second = static_cast<int>(since / 1'000'000);
    std::array<char, 64> text{};
    std::snprintf(text.data(), text.size(), "%04d-%02u-%02uT%02d:%02d:%02d.%06dZ", static_cast<int>(date.year()),
                  static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()), second / 3600,
                  second / 60 % 60, second % 60, static_cast<int>(since % 1'000'000));
    return text.data();
}

} // namespace v0
} // namespace vouch
