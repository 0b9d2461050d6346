// SPDX-License-Identifier: MIT
// Runs one clause and reports its result. A check that fails is run a second time with a test writer, so that the report
// contains the calls that led to the failure.
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <utility>

#include <vouch/conformance/clause.hpp>
#include <vouch/conformance/detail/replay/shortened.hpp>
#include <vouch/conformance/detail/replay/test_source.hpp>
#include <vouch/conformance/detail/trial.hpp>
#include <vouch/conformance/report.hpp>
#include <vouch/contract/error.hpp>
#include <vouch/contract/id.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

[[nodiscard]] inline std::uint64_t seed_of(const clause& c, std::uint64_t seed) noexcept {
    auto mixed = vouch::detail::mix(seed);
    for (const char letter : c.id) {
        mixed = vouch::detail::mix(mixed ^ static_cast<unsigned char>(letter));
    }
    return mixed;
}

/// Whether the checks of this layer handle conflicts themselves. The checks of the other layers are repeated.
[[nodiscard]] constexpr bool tolerates_conflicts(layer l) noexcept {
    return l == layer::model || l == layer::interleavings || l == layer::histories || l == layer::threads ||
           l == layer::crashes || l == layer::processes;
}

/// Runs the check once. An exception that is not the suite's own is a failure as well.
inline void attempt_once(run_context& context, const clause& c, clause_report& into, test_source* source) {
    try {
        trial t(context, seed_of(c, context.options.seed), source);
        c.check(t);
        into.result = result::pass;
    } catch (const untested& u) {
        into.result = result::untested;
        into.why = u.why;
    } catch (const failure& f) {
        into.result = result::fail;
        into.failure = f;
    } catch (const error& e) {
        into.result = result::fail;
        into.failure = unexpected_error(e);
    } catch (const std::exception& e) {
        into.result = result::fail;
        into.failure = {.what = "an exception that is not a vouch::error was thrown", .seen = e.what(), .expected = {}};
    }
}

/// Any call may throw `conflict`, which makes all earlier answers void. So a check that fails after a conflict is
/// repeated on a fresh store. A store that has a conflict in every attempt fails.
inline void attempt(run_context& context, const clause& c, clause_report& into, test_source* source) {
    constexpr int tries = 40;
    for (int left = tries; left > 0; --left) {
        const auto tally = context.tally;
        const auto conflicts = context.counts->conflicts.load();
        attempt_once(context, c, into, source);
        const bool is_void =
            into.result == result::fail && context.counts->conflicts != conflicts && !tolerates_conflicts(c.layer);
        if (!is_void || left == 1) {
            return;
        }
        context.tally = tally;
        into.failure = {};
        if (source != nullptr) {
            *source = {};
        }
    }
}

[[nodiscard]] inline clause_report run_clause(run_context& context, const clause& c) {
    clause_report out{.clause = c, .seed = context.options.seed};
    const auto begun = std::chrono::steady_clock::now();
    if (!has(context.can, c.needs)) {
        out.result = result::unsupported;
        return out;
    }
    const auto calls = context.counts->calls.load();
    context.tally = {};
    attempt(context, c, out, nullptr);
    out.calls = context.counts->calls - calls;
    out.tally = std::move(context.tally);
    const bool has_answers = c.layer != layer::cost; // a test can show a wrong answer, not a slow one
    if (out.result == result::fail && out.failure.transcript.empty() && context.options.explains && has_answers) {
        // Once more, to write the calls down as a test. That works for one thread only.
        test_source source;
        clause_report again{.clause = c};
        attempt(context, c, again, &source);
        if (again.result == result::fail && source.size() > 0) {
            out.failure.transcript = shortened(context, source, again.failure).text();
        }
    }
    out.milliseconds = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begun).count();
    return out;
}

} // namespace conformance::detail
} // namespace v0
} // namespace vouch
