// SPDX-License-Identifier: MIT
// The report of a run: a result per clause, how much was done, and the verdict; as text and as JSON. Two runs with the
// same seed give the same report, except for the times.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <vouch/conformance/clause.hpp>
#include <vouch/conformance/detail/json.hpp>
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
    std::uint64_t overlapping = 0; ///< histories in which concurrent operations touched the same entries
    std::uint64_t crash_points = 0;
    std::uint64_t faults = 0;
    std::uint64_t simulated_seconds = 0;
    std::map<std::string, std::uint64_t> answers{}; ///< by operation and answer: "extend applied"
};

enum class result : std::uint8_t {
    pass,
    fail,
    unsupported, ///< the store does not declare the capability
    untested,    ///< the fixture or the machine lacks something; `clause_report::why` says what
    not_run,     ///< the options exclude it
};

[[nodiscard]] constexpr std::string_view name_of(result r) noexcept {
    switch (r) {
    case result::pass: return "pass";
    case result::fail: return "fail";
    case result::unsupported: return "unsupported";
    case result::untested: return "untested";
    case result::not_run: return "not-run";
    }
    return "?";
}

struct clause_report {
    conformance::clause clause{};
    conformance::result result = conformance::result::not_run;
    std::string why{}; ///< only for `untested`
    conformance::failure failure{};
    std::uint64_t seed = 0;  ///< repeats the run
    std::uint64_t calls = 0; ///< calls on transactions
    double milliseconds = 0;
};

enum class conformity : std::uint8_t {
    conformant, ///< every clause that applies passes
    partial,    ///< no clause fails, but a MUST was not tested, or `report::gaps` is not empty
    failing,    ///< a clause fails
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
            if (c.result == result::fail) {
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
    for (const auto n : {needs::groups, needs::lanes, needs::wakes, needs::durable, needs::shared}) {
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

/// A failure as text: the clause, what was expected and seen, the command that repeats it, and the transcript.
[[nodiscard]] inline std::string failure_text(const clause_report& c, std::string_view program) {
    std::string out = std::string(c.clause.id) + " FAILED: " + std::string(c.clause.sentence) + "\n";
    out += "  " + c.failure.what + "\n";
    if (!c.failure.expected.empty() || !c.failure.seen.empty()) {
        out += "  expected: " + c.failure.expected + "\n";
        out += "  seen:     " + c.failure.seen + "\n";
    }
    out += "  replay:   " + std::string(program) + " --clause " + std::string(c.clause.id) + " --seed " +
           std::to_string(c.seed) + "\n";
    if (!c.failure.transcript.empty()) {
        out += detail::indented(c.failure.transcript) + "\n";
    }
    return out;
}

/// The whole report as text. `program` is the name in the commands that repeat failures.
[[nodiscard]] inline std::string to_text(const report& r, std::string_view program = "conformance") {
    std::string out;
    for (const auto& c : r.clauses) {
        if (c.result == result::fail) {
            out += failure_text(c, program) + "\n";
        } else if (c.result == result::untested) {
            out += std::string(c.clause.id) + " untested: " + c.why + "\n";
        }
    }
    const auto& t = r.tally;
    out += "store         " + r.identity.name + " " + r.identity.version + "\n";
    out += "capabilities  " + detail::capability_names(r.can) + "\n";
    out += "hooks         " + detail::joined(r.hooks, ", ") + "\n";
    for (const auto& m : r.missing) {
        out += "missing hook  " + m + "\n";
    }
    out += "platform      " + r.platform + "\n";
    out +=
        "profile       " + std::string(name_of(r.options.profile)) + ", seed " + std::to_string(r.options.seed) + "\n";
    out += "clauses       " + std::to_string(r.count(result::pass)) + " pass, " +
           std::to_string(r.count(result::fail)) + " fail, " + std::to_string(r.count(result::unsupported)) +
           " unsupported, " + std::to_string(r.count(result::untested)) + " untested, " +
           std::to_string(r.count(result::not_run)) + " not run\n";
    out += "done          " + std::to_string(t.commands) + " model commands, " + std::to_string(t.interleavings) +
           " interleavings, " + std::to_string(t.histories) + " histories, " + std::to_string(t.crash_points) +
           " crash points, " + std::to_string(t.faults) + " faults, " + std::to_string(t.simulated_seconds / 86'400) +
           " virtual days\n";
    if (t.histories > 0) {
        out += "overlapping   " + std::to_string(100 * t.overlapping / t.histories) + " % of the histories\n";
    }
    for (const auto& g : r.gaps) {
        out += "gap           " + g + "\n";
    }
    return out + "verdict       " + std::string(name_of(r.verdict())) + "\n";
}

/// The whole report as JSON.
[[nodiscard]] inline std::string to_json(const report& r) {
    using detail::json;
    const auto& t = r.tally;
    detail::json_object done;
    done.number("commands", t.commands)
        .number("interleavings", t.interleavings)
        .number("histories", t.histories)
        .number("overlapping", t.overlapping)
        .number("crash_points", t.crash_points)
        .number("faults", t.faults)
        .number("virtual_seconds", t.simulated_seconds);
    detail::json_object answers;
    for (const auto& [name, count] : t.answers) {
        answers.number(name, count);
    }
    const auto clause = [](const clause_report& c) {
        detail::json_object out;
        out.text("id", c.clause.id).text("layer", name_of(c.clause.layer)).text("result", name_of(c.result));
        out.text("level", c.clause.level == level::must ? "MUST" : "MAY").text("needs", name_of(c.clause.needs));
        out.text("sentence", c.clause.sentence).number("ms", static_cast<std::uint64_t>(c.milliseconds));
        if (c.result == result::fail) {
            out.text("what", c.failure.what).text("seen", c.failure.seen).text("expected", c.failure.expected);
            out.number("seed", c.seed);
        }
        if (c.result == result::untested) {
            out.text("why", c.why);
        }
        return out.str();
    };
    const auto word = [](const std::string& text) { return json(text); };
    detail::json_object out;
    out.text("store", r.identity.name).text("version", r.identity.version);
    out.text("verdict", name_of(r.verdict())).text("profile", name_of(r.options.profile));
    out.number("seed", r.options.seed).text("platform", r.platform);
    out.text("capabilities", detail::capability_names(r.can));
    out.raw("hooks", detail::json_list(r.hooks, ", ", word)).raw("gaps", detail::json_list(r.gaps, ", ", word));
    out.raw("done", done.str()).raw("answers", answers.str());
    out.raw("clauses", detail::json_list(r.clauses, ",\n  ", clause));
    return out.str() + "\n";
}

} // namespace conformance
} // namespace v0
} // namespace vouch
