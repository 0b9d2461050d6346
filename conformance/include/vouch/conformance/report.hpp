// SPDX-License-Identifier: MIT
// The report of a run: a result per clause, how much was done, and the verdict. Two runs with the same seed give the
// same report, except for the times. `report_text.hpp`, `report_json.hpp`, `report_html.hpp` and `report_junit.hpp`
// write it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <vouch/conformance/clause.hpp>
#include <vouch/conformance/options.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance {

/// An expectation that was not met.
struct failure {
    std::string what{}; ///< what was compared, or what must hold
    std::string seen{};
    std::string expected{};
    std::string transcript{}; ///< the calls that led there: a test, a schedule or a log
};

/// How much was done.
struct tally {
    std::uint64_t commands = 0;
    std::uint64_t interleavings = 0;
    std::uint64_t histories = 0;
    std::uint64_t overlapping = 0;   ///< histories in which concurrent operations touched the same entries
    std::uint64_t guessed_turns = 0; ///< a thread without an answer from a server was taken to wait for another thread
    std::uint64_t crash_points = 0;
    std::uint64_t faults = 0;
    std::uint64_t simulated_seconds = 0;
    std::map<std::string, std::uint64_t> answers{}; ///< by operation and answer: "extend applied"

    tally& operator+=(const tally& other);
};

/// The counters of a tally and their names in a report.
inline constexpr std::array<std::pair<std::string_view, std::uint64_t tally::*>, 8> tally_counters{{
    {"commands", &tally::commands},
    {"interleavings", &tally::interleavings},
    {"histories", &tally::histories},
    {"overlapping", &tally::overlapping},
    {"guessed_turns", &tally::guessed_turns},
    {"crash_points", &tally::crash_points},
    {"faults", &tally::faults},
    {"virtual_seconds", &tally::simulated_seconds},
}};
static_assert(sizeof(tally) == sizeof(tally::answers) + tally_counters.size() * sizeof(std::uint64_t),
              "tally_counters lists every counter");

inline tally& tally::operator+=(const tally& other) {
    for (const auto& [name, counter] : tally_counters) {
        this->*counter += other.*counter;
    }
    for (const auto& [name, count] : other.answers) {
        answers[name] += count;
    }
    return *this;
}

enum class result : std::uint8_t {
    pass,
    fail,
    hangs,       ///< no answer within `options::seconds_per_clause`
    crashes,     ///< the process of the clause ended
    unsupported, ///< the store does not declare the capability
    untested,    ///< the fixture or the machine lacks something; `clause_report::why` says what
    not_run,     ///< the options exclude it
};

[[nodiscard]] constexpr std::string_view name_of(result r) noexcept {
    switch (r) {
    case result::pass: return "pass";
    case result::fail: return "fail";
    case result::hangs: return "hangs";
    case result::crashes: return "crashes";
    case result::unsupported: return "unsupported";
    case result::untested: return "untested";
    case result::not_run: return "not-run";
    }
    return "?";
}

/// Every result, in the order in which reports count them.
inline constexpr std::array all_results{result::pass,        result::fail,     result::hangs,  result::crashes,
                                        result::unsupported, result::untested, result::not_run};

/// Whether a clause with this result makes the verdict `failing`.
[[nodiscard]] constexpr bool is_failure(result r) noexcept {
    return r == result::fail || r == result::hangs || r == result::crashes;
}

struct clause_report {
    conformance::clause clause{};
    conformance::result result = conformance::result::not_run;
    std::string why{}; ///< only for `untested`
    conformance::failure failure{};
    std::uint64_t seed = 0;  ///< repeats the run
    std::uint64_t calls = 0; ///< calls on transactions
    conformance::tally tally{};
    double milliseconds = 0;
};

enum class conformity : std::uint8_t {
    conformant, ///< every clause that applies passes
    partial,    ///< no clause fails, but a MUST was not tested, or `report::gaps` is not empty
    failing,    ///< a clause fails, hangs or crashes
};

[[nodiscard]] constexpr std::string_view name_of(conformity c) noexcept {
    switch (c) {
    case conformity::conformant: return "conformant";
    case conformity::partial: return "partial";
    case conformity::failing: return "failing";
    }
    return "?";
}

struct report {
    conformance::identity identity{};
    conformance::options options{};
    vouch::capabilities can{};
    std::vector<std::string> hooks{};   ///< the hooks that the fixture has
    std::vector<std::string> missing{}; ///< the hooks that it lacks, and what is checked less without them
    std::string platform{};
    std::vector<clause_report> clauses{};
    conformance::tally tally{};
    std::vector<std::string> gaps{}; ///< what the run did not see often enough for a verdict

    [[nodiscard]] std::size_t count(result r) const {
        std::size_t n = 0;
        for (const auto& c : clauses) {
            n += c.result == r ? 1U : 0U;
        }
        return n;
    }

    [[nodiscard]] conformity verdict() const {
        bool complete = gaps.empty();
        for (const auto& c : clauses) {
            if (is_failure(c.result)) {
                return conformity::failing;
            }
            const bool was_skipped = c.result == result::untested || c.result == result::not_run;
            complete = complete && !(was_skipped && c.clause.level == level::must);
        }
        return complete ? conformity::conformant : conformity::partial;
    }
};

namespace detail {

[[nodiscard]] inline std::string capability_names(const capabilities& can) {
    std::string out;
    for (const auto n : {needs::groups, needs::lanes, needs::wakes, needs::durable, needs::shared, needs::committing}) {
        if (has(can, n)) {
            out += (out.empty() ? "" : ", ") + std::string(name_of(n));
        }
    }
    return out.empty() ? "none" : out;
}

[[nodiscard]] inline std::string joined(const std::vector<std::string>& words, std::string_view between) {
    std::string out;
    for (const auto& word : words) {
        out += (out.empty() ? "" : std::string(between)) + word;
    }
    return out.empty() ? "none" : out;
}

[[nodiscard]] inline std::string indented(const std::string& text) {
    std::string out = "    ";
    for (const char c : text) {
        out += c;
        if (c == '\n') {
            out += "    ";
        }
    }
    return out;
}

} // namespace detail

/// "FAILED", "HANGS" or "CRASHES".
[[nodiscard]] constexpr std::string_view failure_word(result r) noexcept {
    return r == result::hangs ? "HANGS" : r == result::crashes ? "CRASHES" : "FAILED";
}

/// The command that repeats a failure. A clause that hangs or crashes is best repeated in a debugger, without a fork.
[[nodiscard]] inline std::string replay_command(const clause_report& c, std::string_view program) {
    return std::string(program) + " --clause " + std::string(c.clause.id) + " --seed " + std::to_string(c.seed) +
           (c.result == result::fail ? "" : " --no-fork");
}

/// A failure as text: the clause, what was expected and seen, the command that repeats it, and the transcript.
[[nodiscard]] inline std::string failure_text(const clause_report& c, std::string_view program) {
    std::string out = std::string(c.clause.id) + " " + std::string(failure_word(c.result)) + ": " +
                      std::string(c.clause.sentence) + "\n";
    out += "  " + c.failure.what + "\n";
    if (!c.failure.expected.empty() || !c.failure.seen.empty()) {
        out += "  expected: " + c.failure.expected + "\n";
        out += "  seen:     " + c.failure.seen + "\n";
    }
    out += "  replay:   " + replay_command(c, program) + "\n";
    if (!c.failure.transcript.empty()) {
        out += detail::indented(c.failure.transcript) + "\n";
    }
    return out;
}

} // namespace conformance
} // namespace v0
} // namespace vouch
