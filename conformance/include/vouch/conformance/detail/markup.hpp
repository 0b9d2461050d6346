// SPDX-License-Identifier: MIT
// Text as part of HTML and XML.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <vouch/version.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

/// The length of the UTF-8 sequence at the front of `text`, or 0 if the bytes are not valid UTF-8.
[[nodiscard]] constexpr std::size_t utf8_length(std::string_view text) noexcept {
    const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
    const auto lead = byte(0);
    const std::size_t length = lead < 0x80                   ? 1
                               : lead >= 0xc2 && lead < 0xe0 ? 2
                               : lead >= 0xe0 && lead < 0xf0 ? 3
                               : lead >= 0xf0 && lead < 0xf5 ? 4
                                                             : 0;
    for (std::size_t i = 1; i < length; ++i) {
        if (byte(i) < 0x80 || byte(i) > 0xbf) {
            return 0;
        }
    }
    const bool is_too_long = (lead == 0xe0 && byte(1) < 0xa0) || (lead == 0xf0 && byte(1) < 0x90);
    const bool is_no_character = (lead == 0xed && byte(1) > 0x9f) || (lead == 0xf4 && byte(1) > 0x8f) ||
                                 (lead == 0xef && byte(1) == 0xbf && byte(2) > 0xbd);
    return is_too_long || is_no_character ? 0 : length;
}

/// Text that is shown as it is, in an element or in a quoted attribute. What XML cannot contain, control characters and
/// bytes that are not UTF-8, becomes `\xNN`.
[[nodiscard]] inline std::string markup(std::string_view text) {
    constexpr std::string_view digits = "0123456789abcdef";
    std::string out;
    while (!text.empty()) {
        const char c = text.front();
        const auto byte = static_cast<unsigned char>(c);
        const auto length = utf8_length(text);
        if (c == '&') {
            out += "&amp;";
        } else if (c == '<') {
            out += "&lt;";
        } else if (c == '>') {
            out += "&gt;";
        } else if (c == '"') {
            out += "&quot;";
        } else if (c == '\'') {
            out += "&#39;";
        } else if (length == 0 || (byte < 0x20 && c != '\n' && c != '\t') || byte == 0x7f) {
            out += {'\\', 'x', digits[byte >> 4U], digits[byte & 15U]};
        } else {
            out += text.substr(0, length);
        }
        text.remove_prefix(length == 0 ? 1 : length);
    }
    return out;
}

/// `<name attributes>content</name>`. The content is markup already.
[[nodiscard]] inline std::string element(std::string_view name, std::string_view content,
                                         std::string_view attributes = {}) {
    return "<" + std::string(name) + (attributes.empty() ? "" : " ") + std::string(attributes) + ">" +
           std::string(content) + "</" + std::string(name) + ">";
}

} // namespace conformance::detail
} // namespace v0
} // namespace vouch
