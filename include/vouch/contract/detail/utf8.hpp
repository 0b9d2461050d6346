// SPDX-License-Identifier: MIT
// Reads UTF-8 beyond ASCII. Names must be valid UTF-8, because databases and brokers keep nothing else as text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include <vouch/version.hpp>

namespace vouch {
inline namespace v0 {
namespace detail {

/// A character outside ASCII.
struct utf8_character {
    std::uint32_t point = 0;
    std::size_t length = 0; ///< in bytes; 0: the text does not begin with such a character

    /// U+0080 to U+009F. Terminals obey some of them.
    [[nodiscard]] constexpr bool is_control() const noexcept { return length > 0 && point < 0xa0; }
};

/// The character outside ASCII with which the text begins. Overlong forms, surrogates and values above U+10FFFF are not
/// valid.
[[nodiscard]] constexpr utf8_character utf8_character_of(std::string_view text) noexcept {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(i < text.size() ? text[i] : '\0'); };
    const auto first = byte(0);
    const std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc2 ? 2 : 0;
    if (length == 0 || first > 0xf4) {
        return {};
    }
    std::uint32_t point = first & (0x7fU >> length);
    for (std::size_t i = 1; i < length; ++i) {
        if ((byte(i) & 0xc0U) != 0x80U) {
            return {};
        }
        point = (point << 6U) | (byte(i) & 0x3fU);
    }
    const std::uint32_t least = length == 4 ? 0x10000 : length == 3 ? 0x800 : 0x80;
    const bool surrogate = point >= 0xd800 && point < 0xe000;
    return point >= least && point <= 0x10ffff && !surrogate ? utf8_character{point, length} : utf8_character{};
}

} // namespace detail
} // namespace v0
} // namespace vouch
