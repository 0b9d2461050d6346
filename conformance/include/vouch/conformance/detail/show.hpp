// SPDX-License-Identifier: MIT
// Values as text for failures and printed tests: times relative to the suite's start, ids as numbers, and of two
// entries only the fields that differ.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <vouch/conformance/values.hpp>
#include <vouch/contract/draft.hpp>
#include <vouch/contract/entry.hpp>
#include <vouch/contract/error.hpp>
#include <vouch/contract/state.hpp>
#include <vouch/contract/store.hpp>
#include <vouch/contract/verdict.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

// As C++, where possible.

[[nodiscard]] inline std::string show(std::string_view text) {
    constexpr std::size_t shown_max = 60;
    std::string out = "\"";
    for (std::size_t i = 0; i < text.size() && i < shown_max; ++i) {
        const auto c = static_cast<unsigned char>(text[i]);
        constexpr std::string_view digits = "01234567";
        if (c == '"' || c == '\\') {
            out += {'\\', text[i]};
        } else if (c >= 0x20 && c < 0x7f) {
            out += text[i];
        } else {
            out += {'\\', digits[c >> 6U], digits[(c >> 3U) & 7U], digits[c & 7U]};
        }
    }
    out += '"';
    return text.size() > shown_max ? out + " /* and more, " + std::to_string(text.size()) + " bytes in all */" : out;
}
[[nodiscard]] inline std::string show(const std::string& text) { return show(std::string_view(text)); }
[[nodiscard]] inline std::string show(const char* text) { return show(std::string_view(text)); }
[[nodiscard]] inline std::string show(bool value) { return value ? "true" : "false"; }
template <class T>
    requires(std::is_integral_v<T> && !std::is_same_v<T, bool>)
[[nodiscard]] std::string show(T value) { return std::to_string(value); }
[[nodiscard]] inline std::string show(duration value) { return std::to_string(value.count()) + "us"; }
[[nodiscard]] inline std::string show(time_point value) {
    if (value == time_point::min()) {
        return "time_point::min()";
    }
    if (value < time_point::min() + start.time_since_epoch()) { // the difference to the start would overflow
        return "time_point{duration{" + std::to_string(value.time_since_epoch().count()) + "}}";
    }
    const auto us = (value - start).count();
    return us == duration::min().count() ? "at(" + std::to_string(us + 1) + " - 1)" : "at(" + std::to_string(us) + ")";
}
[[nodiscard]] inline std::string show(const id& value) {
    return value == id_of(value.low) ? "id_of(" + std::to_string(value.low) + ")" : "id " + to_string(value);
}
[[nodiscard]] inline std::string show(const ticket& value) {
    return "ticket{" + show(value.id) + ", " + std::to_string(value.epoch) + "}";
}
[[nodiscard]] inline std::string show(verdict value) { return std::string(name_of(value)); }
[[nodiscard]] inline std::string show(state value) { return std::string(name_of(value)); }
[[nodiscard]] inline std::string show(error_kind value) { return std::string(name_of(value)); }
[[nodiscard]] inline std::string show(const settlement& value) {
    return show(value.verdict) + (value.group_completed ? ", group completed" : "");
}
[[nodiscard]] inline std::string show(const receipt& value) {
    return std::string(name_of(value.what)) + (value.what == receipt::kind::refused ? "" : " " + show(value.id));
}
[[nodiscard]] inline std::string show(const state_counts& value) {
    std::string out;
    for (const auto s : all_states) {
        out += std::string(out.empty() ? "" : ", ") + std::to_string(value[s]) + ' ' + std::string(name_of(s));
    }
    return out;
}
template <class A, class B>
[[nodiscard]] std::string show(const std::pair<A, B>& value);
template <class T>
[[nodiscard]] std::string show(const std::optional<T>& value);
template <class T>
[[nodiscard]] std::string show(const std::vector<T>& values);

/// The fields that differ from those of a default-constructed entry.
[[nodiscard]] inline std::string show(const entry& value) {
    std::string out;
    const entry plain;
    for_each_field(
        [&](std::string_view name, const auto& field, const auto& none) {
            if (!(field == none)) {
                out += std::string(out.empty() ? "" : ", ") + std::string(name) + ' ' + show(field);
            }
        },
        value, plain);
    return "entry{" + out + "}";
}
template <class A, class B>
std::string show(const std::pair<A, B>& value) {
    return "{" + show(value.first) + ", " + show(value.second) + "}";
}
template <class T>
std::string show(const std::optional<T>& value) {
    return value ? show(*value) : "none";
}
template <class T>
std::string show(const std::vector<T>& values) {
    std::string out;
    for (const auto& value : values) {
        out += (out.empty() ? "" : ", ") + show(value);
    }
    return "[" + out + "]";
}

/// Like `show`, but shows only the first two items, the last one and the size of a long list.
template <class T>
[[nodiscard]] std::string show_briefly(const T& value) {
    return show(value);
}
template <class T>
[[nodiscard]] std::string show_briefly(const std::vector<T>& values) {
    constexpr std::size_t many = 20;
    if (values.size() <= many) {
        return show(values);
    }
    return "[" + show(values[0]) + ", " + show(values[1]) + ", ... " + show(values.back()) + "], " +
           std::to_string(values.size()) + " in all";
}

template <class T>
[[nodiscard]] std::string show_briefly(const std::optional<std::vector<T>>& values) {
    return values ? show_briefly(*values) : show(values);
}

[[nodiscard]] inline std::string show_briefly(const settled_and_claimed& value) {
    return show_briefly(value.settlements) + ", claimed " + show_briefly(tickets_of(value.claimed));
}

/// What was seen and what was expected, as far as they differ.
template <class T>
[[nodiscard]] std::pair<std::string, std::string> show_difference(const T& seen, const T& expected) {
    return {show(seen), show(expected)};
}
[[nodiscard]] inline std::pair<std::string, std::string> show_difference(const entry& seen, const entry& expected) {
    std::string a = "entry " + show(seen.id);
    std::string b = "entry " + show(expected.id);
    for_each_field(
        [&](std::string_view name, const auto& x, const auto& y) {
            if (!(x == y)) {
                a += ", " + std::string(name) + ' ' + show(x);
                b += ", " + std::string(name) + ' ' + show(y);
            }
        },
        seen, expected);
    return {a, b};
}
[[nodiscard]] inline std::pair<std::string, std::string> show_difference(const std::optional<entry>& seen,
                                                                         const std::optional<entry>& expected) {
    return seen && expected ? show_difference(*seen, *expected) : std::pair{show(seen), show(expected)};
}
[[nodiscard]] inline std::pair<std::string, std::string> show_difference(const std::vector<entry>& seen,
                                                                         const std::vector<entry>& expected) {
    if (ids_of(seen) != ids_of(expected)) {
        return {show(ids_of(seen)), show(ids_of(expected))};
    }
    for (std::size_t i = 0; i < seen.size(); ++i) {
        if (!(seen[i] == expected[i])) {
            return show_difference(seen[i], expected[i]);
        }
    }
    return {show(ids_of(seen)), show(ids_of(expected))};
}

} // namespace conformance::detail
} // namespace v0
} // namespace vouch
