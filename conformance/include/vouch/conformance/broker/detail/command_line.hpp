// SPDX-License-Identifier: MIT
// The options of the kit as a program.
#pragma once

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>

#include <vouch/conformance/broker/clauses/all_clauses.hpp>
#include <vouch/conformance/broker/options.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::broker::detail {

inline constexpr std::string_view usage =
    "  --help           print this and exit\n"
    "  --list           print the clauses and exit\n"
    "  --clause ID      only clauses whose id starts with ID\n"
    "  --skip ID        no clauses whose id starts with ID; may be repeated\n"
    "  --json FILE      also write the report to FILE as JSON\n"
    "  --patience N     seconds that a message or a new connection may take (default 30)\n"
    "  --silence N      milliseconds without a message that count as silence (default 1000)\n"
    "  --per-clause N   seconds until a clause counts as hanging (default 180)\n"
    "  --quiet          do not print progress\n"
    "Exit code: 0 conformant, 1 failing, 2 partial, 3 a clause hangs, 64 wrong usage.\n";

struct command_line {
    broker::options options{.progress = true};
    bool help = false;
    bool list = false;
    std::string json{};
    std::string wrong{}; ///< what is wrong, as a sentence without its full stop; empty: nothing
};

/// Reads a number of at least 1.
[[nodiscard]] inline bool parse_number(std::string_view text, std::uint32_t& into) {
    const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), into);
    return wrong == std::errc{} && end == text.data() + text.size() && into > 0;
}

/// Whether the option exists and has such a value.
[[nodiscard]] inline bool parse_value(command_line& out, std::string_view name, std::string_view value) {
    std::uint32_t number = 0;
    if (name == "--json") {
        out.json = value;
    } else if (name == "--clause") {
        out.options.clause = value;
    } else if (name == "--skip") {
        out.options.skip.emplace_back(value);
    } else if (!parse_number(value, number)) {
        return false;
    } else if (name == "--patience") {
        out.options.patience = std::chrono::seconds{number};
    } else if (name == "--silence") {
        out.options.silence = std::chrono::milliseconds{number};
    } else if (name == "--per-clause") {
        out.options.per_clause = std::chrono::seconds{number};
    } else {
        return false;
    }
    return true;
}

[[nodiscard]] inline bool parse_flag(command_line& out, std::string_view name) {
    if (name == "--help") {
        out.help = true;
    } else if (name == "--list") {
        out.list = true;
    } else if (name == "--quiet") {
        out.options.progress = false;
    } else {
        return false;
    }
    return true;
}

[[nodiscard]] inline std::string wrong_choice(const options& how) {
    const auto& all = all_clauses();
    const auto is_unknown = [&](const std::string& prefix) {
        return std::none_of(all.begin(), all.end(), [&](const clause& c) { return c.id.starts_with(prefix); });
    };
    if (is_unknown(how.clause)) {
        return "--clause: no clause starts with " + how.clause + "; --list prints them";
    }
    for (const auto& prefix : how.skip) {
        if (is_unknown(prefix)) {
            return "--skip: no clause starts with " + prefix + "; --list prints them";
        }
    }
    const bool is_some = std::any_of(all.begin(), all.end(), [&](const clause& c) { return is_chosen(c.id, how); });
    return is_some ? "" : "these options choose no clause; --list prints them";
}

[[nodiscard]] inline command_line parse(int argc, char** argv) {
    command_line out;
    for (int i = 1; i < argc; ++i) {
        const std::string_view name = argv[i];
        if (parse_flag(out, name)) {
            continue;
        }
        if (i + 1 >= argc || !parse_value(out, name, argv[i + 1])) {
            out.wrong = std::string(name) + " is not an option, or its value is missing or wrong";
            return out;
        }
        ++i;
    }
    out.wrong = wrong_choice(out.options);
    return out;
}

} // namespace conformance::broker::detail
} // namespace v0
} // namespace vouch
