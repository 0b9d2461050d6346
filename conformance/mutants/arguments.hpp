// SPDX-License-Identifier: MIT
// The command line of the kill matrix.
#pragma once

#include <charconv>
#include <cstddef>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>

namespace mutants {

struct arguments {
    std::string only{};
    std::string coverage{};
    bool missing = false;
    std::string hints{};
    std::string show{};
    std::string clause{};
    std::size_t seeds = 20;
    std::size_t passes = 1;
    std::size_t jobs = std::thread::hardware_concurrency() + 1; ///< some mutants only sleep
    std::string html{};
    bool quick = false;
    bool standard = false;
    bool list = false;
    bool verbose = false;
    bool is_wrong = false;
};

inline constexpr const char* usage =
    "usage: conformance_mutants [OPTION]...\n"
    "  --only TEXT      only stores whose name contains TEXT\n"
    "  --seeds N        test each mutant with N seeds (default 20); every seed must kill it\n"
    "  --passes N       test each conforming store with N seeds (default 1)\n"
    "  --quick          use the quick profile only\n"
    "  --standard       test conforming stores with the standard profile, too (many minutes)\n"
    "  --jobs N         test N stores at a time (default: the number of processors plus one)\n"
    "  --coverage FILE  run every clause, and write to FILE which mutant breaks which clauses\n"
    "  --missing        with --coverage: keep the lines of FILE, and run only the mutants that it lacks\n"
    "  --hints FILE     for each mutant, first try a clause that FILE lists, which --coverage has written\n"
    "  --html FILE      also write the matrix to FILE as a web page\n"
    "  --show NAME      print the first failure of this mutant and exit\n"
    "  --clause ID      with --show: only clauses whose id begins with ID\n"
    "  --list           print the mutants and exit\n"
    "  --verbose        print what each failure saw\n";

[[nodiscard]] inline arguments parse(int argc, char** argv) {
    arguments out;
    const auto number = [&](int i, std::size_t& into) {
        const std::string_view text = i < argc ? argv[i] : "";
        const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), into);
        out.is_wrong = out.is_wrong || wrong != std::errc{} || end != text.data() + text.size() || into == 0;
    };
    for (int i = 1; i < argc; ++i) {
        const std::string_view word = argv[i];
        if (word == "--only" && i + 1 < argc) {
            out.only = argv[++i];
        } else if (word == "--coverage" && i + 1 < argc) {
            out.coverage = argv[++i];
        } else if (word == "--hints" && i + 1 < argc) {
            out.hints = argv[++i];
        } else if (word == "--html" && i + 1 < argc) {
            out.html = argv[++i];
        } else if (word == "--missing") {
            out.missing = true;
        } else if (word == "--show" && i + 1 < argc) {
            out.show = argv[++i];
        } else if (word == "--clause" && i + 1 < argc) {
            out.clause = argv[++i];
        } else if (word == "--seeds") {
            number(++i, out.seeds);
        } else if (word == "--passes") {
            number(++i, out.passes);
        } else if (word == "--jobs") {
            number(++i, out.jobs);
        } else if (word == "--quick") {
            out.quick = true;
        } else if (word == "--standard") {
            out.standard = true;
        } else if (word == "--list") {
            out.list = true;
        } else if (word == "--verbose") {
            out.verbose = true;
        } else {
            out.is_wrong = true;
        }
    }
    return out;
}

} // namespace mutants
