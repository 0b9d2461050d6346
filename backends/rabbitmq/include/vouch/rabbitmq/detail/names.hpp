// SPDX-License-Identifier: MIT
// Which names a broker can have: 1 to 255 bytes, because AMQP stores the length in one byte; and valid UTF-8 without control
// characters, because error messages and definitions contain them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <vouch/contract/detail/utf8.hpp>

namespace vouch {
inline namespace v0 {
namespace rabbitmq::detail {

inline constexpr std::size_t name_size_max = 255;

[[nodiscard]] constexpr bool is_clean_text(std::string_view text) noexcept {
    while (!text.empty()) {
        const auto c = static_cast<unsigned char>(text.front());
        const auto wide = vouch::detail::utf8_character_of(text);
        if (c < 0x20 || c == 0x7f || (c >= 0x80 && (wide.length == 0 || wide.is_control()))) {
            return false;
        }
        text.remove_prefix(c < 0x80 ? 1 : wide.length);
    }
    return true;
}

/// What is wrong with a name, to follow the words that say which name it is; empty if nothing is.
[[nodiscard]] inline std::string objection_to_name(std::string_view name) {
    if (name.empty()) {
        return "is empty; it is required";
    }
    if (name.size() > name_size_max) {
        return "has " + std::to_string(name.size()) + " bytes, and 255 are allowed";
    }
    return is_clean_text(name) ? "" : "is not valid UTF-8, or has a control character";
}

} // namespace rabbitmq::detail
} // namespace v0
} // namespace vouch
