// SPDX-License-Identifier: MIT
// Writes to stdout. Stored bytes are escaped, so that they cannot control a terminal or break a parser.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

#include <vouch/vouch.hpp>

namespace tool {

inline void print(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); }

/// Whether all output so far could be written.
[[nodiscard]] inline bool is_written() { return std::fflush(stdout) == 0 && std::ferror(stdout) == 0; }

/// Whether a character is visible as itself: not a control character, a line separator, a change of direction, or a
/// character without width.
[[nodiscard]] inline bool is_visible(std::uint32_t point) {
    struct range {
        std::uint32_t first;
        std::uint32_t last;
    };
    constexpr std::array hidden{range{0x80, 0x9f},       range{0xad, 0xad},       range{0x34f, 0x34f},
                                range{0x61c, 0x61c},     range{0x115f, 0x1160},   range{0x17b4, 0x17b5},
                                range{0x180b, 0x180f},   range{0x200b, 0x200f},   range{0x2028, 0x202e},
                                range{0x2060, 0x206f},   range{0x3164, 0x3164},   range{0xfe00, 0xfe0f},
                                range{0xfeff, 0xfeff},   range{0xffa0, 0xffa0},   range{0xfff0, 0xfffb},
                                range{0x1bca0, 0x1bca3}, range{0x1d173, 0x1d17a}, range{0xe0000, 0xe0fff}};
    for (const auto& r : hidden) {
        if (point >= r.first && point <= r.last) {
            return false;
        }
    }
    return true;
}

inline void append_hex(std::string& to, std::uint32_t value, unsigned digits) {
    constexpr std::string_view hex = "0123456789abcdef";
    while (digits-- > 0) {
        to += hex[(value >> (4 * digits)) & 0xfU];
    }
}

/// A JSON escape such as `\u200b`; two of them for a code point above 0xffff.
inline void append_json_escape(std::string& to, std::uint32_t point) {
    if (point >= 0x10000) {
        append_json_escape(to, 0xd800 + ((point - 0x10000) >> 10U));
        append_json_escape(to, 0xdc00 + ((point - 0x10000) & 0x3ffU));
        return;
    }
    to += "\\u";
    append_hex(to, point, 4);
}

/// The text with everything escaped that is not visible: in JSON by character, otherwise byte by byte.
[[nodiscard]] inline std::string escaped(std::string_view text, bool is_json) {
    std::string out;
    for (std::size_t i = 0; i < text.size();) {
        const char c = text[i];
        const auto byte = static_cast<unsigned char>(c);
        const auto beyond = vouch::detail::utf8_character_of(text.substr(i));
        const auto length = beyond.length > 0 ? beyond.length : 1;
        if (beyond.length > 0 ? is_visible(beyond.point) : byte >= 0x20 && byte < 0x7f) {
            out += is_json && (c == '"' || c == '\\') ? "\\" : "";
            out += text.substr(i, length);
        } else if (is_json) {
            append_json_escape(out, beyond.length > 0 ? beyond.point : byte);
        } else {
            for (const char hidden : text.substr(i, length)) {
                out += "\\x";
                append_hex(out, static_cast<unsigned char>(hidden), 2);
            }
        }
        i += length;
    }
    return out;
}

/// For a terminal.
[[nodiscard]] inline std::string plain(std::string_view text) { return escaped(text, false); }

[[nodiscard]] inline std::string hex_of(std::string_view bytes) {
    std::string out;
    for (const char c : bytes) {
        append_hex(out, static_cast<unsigned char>(c), 2);
    }
    return out;
}

} // namespace tool
