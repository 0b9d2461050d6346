// SPDX-License-Identifier: MIT
// The suite as a program: `int main(int argc, char** argv) { return run<fixture>({"acme", "1.4.0"}, argc, argv); }`.
#pragma once

#include <cstdio>
#include <exception>
#include <fstream>
#include <string>
#include <tuple>

#include <vouch/conformance/check.hpp>
#include <vouch/conformance/detail/command_line.hpp>
#include <vouch/conformance/detail/forked_check.hpp>
#include <vouch/conformance/options.hpp>
#include <vouch/conformance/report.hpp>
#include <vouch/conformance/report_html.hpp>
#include <vouch/conformance/report_json.hpp>
#include <vouch/conformance/report_junit.hpp>
#include <vouch/conformance/report_text.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance {

namespace detail {

inline constexpr int exit_hangs = 3;
inline constexpr int exit_usage = 64;

/// The exit code of a run. A clause that hangs may only need more patience, so it has a code of its own.
[[nodiscard]] inline int exit_code(const report& r) {
    if (r.count(result::hangs) > 0) {
        return exit_hangs;
    }
    switch (r.verdict()) {
    case conformity::conformant: return 0;
    case conformity::partial: return 2;
    case conformity::failing: break;
    }
    return 1;
}

/// Prints the report and writes the files that were asked for. Returns the exit code of the program. A template for the
/// same reason as `all_clauses`.
template <class = void>
[[nodiscard]] int publish(const report& r, const command_line& asked, const std::string& program) {
    std::fputs(to_text(r, program).c_str(), stdout);
    std::fflush(stdout);
    const auto write = [&](const std::string& path, const auto& content) {
        if (path.empty() || (std::ofstream(path) << content()).flush()) {
            return true;
        }
        std::fprintf(stderr, "%s: cannot write %s\n", program.c_str(), path.c_str());
        return false;
    };
    const bool has_text = write(asked.text, [&] { return to_text(r, program); });
    const bool has_json = write(asked.json, [&] { return to_json(r); });
    const bool has_html = write(asked.html, [&] { return to_html(r, program); });
    const bool has_junit = write(asked.junit, [&] { return to_junit(r, program); });
    return has_text && has_json && has_html && has_junit ? exit_code(r) : 1;
}

/// Runs the clauses in child processes where the system has them and the user wants it, otherwise in this process.
template <class Fixture>
[[nodiscard]] report checked(const identity& whose, const command_line& asked, const std::string& program) {
#if __has_include(<unistd.h>) && __has_include(<sys/wait.h>)
    if (asked.forks) {
        return forked_check<Fixture>(asked.options, whose).run();
    }
#endif
    Fixture fixture{};
    check_callbacks callbacks;
    callbacks.hangs = [&](const report& so_far) { std::ignore = publish(so_far, asked, program); };
    return check(fixture, asked.options, whose, callbacks);
}

} // namespace detail

/// For `main`: runs the suite as the arguments say, prints the report and returns the exit code. The clauses run in a
/// child process, so call it before the program starts threads. An unknown option prints the usage and returns 64.
template <class Fixture>
int run(const identity& whose, int argc, char** argv) {
    const auto asked = detail::parse(argc, argv);
    const std::string program = argc > 0 ? argv[0] : "conformance";
    const std::string usage(detail::usage);
    if (!asked.wrong.empty()) {
        std::fprintf(stderr, "%s: %s. Options:\n%s", program.c_str(), asked.wrong.c_str(), usage.c_str());
        return detail::exit_usage;
    }
    if (asked.help) {
        std::printf("usage: %s [OPTION]...\nChecks the store %s against the contract of vouch.\n%s", program.c_str(),
                    whose.name.c_str(), usage.c_str());
        return 0;
    }
    if (asked.list) {
        detail::print_clauses();
        return 0;
    }
    try {
        return detail::publish(detail::checked<Fixture>(whose, asked, program), asked, program);
    } catch (const detail::open_hangs& e) {
        std::fprintf(stderr, "%s: the fixture's open hangs: %s\n", program.c_str(), e.what());
        return detail::exit_hangs;
    } catch (const std::exception& e) {
        std::fprintf(stderr, "%s: the fixture cannot open a store: %s\n", program.c_str(), e.what());
        return 1;
    }
}

} // namespace conformance
} // namespace v0
} // namespace vouch
