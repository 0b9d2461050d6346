// SPDX-License-Identifier: MIT
// A draft or an entry as one line for a person: `{id=..., queue="mail", state=pending}`. Fields that have their default
// value are left out.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <type_traits>

#include <vouch/contract/id.hpp>
#include <vouch/contract/time.hpp>
#include <vouch/contract/utc.hpp>

namespace vouch {
inline namespace v0 {
namespace detail {

/// In quotes; bytes that do not print as `\x00`; cut after 80 bytes.
[[nodiscard]] inline std::string quoted_text(std::string_view text) {
    constexpr std::size_t size_max = 80;
    constexpr std::string_view digits = "0123456789abcdef";
    std::string out = "\"";
    for (const char c : text.substr(0, size_max)) {
        const auto byte = static_cast<unsigned char>(c);
        if (c == '"' || c == '\\') {
            out += '\\';
            out += c;
        } else if (byte < 0x20 || byte == 0x7f) {
            out += "\\x";
            out += digits[byte >> 4U];
            out += digits[byte & 0xfU];
        } else {
            out += c;
        }
    }
    out += '"';
    if (text.size() > size_max) {
        out += "... (" + std::to_string(text.size()) + " bytes)";
    }
    return out;
}

template <class T>
[[nodiscard]] std::string field_text(const T& value) {
    if constexpr (std::is_same_v<T, bool>) {
        return value ? "true" : "false";
    } else if constexpr (std::is_integral_v<T>) {
        return std::to_string(value);
    } else if constexpr (std::is_enum_v<T>) {
        return std::string(name_of(value));
    } else if constexpr (std::is_same_v<T, time_point>) {
        return to_utc(value);
    } else if constexpr (std::is_same_v<T, id>) {
        return to_string(value);
    } else if constexpr (std::is_same_v<T, std::string>) {
        return quoted_text(value);
    } else if constexpr (requires { value.first; }) {
        return field_text(value.first) + ": " + field_text(value.second);
    } else if constexpr (requires { value.has_value(); }) {
        return value ? field_text(*value) : "none";
    } else {
        std::string out = "[";
        for (const auto& item : value) {
            out += (out.size() == 1 ? "" : ", ") + field_text(item);
        }
        return out + "]";
    }
}

/// Every field of `value` that has not its default value; the id always.
template <class T>
[[nodiscard]] std::string all_fields_text(const T& value) {
    const T unset{};
    std::string out = "{";
    for_each_field(
        [&](std::string_view name, const auto& given, const auto& by_default) {
            if (name == "id" || name == "state" || given != by_default) {
                out += out.size() == 1 ? "" : ", ";
                out += name;
                out += '=';
                out += field_text(given);
            }
        },
        value, unset);
    return out + "}";
}

} // namespace detail
} // namespace v0
} // namespace vouch
