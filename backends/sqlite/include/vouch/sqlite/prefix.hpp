// SPDX-License-Identifier: MIT
// The prefix of all table and index names. Several stores with different prefixes can share one file.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include <vouch/contract/error.hpp>

namespace vouch {
inline namespace v0 {
namespace sqlite {

inline constexpr std::string_view default_prefix = "vouch_";

/// Throws `invalid_argument` unless the prefix has 1 to 40 letters, digits and underscores, does not begin with a
/// digit, and does not begin with `sqlite_`, which SQLite reserves.
inline void validate_prefix(std::string_view prefix) {
    const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
    const auto fits = [&](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_';
    };
    if (prefix.empty() || prefix.size() > 40 || is_digit(prefix.front()) ||
        !std::all_of(prefix.begin(), prefix.end(), fits)) {
        throw error(error_kind::invalid_argument, "sqlite: options: prefix has " + std::to_string(prefix.size()) +
                                                      " bytes; it must be 1 to 40 letters, digits and underscores, "
                                                      "and must not begin with a digit");
    }
    constexpr std::string_view reserved = "sqlite_";
    const auto same = [](char a, char b) { return (a | 0x20) == (b | 0x20); };
    if (prefix.size() >= reserved.size() && std::equal(reserved.begin(), reserved.end() - 1, prefix.begin(), same) &&
        prefix[reserved.size() - 1] == '_') {
        throw error(error_kind::invalid_argument,
                    "sqlite: options: prefix begins with sqlite_, which SQLite reserves; choose another");
    }
}

} // namespace sqlite
} // namespace v0
} // namespace vouch
