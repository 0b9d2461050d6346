// SPDX-License-Identifier: MIT
// The report of a run of the kit: a result per clause and the verdict, as a value, as text and as JSON.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <vouch/conformance/broker/clause.hpp>
#include <vouch/conformance/broker/detail/quoted.hpp>
#include <vouch/conformance/broker/options.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::broker {

/// An expectation that was not met.
struct failure {
    std::string what{}; ///< what was done or compared
    std::string expected{};
    std::string seen{};
};

enum class result : std::uint8_t {
    pass,
    fail,
    hangs,    ///< no answer within `options::per_clause`
    untested, ///< the fixture lacks the hook that it needs
    not_run,  ///< the options exclude it
};

[[nodiscard]] constexpr std::string_view name_of(result r) noexcept {
    switch (r) {
    case result::pass: return "pass";
    case result::fail: return "fail";
    case result::hangs: return "hangs";
    case result::untested: return "untested";
    case result::not_run: return "not-run";
    }
    return "?";
}

enum class conformity : std::uint8_t {
    conformant, ///< every clause passes
    partial,    ///< no clause fails, but one was not tested
    failing,    ///< a clause fails or hangs
};

[[nodiscard]] constexpr std::string_view name_of(conformity c) noexcept {
    switch (c) {
    case conformity::conformant: return "conformant";
    case conformity::partial: return "partial";
    case conformity::failing: return "failing";
    }
    return "?";
}

struct clause_report {
    broker::clause clause{};
    broker::result result = broker::result::not_run;
    broker::failure failure{};
    double milliseconds = 0;
};

struct report {
    broker::identity identity{};
    std::vector<clause_report> clauses{};

    [[nodiscard]] std::size_t count(result r) const {
        std::size_t n = 0;
        for (const auto& c : clauses) {
            n += c.result == r ? 1U : 0U;
        }
        return n;
    }
    [[nodiscard]] conformity verdict() const {
        if (count(result::fail) + count(result::hangs) > 0) {
            return conformity::failing;
        }
        return count(result::pass) == clauses.size() ? conformity::conformant : conformity::partial;
    }
};

/// A failure as text: the clause, what was expected and seen, the command that repeats it, and where to look.
[[nodiscard]] inline std::string failure_text(const clause_report& c, std::string_view program) {
    std::string out = std::string(c.clause.id) + (c.result == result::hangs ? " HANGS: " : " FAILED: ") +
                      std::string(c.clause.sentence) + "\n";
    out += "  " + c.failure.what + "\n";
    if (!c.failure.expected.empty() || !c.failure.seen.empty()) {
        out += "  expected: " + c.failure.expected + "\n";
        out += "  seen:     " + c.failure.seen + "\n";
    }
    out += "  rule:     " + std::string(c.clause.rules) + "\n";
    out += "  look at:  " + std::string(c.clause.hint) + "\n";
    return out + "  replay:   " + std::string(program) + " --clause " + std::string(c.clause.id) + "\n";
}

/// The whole report as text. `program` is the name in the commands that repeat failures.
[[nodiscard]] inline std::string to_text(const report& r, std::string_view program) {
    std::string out;
    for (const auto& c : r.clauses) {
        if (c.result == result::fail || c.result == result::hangs) {
            out += failure_text(c, program) + "\n";
        }
    }
    for (const auto& c : r.clauses) {
        if (c.result == result::untested) {
            out += std::string(c.clause.id) + " untested: the fixture has no " + std::string(name_of(c.clause.needs)) +
                   "(): " + std::string(c.clause.sentence) + "\n";
        }
    }
    out += "client        " + r.identity.name + " " + r.identity.version + "\nclauses       ";
    std::string counts;
    for (const auto one : {result::pass, result::fail, result::hangs, result::untested, result::not_run}) {
        counts += (counts.empty() ? "" : ", ") + std::to_string(r.count(one)) + " " + std::string(name_of(one));
    }
    return out + counts + "\nverdict       " + std::string(name_of(r.verdict())) + "\n";
}

/// The whole report as JSON.
[[nodiscard]] inline std::string to_json(const report& r) {
    std::string clauses;
    for (const auto& c : r.clauses) {
        clauses += (clauses.empty() ? "" : ",\n  ") + std::string("{\"id\": ") + detail::json(c.clause.id) +
                   ", \"result\": " + detail::json(name_of(c.result)) +
                   ", \"milliseconds\": " + std::to_string(static_cast<std::uint64_t>(c.milliseconds)) +
                   ", \"what\": " + detail::json(c.failure.what) +
                   ", \"expected\": " + detail::json(c.failure.expected) +
                   ", \"seen\": " + detail::json(c.failure.seen) + "}";
    }
    return "{\"client\": " + detail::json(r.identity.name) + ", \"version\": " + detail::json(r.identity.version) +
           ", \"verdict\": " + detail::json(name_of(r.verdict())) + ",\n \"clauses\": [\n  " + clauses + "]}\n";
}

} // namespace conformance::broker
} // namespace v0
} // namespace vouch
