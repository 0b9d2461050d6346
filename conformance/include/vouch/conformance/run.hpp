// SPDX-License-Identifier: MIT
// The suite as a program: `int main(int argc, char** argv) { return run<fixture>({"acme", "1.4.0"}, argc, argv); }`.
#pragma once

#include <charconv>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <vouch/conformance/check.hpp>
#include <vouch/conformance/clause.hpp>
#include <vouch/conformance/clauses/all_clauses.hpp>
#include <vouch/conformance/options.hpp>
#include <vouch/conformance/report.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance {

namespace detail {

inline constexpr std::string_view usage =
    "  --list                          print the clauses and exit\n"
    "  --clause ID                     only clauses whose id starts with ID\n"
    "  --layer NAME                    only this layer\n"
    "  --seed N                        the seed of all random choices (default 1)\n"
    "  --profile quick|standard|soak   how much to run (default standard)\n"
    "  --json FILE                     also write the report to FILE as JSON\n"
    "  --text FILE                     also write the report to FILE as text\n"
    "  --patience N                    seconds until a clause counts as hanging (default 300)\n"
    "  --quiet                         do not print progress\n"
    "Exit code: 0 conformant, 1 failing, 2 partial, 3 hanging, 64 wrong usage.\n";

struct command_line {
    conformance::options options{.progress = true};
    bool list = false;
    std::string json{};
    std::string text{};
    std::string wrong{}; ///< the first option that is unknown or has no valid value
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

template <class Number>
[[nodiscard]] bool parse_number(std::string_view text, Number& into) {
    const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), into);
    return wrong == std::errc{} && end == text.data() + text.size();
}

[[nodiscard]] inline bool parse_value(command_line& out, std::string_view name, std::string_view value) {
    if (name == "--clause") {
        out.options.clause = value;
    } else if (name == "--json") {
        out.json = value;
    } else if (name == "--text") {
        out.text = value;
    } else if (name == "--seed") {
        return parse_number(value, out.options.seed);
    } else if (name == "--patience") {
        return parse_number(value, out.options.seconds_per_clause) && out.options.seconds_per_clause > 0;
    } else if (name == "--profile") {
        const auto found = by_name(value, {profile::quick, profile::standard, profile::soak});
        out.options.profile = found.value_or(profile::standard);
        return found.has_value();
    } else if (name == "--layer") {
        out.options.layer = by_name(value, {layer::fixture, layer::examples, layer::model, layer::interleavings,
                                            layer::histories, layer::threads, layer::crashes, layer::processes,
                                            layer::faults, layer::simulation, layer::cost});
        return out.options.layer.has_value();
    } else {
        return false;
    }
    return true;
}

[[nodiscard]] inline command_line parse(int argc, char** argv) {
    command_line out;
    for (int i = 1; i < argc && out.wrong.empty(); ++i) {
        const std::string_view name = argv[i];
        if (name == "--list") {
            out.list = true;
        } else if (name == "--quiet") {
            out.options.progress = false;
        } else if (i + 1 >= argc || !parse_value(out, name, argv[i + 1])) {
            out.wrong = name;
        } else {
            ++i;
        }
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

} // namespace detail

/// For `main`: runs the suite as the arguments say, prints the report and returns the exit code. An unknown option
/// prints the usage and returns 64.
template <class Fixture>
int run(const identity& whose, int argc, char** argv) {
    const auto asked = detail::parse(argc, argv);
    const std::string program = argc > 0 ? argv[0] : "conformance";
    if (!asked.wrong.empty()) {
        std::fprintf(stderr, "%s: %s is not an option, or its value is missing or wrong. Options:\n%s", program.c_str(),
                     asked.wrong.c_str(), std::string(detail::usage).c_str());
        return 64;
    }
    if (asked.list) {
        detail::print_clauses();
        return 0;
    }
    report r;
    try {
        Fixture fixture{};
        r = check(fixture, asked.options, whose);
    } catch (const std::exception& e) {
        std::fprintf(stderr, "%s: the fixture cannot open a store: %s\n", program.c_str(), e.what());
        return 1;
    }
    const auto text = to_text(r, program);
    std::fputs(text.c_str(), stdout);
    for (const auto& [path, content] : {std::pair{asked.json, to_json(r)}, {asked.text, text}}) {
        if (!path.empty() && !(std::ofstream(path) << content).flush()) {
            std::fprintf(stderr, "%s: cannot write %s\n", program.c_str(), path.c_str());
            return 1;
        }
    }
    switch (r.verdict()) {
    case conformity::conformant: return 0;
    case conformity::partial: return 2;
    case conformity::failing: break;
    }
    return 1;
}

} // namespace conformance
} // namespace v0
} // namespace vouch
