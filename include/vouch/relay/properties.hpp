// SPDX-License-Identifier: MIT
// A message's parts as names with values, which is what every broker can carry. An adapter has its own place for id,
// topic and payload; everything else goes through here, so that all brokers carry it in the same way:
//
//   vouch-key, vouch-lane, vouch-group    as they are
//   vouch-trail                           ids joined by commas
//   vouch-created-at, vouch-expires-at    microseconds since 1970, decimal
//   any other name                        a header of the message
//
// A header whose own name begins with `vouch-` travels as `vouch-header-` followed by its name.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <vouch/contract/draft.hpp>
#include <vouch/contract/id.hpp>
#include <vouch/contract/time.hpp>
#include <vouch/relay/message.hpp>

namespace vouch {
inline namespace v0 {

namespace detail {

inline constexpr std::string_view property_prefix = "vouch-";
inline constexpr std::string_view escaped_header = "vouch-header-";

[[nodiscard]] inline std::string trail_text(const id_list& trail) {
    std::string out;
    for (const auto& at : trail) {
        if (!out.empty()) {
            out += ',';
        }
        out += to_string(at);
    }
    return out;
}

[[nodiscard]] inline std::optional<id_list> trail_of(std::string_view text) {
    id_list out;
    while (!text.empty()) {
        const auto comma = text.find(',');
        const auto one = id::parse(text.substr(0, comma));
        if (!one) {
            return std::nullopt;
        }
        out.push_back(*one);
        text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 1);
    }
    return out;
}

[[nodiscard]] inline std::optional<time_point> time_of(std::string_view text) {
    std::int64_t since = 0;
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), since);
    if (problem != std::errc{} || end != text.data() + text.size()) {
        return std::nullopt;
    }
    return time_point(duration(since));
}

/// Reads one property whose name begins with `vouch-`. Returns whether its value can be read. Names that a later version
/// has added are passed over.
[[nodiscard]] inline bool read_property(std::string_view name, std::string value, message& into) {
    if (name == "vouch-key") {
        into.key = std::move(value);
    } else if (name == "vouch-lane") {
        into.lane = std::move(value);
    } else if (name == "vouch-group") {
        into.group = std::move(value);
    } else if (name == "vouch-trail") {
        auto trail = trail_of(value);
        into.trail = trail ? std::move(*trail) : id_list{};
        return trail.has_value();
    } else if (name == "vouch-created-at") {
        into.created_at = time_of(value);
        return into.created_at.has_value();
    } else if (name == "vouch-expires-at") {
        into.expires_at = time_of(value);
        return into.expires_at.has_value();
    } else if (name.starts_with(escaped_header)) {
        into.headers.emplace_back(name.substr(escaped_header.size()), std::move(value));
    }
    return true;
}

} // namespace detail

/// Everything of a message except id, topic and payload.
[[nodiscard]] inline header_list properties_of(const message& m) {
    header_list out;
    const auto add = [&](std::string_view name, const std::string& value) {
        if (!value.empty()) {
            out.emplace_back(name, value);
        }
    };
    const auto add_time = [&](std::string_view name, const std::optional<time_point>& at) {
        if (at) {
            out.emplace_back(name, std::to_string(at->time_since_epoch().count()));
        }
    };
    add("vouch-key", m.key);
    add("vouch-lane", m.lane);
    add("vouch-group", m.group);
    add("vouch-trail", detail::trail_text(m.trail));
    add_time("vouch-created-at", m.created_at);
    add_time("vouch-expires-at", m.expires_at);
    for (const auto& [name, value] : m.headers) {
        const bool is_ambiguous = std::string_view(name).starts_with(detail::property_prefix);
        out.emplace_back(is_ambiguous ? std::string(detail::escaped_header) + name : name, value);
    }
    return out;
}

/// Sets those parts of a message. Returns false if one of the values cannot be read; that part is then left empty.
[[nodiscard]] inline bool read_properties(header_list properties, message& into) {
    bool is_readable = true;
    for (auto& [name, value] : properties) {
        if (!std::string_view(name).starts_with(detail::property_prefix)) {
            into.headers.emplace_back(std::move(name), std::move(value));
        } else if (!detail::read_property(name, std::move(value), into)) {
            is_readable = false;
        }
    }
    return is_readable;
}

} // namespace v0
} // namespace vouch
