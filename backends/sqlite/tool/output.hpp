// SPDX-License-Identifier: MIT
// What is printed: text for people, JSON for scripts. Neither lets a stored byte do anything to a terminal or a parser.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <vouch/observe.hpp>
#include <vouch/vouch.hpp>

namespace tool {

inline void print(std::string_view text) { std::fwrite(text.data(), 1, text.size(), stdout); }

/// How many bytes of the text's beginning are one printable character beyond ASCII; 0 if they are not.
[[nodiscard]] inline std::size_t utf8_length(std::string_view text) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(i < text.size() ? text[i] : '\0'); };
    const auto first = byte(0);
    const std::size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc2 ? 2 : 0;
    if (length == 0 || first > 0xf4) {
        return 0;
    }
    std::uint32_t point = first & (0x7fU >> length);
    for (std::size_t i = 1; i < length; ++i) {
        if ((byte(i) & 0xc0U) != 0x80U) {
            return 0;
        }
        point = (point << 6U) | (byte(i) & 0x3fU);
    }
    const std::uint32_t least = length == 4 ? 0x10000 : length == 3 ? 0x800 : 0xa0; // below 0xa0: control characters
    const bool surrogate = point >= 0xd800 && point < 0xe000;
    return point >= least && point <= 0x10ffff && !surrogate ? length : 0;
}

/// With everything that is not plain text escaped, byte by byte.
[[nodiscard]] inline std::string escaped(std::string_view text, bool quotes) {
    constexpr std::string_view hex = "0123456789abcdef";
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        const auto byte = static_cast<unsigned char>(c);
        if (const auto length = utf8_length(text.substr(i)); length > 0) {
            out += text.substr(i, length);
            i += length - 1;
        } else if (quotes && (c == '"' || c == '\\')) {
            out += '\\';
            out += c;
        } else if (byte < 0x20 || byte >= 0x7f) {
            out += quotes ? "\\u00" : "\\x";
            out += hex[byte >> 4U];
            out += hex[byte & 0xfU];
        } else {
            out += c;
        }
    }
    return out;
}

/// For a terminal.
[[nodiscard]] inline std::string plain(std::string_view text) { return escaped(text, false); }

[[nodiscard]] inline std::string hex_of(std::string_view bytes) {
    constexpr std::string_view hex = "0123456789abcdef";
    std::string out;
    for (const char c : bytes) {
        out += hex[static_cast<unsigned char>(c) >> 4U];
        out += hex[static_cast<unsigned char>(c) & 0xfU];
    }
    return out;
}

/// "3 min", "2 h": the largest unit that fits.
[[nodiscard]] inline std::string roughly(vouch::duration d) {
    using namespace std::chrono;
    const auto in = [&](auto unit, const char* name) { return std::to_string(d / unit) + name; };
    if (d < milliseconds{1000}) {
        return in(milliseconds{1}, " ms");
    }
    if (d < minutes{2}) {
        return in(seconds{1}, " s");
    }
    if (d < hours{2}) {
        return in(minutes{1}, " min");
    }
    return d < hours{48} ? in(hours{1}, " h") : in(hours{24}, " days");
}

/// "in 3 min" or "2 h ago".
[[nodiscard]] inline std::string relative(vouch::time_point at, vouch::time_point now) {
    return at > now ? "in " + roughly(at - now) : roughly(now - at) + " ago";
}

[[nodiscard]] inline std::string with_time(vouch::time_point at, vouch::time_point now) {
    return vouch::to_utc(at) + " (" + relative(at, now) + ')';
}

/// A JSON object being written.
class json_object {
  public:
    json_object& text(std::string_view name, std::string_view value) { return raw(name, quoted(value)); }
    json_object& number(std::string_view name, std::uint64_t value) { return raw(name, std::to_string(value)); }
    json_object& time(std::string_view name, const std::optional<vouch::time_point>& value) {
        return raw(name, value ? quoted(vouch::to_utc(*value)) : "null");
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

    /// Bytes that are no text become \u00XX, so that any bytes at all make valid JSON.
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

/// An entry without its payload, result and progress, which are for the handler's eyes.
[[nodiscard]] inline json_object json_of(const vouch::entry& e) {
    json_object out;
    out.id("id", e.id).number("sequence", e.sequence).text("queue", e.queue).text("topic", e.topic);
    out.text("state", name_of(e.state)).number("attempts", e.attempts).number("lapses", e.lapses);
    out.number("failures", e.failures)
        .number("epoch", e.epoch)
        .number("generation", e.generation)
        .number("attempts_max", e.attempts_max);
    out.text("last_error", e.last_error).text("worker", e.worker).text("key", e.key).text("group", e.group);
    out.text("lane", e.lane).id("parent", e.parent).id("predecessor", e.predecessor);
    out.time("created_at", e.created_at).time("due_at", e.due_at).time("lease_until", e.lease_until);
    out.time("expires_at", e.expires_at).time("last_attempt_at", e.last_attempt_at).time("updated_at", e.updated_at);
    return out;
}

/// A line of `list`.
[[nodiscard]] inline std::string line_of(const vouch::entry& e, vouch::time_point now) {
    return to_string(e.id) + "  " + plain(e.queue) + "  " + plain(e.topic) + "  " + std::string(name_of(e.state)) +
           "  attempt " + std::to_string(e.attempts) + (e.last_error.empty() ? "" : "  " + plain(e.last_error)) + "  " +
           relative(e.updated_at, now) + "\n";
}

} // namespace tool
