// SPDX-License-Identifier: MIT
// Bytes as text that a terminal and a JSON parser can take.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <vouch/version.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::broker::detail {

/// A quoted string. Bytes outside printable ASCII are escaped one by one.
[[nodiscard]] inline std::string json(std::string_view text) {
    constexpr std::string_view digits = "0123456789abcdef";
    std::string out = "\"";
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (c == '"' || c == '\\') {
            out += {'\\', c};
        } else if (byte < 0x20 || byte >= 0x7f) {
            out += std::string("\\u00") + digits[byte >> 4U] + digits[byte & 15U];
        } else {
            out += c;
        }
    }
    return out + "\"";
}

/// The same, cut if it is long, with its length.
[[nodiscard]] inline std::string shown(std::string_view text) {
    constexpr std::size_t length_max = 60;
    const auto size = " (" + std::to_string(text.size()) + " bytes)";
    return text.size() <= length_max ? json(text) + size : json(text.substr(0, length_max)) + " and so on" + size;
}

} // namespace conformance::broker::detail
} // namespace v0
} // namespace vouch
