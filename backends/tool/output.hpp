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

/// For a terminal: the text, with every byte escaped that is not part of a visible character.
[[nodiscard]] inline std::string plain(std::string_view text) {
    std::string out;
    for (std::size_t i = 0; i < text.size();) {
        const auto byte = static_cast<unsigned char>(text[i]);
        const auto beyond = vouch::detail::utf8_character_of(text.substr(i));
        const auto length = beyond.length > 0 ? beyond.length : 1;
        if (beyond.length > 0 ? is_visible(beyond.point) : byte >= 0x20 && byte < 0x7f) {
            out += text.substr(i, length);
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

/// A remark on stderr.
inline void say(const std::string& text) { std::fprintf(stderr, "vouch: %s\n", text.c_str()); }

[[nodiscard]] inline std::string hex_of(std::string_view bytes) {
    std::string out;
    for (const char c : bytes) {
        append_hex(out, static_cast<unsigned char>(c), 2);
    }
    return out;
}

} // namespace tool
