// SPDX-License-Identifier: MIT
// JSON, for scripts.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <vouch/vouch.hpp>

#include "output.hpp"
#include "times.hpp"

namespace tool {

/// Builds a JSON object.
class json_object {
  public:
    json_object& text(std::string_view name, std::string_view value) { return raw(name, quoted(value)); }
    json_object& number(std::string_view name, std::uint64_t value) { return raw(name, std::to_string(value)); }
    json_object& time(std::string_view name, const std::optional<vouch::time_point>& value) {
        return raw(name, value ? quoted(utc_of(*value)) : "null");
    }
    json_object& id(std::string_view name, const vouch::id& value) {
        return raw(name, value.is_nil() ? "null" : quoted(to_string(value)));
    }
    json_object& raw(std::string_view name, std::string_view value) {
        text_ += text_.empty() ? "" : ", ";
        text_ += quoted(name) + ": ";
        text_ += value;
        return *this;
    }
    [[nodiscard]] std::string str() const { return '{' + text_ + '}'; }

    /// Bytes that are not text become \u00XX, so that the result is always valid JSON.
    [[nodiscard]] static std::string quoted(std::string_view value) { return '"' + escaped(value, true) + '"'; }

  private:
    std::string text_{};
};

[[nodiscard]] inline std::string json_list(const std::vector<std::string>& items) {
    std::string out = "[";
    for (const auto& item : items) {
        out += (out.size() > 1 ? ", " : "") + item;
    }
    return out + ']';
}

[[nodiscard]] inline std::string json_of(const vouch::state_counts& counts) {
    json_object out;
    for (const auto s : vouch::all_states) {
        out.number(name_of(s), counts[s]);
    }
    return out.str();
}

} // namespace tool
