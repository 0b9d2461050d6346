// SPDX-License-Identifier: MIT
// Writes JSON that is valid whatever the store holds: bytes that are no UTF-8 become U+FFFD. `<` and the separators of
// lines are escaped, so the text stays data even inside a script.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <vouch/contract/detail/utf8.hpp>
#include <vouch/contract/id.hpp>
#include <vouch/contract/time.hpp>

namespace vouch {
inline namespace v0 {
namespace page {
namespace detail {

inline void append_escape(std::string& to, std::uint32_t point) {
    constexpr std::string_view hex = "0123456789abcdef";
    to += "\\u";
    for (unsigned shift = 16; shift > 0; shift -= 4) {
        to += hex[(point >> (shift - 4)) & 0xfU];
    }
}

[[nodiscard]] inline std::string json_text(std::string_view text) {
    std::string out = "\"";
    for (std::size_t i = 0; i < text.size();) {
        const char c = text[i];
        const auto byte = static_cast<unsigned char>(c);
        const auto beyond = vouch::detail::utf8_character_of(text.substr(i));
        if (beyond.length > 0) {
            if (beyond.point == 0x2028 || beyond.point == 0x2029) {
                append_escape(out, beyond.point);
            } else {
                out += text.substr(i, beyond.length);
            }
            i += beyond.length;
            continue;
        }
        if (byte >= 0x80) {
            out += "\\ufffd";
        } else if (byte < 0x20 || byte == 0x7f || c == '<' || c == '>' || c == '&') {
            append_escape(out, byte);
        } else {
            out += c == '"' || c == '\\' ? "\\" : "";
            out += c;
        }
        ++i;
    }
    return out + '"';
}

/// Whether bytes can be shown as text: UTF-8 without control characters other than white space.
[[nodiscard]] inline bool is_text(std::string_view bytes) {
    for (std::size_t i = 0; i < bytes.size();) {
        const auto byte = static_cast<unsigned char>(bytes[i]);
        const auto beyond = vouch::detail::utf8_character_of(bytes.substr(i));
        const bool is_space = byte == '\n' || byte == '\t' || byte == '\r';
        if (beyond.is_control() || (beyond.length == 0 && ((byte < 0x20 && !is_space) || byte >= 0x7f))) {
            return false;
        }
        i += beyond.length > 0 ? beyond.length : 1;
    }
    return true;
}

[[nodiscard]] inline std::string base64(std::string_view bytes) {
    constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string out;
    for (std::size_t i = 0; i < bytes.size(); i += 3) {
        const auto left = bytes.size() - i;
        const auto byte = [&](std::size_t n) {
            return n < left ? static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[i + n])) : 0U;
        };
        const auto three = byte(0) << 16U | byte(1) << 8U | byte(2);
        out += digits[three >> 18U];
        out += digits[three >> 12U & 63U];
        out += left > 1 ? digits[three >> 6U & 63U] : '=';
        out += left > 2 ? digits[three & 63U] : '=';
    }
    return out;
}

/// Times are milliseconds since 1970, as in JavaScript.
[[nodiscard]] inline std::string json_time(const std::optional<time_point>& at) {
    return at ? std::to_string(at->time_since_epoch().count() / 1000) : "null";
}
[[nodiscard]] inline std::string json_id(const id& which) {
    return which.is_nil() ? "null" : '"' + to_string(which) + '"';
}

/// Members of an object, or, without names, items of an array.
class json {
  public:
    json& raw(std::string_view name, std::string_view value) {
        text_ += text_.empty() ? "" : ",";
        text_ += json_text(name) + ':';
        text_ += value;
        return *this;
    }
    json& text(std::string_view name, std::string_view value) { return raw(name, json_text(value)); }
    json& number(std::string_view name, std::uint64_t value) { return raw(name, std::to_string(value)); }
    json& truth(std::string_view name, bool value) { return raw(name, value ? "true" : "false"); }
    json& time(std::string_view name, const std::optional<time_point>& at) { return raw(name, json_time(at)); }
    json& id(std::string_view name, const vouch::id& which) { return raw(name, json_id(which)); }
    json& item(std::string_view value) {
        text_ += text_.empty() ? "" : ",";
        text_ += value;
        return *this;
    }
    [[nodiscard]] std::string object() const { return '{' + text_ + '}'; }
    [[nodiscard]] std::string array() const { return '[' + text_ + ']'; }

  private:
    std::string text_{};
};

} // namespace detail
} // namespace page
} // namespace v0
} // namespace vouch
