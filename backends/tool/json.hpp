// SPDX-License-Identifier: MIT
// JSON, for scripts. What is printed is ASCII, so that stored text can neither break a parser nor command a terminal.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include <vouch/vouch.hpp>

#include "output.hpp"
#include "times.hpp"

namespace tool {

using json = nlohmann::ordered_json;

/// Bytes that are not UTF-8 become U+FFFD.
[[nodiscard]] inline std::string text_of(const json& value) {
    return value.dump(-1, ' ', true, json::error_handler_t::replace);
}

[[nodiscard]] inline json json_of(const std::optional<vouch::time_point>& at) {
    return at ? json(utc_of(*at)) : json(nullptr);
}

[[nodiscard]] inline json json_of(const vouch::id& which) {
    return which.is_nil() ? json(nullptr) : json(to_string(which));
}

template <class Ids>
[[nodiscard]] json json_list(const Ids& ids) {
    auto out = json::array();
    for (const auto& one : ids) {
        out.push_back(to_string(one));
    }
    return out;
}

[[nodiscard]] inline json json_of(const vouch::state_counts& counts) {
    auto out = json::object();
    for (const auto s : vouch::all_states) {
        out[std::string(name_of(s))] = counts[s];
    }
    return out;
}

[[nodiscard]] inline bool is_utf8(std::string_view text) {
    while (!text.empty()) {
        const auto beyond = vouch::detail::utf8_character_of(text);
        if (beyond.length == 0 && static_cast<unsigned char>(text.front()) >= 0x80) {
            return false;
        }
        text.remove_prefix(beyond.length > 0 ? beyond.length : 1);
    }
    return true;
}

/// Bytes without loss: a string if they are UTF-8, otherwise `{"hex": "..."}`.
[[nodiscard]] inline json json_of_bytes(std::string_view bytes) {
    return is_utf8(bytes) ? json(std::string(bytes)) : json{{"hex", hex_of(bytes)}};
}

} // namespace tool
