// SPDX-License-Identifier: MIT
// Times for people: in UTC, and relative to now.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>

#include <vouch/vouch.hpp>

namespace tool {

/// "0.9 s", "3 min", "2 h": the largest unit that fits.
[[nodiscard]] inline std::string roughly(vouch::duration d) {
    using namespace std::chrono;
    const auto in = [&](auto unit, const char* name) { return std::to_string(d / unit) + name; };
    if (d < seconds{10}) {
        const auto tenths = d / milliseconds{100};
        return std::to_string(tenths / 10) + '.' + std::to_string(tenths % 10) + " s";
    }
    if (d < minutes{2}) {
        return in(seconds{1}, " s");
    }
    if (d < hours{2}) {
        return in(minutes{1}, " min");
    }
    return d < hours{48} ? in(hours{1}, " h") : in(hours{24}, " days");
}

/// `at - now`, or the longest duration if the difference would overflow.
[[nodiscard]] inline vouch::duration until(vouch::time_point at, vouch::time_point now) {
    return std::max(vouch::later(at, -now.time_since_epoch()).time_since_epoch(), -vouch::duration::max());
}

/// "in 3 min" or "2 h ago".
[[nodiscard]] inline std::string relative(vouch::time_point at, vouch::time_point now) {
    const auto left = until(at, now);
    return left > vouch::duration::zero() ? "in " + roughly(left) : roughly(-left) + " ago";
}

/// "in 3 min" or "overdue 2 h": for a time at which something should happen.
[[nodiscard]] inline std::string due(vouch::time_point at, vouch::time_point now) {
    const auto left = until(at, now);
    return left > vouch::duration::zero() ? "in " + roughly(left) : "overdue " + roughly(-left);
}

/// `2026-11-16T16:13:34.123456Z` for every time there is; years of more than four digits have a sign, as ISO 8601 has
/// it.
[[nodiscard]] inline std::string utc_of(vouch::time_point at) {
    constexpr std::int64_t day_length = 86'400'000'000;
    auto day = std::int64_t{at.time_since_epoch().count()} / day_length;
    auto rest = std::int64_t{at.time_since_epoch().count()} % day_length;
    if (rest < 0) {
        rest += day_length;
        day -= 1;
    }
    // The calendar repeats every 400 years. Shift the date into the years that the standard library supports.
    constexpr std::int64_t era_days = 146'097;
    const auto era = (day - (day % era_days + era_days) % era_days) / era_days;
    const std::chrono::year_month_day date{std::chrono::sys_days{std::chrono::days{day - era * era_days}}};
    const auto year = static_cast<int>(date.year()) + 400 * era;
    std::array<char, 64> text{};
    std::snprintf(text.data(), text.size(), year < 0 || year > 9999 ? "%+07lld-%02u-%02uT" : "%04lld-%02u-%02uT",
                  static_cast<long long>(year), static_cast<unsigned>(date.month()), // NOLINT(google-runtime-int)
                  static_cast<unsigned>(date.day()));
    std::string out = text.data();
    const auto seconds = static_cast<int>(rest / 1'000'000);
    std::snprintf(text.data(), text.size(), "%02d:%02d:%02d.%06dZ", seconds / 3600, seconds / 60 % 60, seconds % 60,
                  static_cast<int>(rest % 1'000'000));
    return out + text.data();
}

[[nodiscard]] inline std::string with_time(vouch::time_point at, vouch::time_point now) {
    return utc_of(at) + " (" + relative(at, now) + ')';
}

} // namespace tool
