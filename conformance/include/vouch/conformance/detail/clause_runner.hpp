// SPDX-License-Identifier: MIT
// Runs one clause and reports its result. A check that fails is run a second time with a test writer, so that the report
// contains the calls that led to the failure.
#pragma once

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <utility>

#include <vouch/conformance/any_store.hpp>
#include <vouch/conformance/clause.hpp>
#include <vouch/conformance/detail/repeating_store.hpp>
#include <vouch/conformance/detail/replay/shortened.hpp>
#include <vouch/conformance/detail/replay/test_source.hpp>
#include <vouch/conformance/detail/trial.hpp>
#include <vouch/conformance/location.hpp>
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

/// Whether a check has failed only because one of its transactions is long: if one call of a hundred ends in a conflict,
/// which is allowed, a transaction of a thousand calls never ends.
[[nodiscard]] inline bool is_too_long(const failure& f, std::uint64_t calls, std::uint64_t conflicts) {
    constexpr std::uint64_t calls_per_conflict = 50;
    return f.what == endless_conflict && calls > calls_per_conflict * conflicts;
}

/// Whether a failure after conflicts says nothing about the store.
[[nodiscard]] inline bool is_void(const clause& c, const failure& f) {
    const bool has_escaped = f.seen.starts_with(name_of(error_kind::conflict)); // a conflict ended the check
    return f.what != endless_conflict && (has_escaped || !tolerates_conflicts(c.layer));
}

/// Any call may throw `conflict`, which makes all earlier answers void. So a check that fails after a conflict is
/// repeated on fresh stores, which hide their conflicts by repeating the transaction. A few checks keep what they have
/// read in a transaction, such as sequences, and fail if it is repeated; so there are several attempts.
inline void attempt(run_context& context, const clause& c, clause_report& into, test_source* source) {
    constexpr int tries = 40;
    struct restored {
        run_context& context;
        std::function<any_store(const location&)> open;
        ~restored() { context.open = std::move(open); }
    } plain{context, context.open};
    for (int left = tries; left > 0; --left) {
        const auto tally = context.tally;
        const auto conflicts = context.counts->conflicts.load();
        const auto calls = context.counts->calls.load();
        attempt_once(context, c, into, source);
        if (is_too_long(into.failure, context.counts->calls - calls, context.counts->conflicts - conflicts)) {
            into.result = result::untested;
            into.why = "the store has so many conflicts that a long transaction of this check does not succeed";
            into.failure = {};
            return;
        }
        if (into.result != result::fail || context.counts->conflicts == conflicts || !is_void(c, into.failure) ||
            left == 1) {
            return;
        }
        context.open = [&plain](const location& p) { return repeat_conflicts(plain.open(p)); };
        context.tally = tally;
        into.failure = {};
        if (source != nullptr) {
            *source = {};
        }
    }
}

/// A template for the same reason as `all_clauses`.
template <class = void>
[[nodiscard]] clause_report run_clause(run_context& context, const clause& c) {
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
            out.failure.transcript = shortened_text(context, source, again.failure);
        }
    }
    out.milliseconds = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begun).count();
    return out;
}

} // namespace conformance::detail
} // namespace v0
} // namespace vouch
