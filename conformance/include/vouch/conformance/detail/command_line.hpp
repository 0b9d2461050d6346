// SPDX-License-Identifier: MIT
// The options of the suite as a program.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include <vouch/conformance/clause.hpp>
#include <vouch/conformance/clauses/all_clauses.hpp>
#include <vouch/conformance/options.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

inline constexpr std::string_view usage =
    "  --help                          print this and exit\n"
    "  --list                          print the clauses and exit\n"
    "  --clause ID                     only clauses whose id starts with ID\n"
    "  --skip ID                       no clauses whose id starts with ID; may be repeated\n"
    "  --layer NAME                    only this layer\n"
    "  --seed N                        the seed of all random choices (default 1)\n"
    "  --profile quick|standard|soak   how much to run (default standard)\n"
    "  --text FILE                     also write the report to FILE as text\n"
    "  --json FILE                     also write the report to FILE as JSON\n"
    "  --html FILE                     also write the report to FILE as a web page\n"
    "  --junit FILE                    also write the report to FILE as JUnit XML\n"
    "  --patience N                    seconds until a clause counts as hanging (default 300)\n"
    "  --no-fork                       run the clauses in this process; a hang or a crash then ends the run\n"
    "  --quiet                         do not print progress\n"
    "Exit code: 0 conformant, 1 failing, 2 partial, 3 a clause hangs, 64 wrong usage.\n";

struct command_line {
    conformance::options options{.progress = true};
    bool help = false;
    bool list = false;
    bool forks = true;
    std::string text{};
    std::string json{};
    std::string html{};
    std::string junit{};
    std::string wrong{}; ///< what is wrong, as a sentence without its full stop; empty: nothing
};

template <class Enum>
[[nodiscard]] std::optional<Enum> by_name(std::string_view name, std::initializer_list<Enum> all) {
    for (const auto one : all) {
        if (name_of(one) == name) {
            return one;
        }
    }
    return std::nullopt;
}

[[nodiscard]] inline std::optional<layer> layer_named(std::string_view name) {
    for (const auto& c : all_clauses()) {
        if (name_of(c.layer) == name) {
            return c.layer;
        }
    }
    return std::nullopt;
}

template <class Number>
[[nodiscard]] bool parse_number(std::string_view text, Number& into) {
    const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), into);
    return wrong == std::errc{} && end == text.data() + text.size();
}

/// Where the value of an option that names a file belongs.
[[nodiscard]] inline std::string* file_named_by(command_line& out, std::string_view name) {
    return name == "--text"    ? &out.text
           : name == "--json"  ? &out.json
           : name == "--html"  ? &out.html
           : name == "--junit" ? &out.junit
                               : nullptr;
}

/// Whether the option exists and has such a value.
[[nodiscard]] inline bool parse_value(command_line& out, std::string_view name, std::string_view value) {
    if (auto* const file = file_named_by(out, name)) {
        *file = value;
    } else if (name == "--clause") {
        out.options.clause = value;
    } else if (name == "--skip") {
        out.options.skip.emplace_back(value);
    } else if (name == "--seed") {
        return parse_number(value, out.options.seed);
    } else if (name == "--patience") {
        return parse_number(value, out.options.seconds_per_clause) && out.options.seconds_per_clause > 0;
    } else if (name == "--profile") {
        const auto found = by_name(value, {profile::quick, profile::standard, profile::soak});
        out.options.profile = found.value_or(profile::standard);
        return found.has_value();
    } else if (name == "--layer") {
        out.options.layer = layer_named(value);
        return out.options.layer.has_value();
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
    } else if (name == "--no-fork") {
        out.forks = false;
    } else {
        return false;
    }
    return true;
}

/// Says what is wrong with a prefix that no clause has. An empty prefix is every clause's.
[[nodiscard]] inline std::string wrong_prefix(std::string_view option, std::string_view prefix) {
    const auto& all = all_clauses();
    const bool is_known =
        std::any_of(all.begin(), all.end(), [&](const clause& c) { return c.id.starts_with(prefix); });
    return is_known ? ""
                    : std::string(option) + ": no clause starts with " + std::string(prefix) + "; --list prints them";
}

[[nodiscard]] inline command_line parse(int argc, char** argv) {
    command_line out;
    for (int i = 1; i < argc && out.wrong.empty(); ++i) {
        const std::string_view name = argv[i];
        if (parse_flag(out, name)) {
            continue;
        }
        if (i + 1 >= argc || !parse_value(out, name, argv[i + 1])) {
            out.wrong = std::string(name) + " is not an option, or its value is missing or wrong";
        } else if (name == "--clause" || name == "--skip") {
            out.wrong = wrong_prefix(name, argv[i + 1]);
        }
        ++i;
    }
    const auto& all = all_clauses();
    const auto is_chosen = [&](const clause& c) { return conformance::is_chosen(c, out.options); };
    if (out.wrong.empty() && std::none_of(all.begin(), all.end(), is_chosen)) {
        out.wrong = "these options choose no clause; --list prints them";
    }
    return out;
}

inline void print_clauses() {
    for (const auto& c : all_clauses()) {
        std::printf("%-12s %-14s %-4s %-8s %s\n", std::string(c.id).c_str(), std::string(name_of(c.layer)).c_str(),
                    c.level == level::must ? "MUST" : "MAY", std::string(name_of(c.needs)).c_str(),
                    std::string(c.sentence).c_str());
    }
}

} // namespace conformance::detail
} // namespace v0
} // namespace vouch
