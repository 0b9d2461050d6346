// SPDX-License-Identifier: MIT
// The defects with which a plain store keeps a name, a size or a time wrongly, whatever the operation.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include <vouch/contract/entry.hpp>
#include <vouch/contract/time.hpp>

#include "variant.hpp"

namespace mutants {

// Times as a store may compare them by mistake.

[[nodiscard]] inline std::uint64_t as_unsigned(vouch::time_point t) noexcept {
    return static_cast<std::uint64_t>(t.time_since_epoch().count());
}
[[nodiscard]] inline double as_double(vouch::time_point t) noexcept {
    return static_cast<double>(t.time_since_epoch().count());
}

namespace detail {

inline void change_name(const variant& how, vouch::entry& e) {
    vouch::for_each_field(
        [&](std::string_view name, auto& value) {
            if constexpr (std::is_same_v<std::remove_cvref_t<decltype(value)>, std::string>) {
                value = name == how.field ? folded(value, how.fold) : value;
            }
        },
        e);
    for (auto& [name, value] : e.headers) {
        name = how.field == "header name" ? folded(name, how.fold) : name;
        value = how.field == "header value" ? folded(value, how.fold) : value;
    }
}

template <class Change>
void each_content(vouch::entry& e, const Change& change) {
    change(e.payload);
    change(e.progress);
    if (e.result) {
        change(*e.result);
    }
}

inline void shorten_if(std::string& s, std::size_t size) { s.resize(s.size() == size ? size - 1 : s.size()); }

template <class Change>
void each_moment(vouch::entry& e, const Change& change) {
    vouch::for_each_field(
        [&](std::string_view, auto& value) {
            using type = std::remove_cvref_t<decltype(value)>;
            if constexpr (std::is_same_v<type, vouch::time_point>) {
                value = change(value);
            } else if constexpr (std::is_same_v<type, std::optional<vouch::time_point>>) {
                value = value ? std::optional{change(*value)} : value;
            }
        },
        e);
}

/// The optional times of an entry but the lease.
inline void unset_if(vouch::entry& e, vouch::time_point t) {
    e.expires_at = e.expires_at == t ? std::nullopt : e.expires_at;
    e.last_attempt_at = e.last_attempt_at == t ? std::nullopt : e.last_attempt_at;
}

[[nodiscard]] inline vouch::time_point through_double(vouch::time_point t) {
    constexpr double end = 9'223'372'036'854'775'808.0;
    const auto near = as_double(t);
    return near >= end ? vouch::time_point::max() : vouch::time_point{vouch::duration{static_cast<std::int64_t>(near)}};
}

[[nodiscard]] inline vouch::time_point through_nanoseconds(vouch::time_point t) {
    const auto wrapped = static_cast<std::int64_t>(as_unsigned(t) * 1000U);
    return std::chrono::floor<vouch::duration>(vouch::time_point{}.time_since_epoch() +
                                               std::chrono::nanoseconds{wrapped}) +
           vouch::time_point{};
}

[[nodiscard]] inline vouch::time_point through_seconds_of_32_bits(vouch::time_point t) {
    const auto whole = std::chrono::floor<std::chrono::seconds>(t);
    const auto wrapped = static_cast<std::int32_t>(whole.time_since_epoch().count());
    return vouch::time_point{std::chrono::seconds{wrapped}} + (t - whole);
}

} // namespace detail

inline void corrupt_by_size(const variant& how, vouch::entry& e) {
    constexpr std::size_t limit = 1024 * 1024;
    switch (how.defect) {
    case defect::name_is_changed: detail::change_name(how, e); break;
    case defect::bytes_have_sixteen_bit_lengths:
        detail::each_content(e, [](std::string& s) { s.resize(s.size() & 0xffffU); });
        break;
    case defect::bytes_of_1024_lose_one:
        detail::each_content(e, [](std::string& s) { detail::shorten_if(s, 1024); });
        break;
    case defect::bytes_of_65535_lose_one:
        detail::each_content(e, [](std::string& s) { detail::shorten_if(s, 65'535); });
        break;
    case defect::bytes_of_the_limit_lose_one:
        detail::each_content(e, [](std::string& s) { detail::shorten_if(s, limit); });
        break;
    case defect::header_values_keep_4095:
        for (auto& header : e.headers) {
            header.second.resize(std::min<std::size_t>(header.second.size(), 4095));
        }
        break;
    case defect::headers_keep_sixty_three: e.headers.resize(std::min<std::size_t>(e.headers.size(), 63)); break;
    case defect::trail_keeps_thirty_one: e.trail.resize(std::min<std::size_t>(e.trail.size(), 31)); break;
    case defect::error_keeps_ninety_nine: e.last_error.resize(std::min<std::size_t>(e.last_error.size(), 99)); break;
    default: break;
    }
}

inline void corrupt_by_time(const variant& how, vouch::entry& e) {
    using namespace std::chrono;
    using moment = vouch::time_point;
    switch (how.defect) {
    case defect::time_is_a_double: detail::each_moment(e, detail::through_double); break;
    case defect::time_is_in_nanoseconds: detail::each_moment(e, detail::through_nanoseconds); break;
    case defect::time_wraps_in_2038: detail::each_moment(e, detail::through_seconds_of_32_bits); break;
    case defect::time_starts_in_year_one:
        detail::each_moment(e, [](moment t) { return std::max(t, moment{sys_days{January / 1 / 1}}); });
        break;
    case defect::time_ends_in_year_9999:
        detail::each_moment(e, [](moment t) { return std::min(t, moment{sys_days{December / 31 / 9999}}); });
        break;
    case defect::zero_time_is_unset: detail::unset_if(e, moment{}); break;
    case defect::first_time_is_unset: detail::unset_if(e, moment::min()); break;
    case defect::last_time_is_unset: detail::unset_if(e, moment::max()); break;
    default: break;
    }
}

} // namespace mutants
