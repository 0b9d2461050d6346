// SPDX-License-Identifier: MIT
// Output: text for people, JSON for scripts. Stored bytes are escaped, so that they cannot control a terminal or break
// a parser.
#pragma once

#include <algorithm>
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
    const auto left = vouch::later(at, -now.time_since_epoch()).time_since_epoch();
    return left > vouch::duration::zero() ? "in " + roughly(left)
                                          : roughly(-std::max(left, -vouch::duration::max())) + " ago";
}

/// `2026-11-16T16:13:34.123456Z` for every time there is; years of more than four digits have a sign, as ISO 8601 has
/// it.
[[nodiscard]] inline std::string utc_of(vouch::time_point at) {
    constexpr std::int64_t day_length = 86'400'000'000;
    auto day = std::int64_t{at.time_since_epoch().count()} / day_length;
    auto rest = std::int64_t{at.time_since_epoch().count()} % day_length;
    if (rest < 0) {
        rest += day_length;
        day -= 1;
    }
    // The calendar repeats every 400 years. Shift the date into the years that the standard library supports.
    constexpr std::int64_t era_days = 146'097;
    const auto era = (day - (day % era_days + era_days) % era_days) / era_days;
    const std::chrono::year_month_day date{std::chrono::sys_days{std::chrono::days{day - era * era_days}}};
    const auto year = static_cast<int>(date.year()) + 400 * era;
    std::array<char, 64> text{};
    std::snprintf(text.data(), text.size(), year < 0 || year > 9999 ? "%+07lld-%02u-%02uT" : "%04lld-%02u-%02uT",
                  static_cast<long long>(year), static_cast<unsigned>(date.month()), // NOLINT(google-runtime-int)
                  static_cast<unsigned>(date.day()));
    std::string out = text.data();
    const auto seconds = static_cast<int>(rest / 1'000'000);
    std::snprintf(text.data(), text.size(), "%02d:%02d:%02d.%06dZ", seconds / 3600, seconds / 60 % 60, seconds % 60,
                  static_cast<int>(rest % 1'000'000));
    return out + text.data();
}

[[nodiscard]] inline std::string with_time(vouch::time_point at, vouch::time_point now) {
    return utc_of(at) + " (" + relative(at, now) + ')';
}

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

/// An entry without its payload, result and progress, which may be confidential.
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
