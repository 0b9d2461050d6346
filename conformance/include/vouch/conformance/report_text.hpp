// SPDX-License-Identifier: MIT
// A report as text: the failures by family, then the numbers, the verdict and the list of failed clauses.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

#include <vouch/conformance/detail/families.hpp>
#include <vouch/conformance/report.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance {

namespace detail {

/// The text on one line, cut if it is long.
[[nodiscard]] inline std::string on_one_line(std::string text) {
    constexpr std::size_t length_max = 200;
    std::replace(text.begin(), text.end(), '\n', ' ');
    if (text.size() > length_max) {
        text.resize(length_max);
        text += " ...";
    }
    return text;
}

/// A failure on one line: the clause, and in brackets what is wrong.
[[nodiscard]] inline std::string brief_failure(const clause_report& c) {
    const auto& f = c.failure;
    const auto compared = f.expected.empty() && f.seen.empty() ? "" : ": expected " + f.expected + ", seen " + f.seen;
    return std::string(c.clause.id) + " " + std::string(failure_word(c.result)) + ": " +
           std::string(c.clause.sentence) + " [" + on_one_line(f.what + compared) + "]";
}

[[nodiscard]] inline std::string family_text(const family& f, std::string_view program) {
    auto out = failure_text(*f.shown, program);
    for (const auto* const c : f.failures) {
        if (c != f.shown) {
            out += brief_failure(*c) + "\n";
        }
    }
    for (const auto question : hints_for(f)) {
        out += "hint: " + std::string(question) + "\n";
    }
    return out + "\n";
}

/// "12 pass, 1 fail, 2 untested". Hanging and crashing clauses are counted only if there are any.
[[nodiscard]] inline std::string counts_text(const report& r) {
    std::string out;
    for (const auto one : all_results) {
        const auto count = r.count(one);
        if (count > 0 || (one != result::hangs && one != result::crashes)) {
            const auto name = one == result::not_run ? std::string("not run") : std::string(name_of(one));
            out += (out.empty() ? "" : ", ") + std::to_string(count) + " " + name;
        }
    }
    return out;
}

[[nodiscard]] inline std::string tally_text(const tally& t) {
    constexpr std::uint64_t seconds_per_day = 86'400;
    return std::to_string(t.commands) + " model commands, " + std::to_string(t.interleavings) + " interleavings, " +
           std::to_string(t.histories) + " histories, " + std::to_string(t.crash_points) + " crash points, " +
           std::to_string(t.faults) + " faults, " + std::to_string(t.simulated_seconds / seconds_per_day) +
           " virtual days";
}

/// Why a run may not be repeatable.
[[nodiscard]] inline std::string repeatable_text(const tally& t) {
    return "not exactly: a server was slow to answer " + std::to_string(t.guessed_turns) +
           " times, and the call was taken to wait for another transaction";
}

/// The ids of the failed clauses, or nothing.
[[nodiscard]] inline std::string failed_ids(const report& r) {
    std::string out;
    for (const auto& c : r.clauses) {
        if (is_failure(c.result)) {
            out += (out.empty() ? "" : " ") + std::string(c.clause.id);
        }
    }
    return out;
}

} // namespace detail

/// The whole report as text. `program` is the name in the commands that repeat failures.
[[nodiscard]] inline std::string to_text(const report& r, std::string_view program = "conformance") {
    std::string out;
    const auto families = detail::failed_families(r);
    for (const auto& f : families) {
        out += detail::family_text(f, program);
    }
    constexpr std::size_t many = 8;
    if (families.size() >= many) {
        out += "hint: " + std::to_string(families.size()) +
               " families of clauses fail. Later clauses rely on earlier ones, so begin with the first failure.\n\n";
    }
    for (const auto& c : r.clauses) {
        if (c.result == result::untested) {
            out += std::string(c.clause.id) + " untested: " + c.why + "\n";
        }
    }
    const auto line = [&](std::string name, const std::string& value) {
        constexpr std::size_t width = 14;
        name.resize(width, ' ');
        out += name + value + "\n";
    };
    line("store", r.identity.name + " " + r.identity.version);
    line("capabilities", detail::capability_names(r.can));
    line("hooks", detail::joined(r.hooks, ", "));
    for (const auto& m : r.missing) {
        line("missing hook", m);
    }
    line("platform", r.platform);
    line("profile", std::string(name_of(r.options.profile)) + ", seed " + std::to_string(r.options.seed));
    line("clauses", detail::counts_text(r));
    line("done", detail::tally_text(r.tally));
    if (r.tally.histories > 0) {
        line("overlapping", std::to_string(100 * r.tally.overlapping / r.tally.histories) + " % of the histories");
    }
    if (r.tally.guessed_turns > 0) {
        line("repeatable", detail::repeatable_text(r.tally));
    }
    for (const auto& g : r.gaps) {
        line("gap", g);
    }
    line("verdict", std::string(name_of(r.verdict())));
    if (const auto failed = detail::failed_ids(r); !failed.empty()) {
        line("failed", failed);
    }
    return out;
}

} // namespace conformance
} // namespace v0
} // namespace vouch
