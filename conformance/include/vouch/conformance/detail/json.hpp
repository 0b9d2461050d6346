// SPDX-License-Identifier: MIT
// The little JSON that reports need: strings, objects and lists.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <vouch/version.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

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

class json_object {
  public:
    json_object& text(std::string_view name, std::string_view value) { return raw(name, json(value)); }
    json_object& number(std::string_view name, std::uint64_t value) { return raw(name, std::to_string(value)); }
    json_object& raw(std::string_view name, const std::string& value) {
        out_ += std::string(out_.empty() ? "" : ", ") + json(name) + ": " + value;
        return *this;
    }
    [[nodiscard]] std::string str() const { return "{" + out_ + "}"; }

  private:
    std::string out_{};
};

template <class Items, class Each>
[[nodiscard]] std::string json_list(const Items& items, std::string_view between, Each&& each) {
    std::string out;
    for (const auto& item : items) {
        out += (out.empty() ? "" : std::string(between)) + each(item);
    }
    return "[" + out + "]";
}

} // namespace conformance::detail
} // namespace v0
} // namespace vouch
