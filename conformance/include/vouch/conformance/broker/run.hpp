// SPDX-License-Identifier: MIT
// The kit as a program: `int main(int argc, char** argv) { return run_broker<fixture>({"acme", "1.4.0"}, argc, argv); }`.
#pragma once

#include <cstdio>
#include <exception>
#include <fstream>
#include <string>

#include <vouch/conformance/broker/check.hpp>
#include <vouch/conformance/broker/clauses/all_clauses.hpp>
#include <vouch/conformance/broker/detail/command_line.hpp>
#include <vouch/conformance/broker/options.hpp>
#include <vouch/conformance/broker/report.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance {

namespace broker::detail {

inline constexpr int exit_usage = 64;

inline void print_clauses() {
    for (const auto& c : all_clauses()) {
        std::printf("%-8s %-24s %-20s %s\n", std::string(c.id).c_str(), std::string(c.rules).c_str(),
                    std::string(name_of(c.needs)).c_str(), std::string(c.sentence).c_str());
    }
}

/// Prints the report and writes the file that was asked for. Returns the exit code of the program.
[[nodiscard]] inline int publish(const report& r, const command_line& asked, const std::string& program) {
    std::fputs(to_text(r, program).c_str(), stdout);
    std::fflush(stdout);
    if (!asked.json.empty() && !(std::ofstream(asked.json) << to_json(r)).flush()) {
        std::fprintf(stderr, "%s: cannot write %s\n", program.c_str(), asked.json.c_str());
        return 1;
    }
    switch (r.verdict()) {
    case conformity::conformant: return 0;
    case conformity::partial: return 2;
    case conformity::failing: break;
    }
    return 1;
}

} // namespace broker::detail

/// For `main`: runs the kit as the arguments say, prints the report and returns the exit code. An unknown option prints
/// the usage and returns 64.
template <class Fixture>
int run_broker(const broker::identity& whose, int argc, char** argv) {
    namespace ours = broker::detail;
    const auto asked = ours::parse(argc, argv);
    const std::string program = argc > 0 ? argv[0] : "conformance";
    const std::string usage(ours::usage);
    if (!asked.wrong.empty()) {
        std::fprintf(stderr, "%s: %s. Options:\n%s", program.c_str(), asked.wrong.c_str(), usage.c_str());
        return ours::exit_usage;
    }
    if (asked.help) {
        std::printf("usage: %s [OPTION]...\nChecks the client %s of a broker against the rules of vouch.\n%s",
                    program.c_str(), whose.name.c_str(), usage.c_str());
        return 0;
    }
    if (asked.list) {
        ours::print_clauses();
        return 0;
    }
    try {
        Fixture fixture{};
        return ours::publish(
            check_broker(fixture, asked.options, whose,
                         [&](const broker::report& so_far) { (void)ours::publish(so_far, asked, program); }),
            asked, program);
    } catch (const std::exception& e) {
        std::fprintf(stderr, "%s: the fixture cannot be made: %s\n", program.c_str(), e.what());
        return 1;
    }
}

} // namespace conformance
} // namespace v0
} // namespace vouch
