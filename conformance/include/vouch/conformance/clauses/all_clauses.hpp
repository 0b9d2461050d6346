// SPDX-License-Identifier: MIT
// All clauses, in the order in which they are run and listed. README.md in this folder lists their sentences.
#pragma once

#include <span>
#include <vector>

#include <vouch/conformance/clause.hpp>

// amalgamate: split only
#if defined(VOUCH_CLAUSES_ELSEWHERE)

namespace vouch {
inline namespace v0 {
namespace conformance {

template <class = void>
[[nodiscard]] const std::vector<clause>& all_clauses();
extern template const std::vector<clause>& all_clauses<void>();

} // namespace conformance
} // namespace v0
} // namespace vouch

#else
// amalgamate: end
#include <vouch/conformance/clauses/cancel.hpp>
#include <vouch/conformance/clauses/capability.hpp>
#include <vouch/conformance/clauses/claim.hpp>
#include <vouch/conformance/clauses/claim_order.hpp>
#include <vouch/conformance/clauses/committing.hpp>
#include <vouch/conformance/clauses/committing_claims.hpp>
#include <vouch/conformance/clauses/committing_faults.hpp>
#include <vouch/conformance/clauses/committing_settles.hpp>
#include <vouch/conformance/clauses/committing_together.hpp>
#include <vouch/conformance/clauses/cost.hpp>
#include <vouch/conformance/clauses/crashes.hpp>
#include <vouch/conformance/clauses/dedup.hpp>
#include <vouch/conformance/clauses/enqueue.hpp>
#include <vouch/conformance/clauses/extend.hpp>
#include <vouch/conformance/clauses/fault_ends.hpp>
#include <vouch/conformance/clauses/faults.hpp>
#include <vouch/conformance/clauses/fidelity.hpp>
#include <vouch/conformance/clauses/fixture.hpp>
#include <vouch/conformance/clauses/groups.hpp>
#include <vouch/conformance/clauses/histories.hpp>
#include <vouch/conformance/clauses/interleavings.hpp>
#include <vouch/conformance/clauses/lanes.hpp>
#include <vouch/conformance/clauses/lifecycle.hpp>
#include <vouch/conformance/clauses/model.hpp>
#include <vouch/conformance/clauses/names.hpp>
#include <vouch/conformance/clauses/names_kept.hpp>
#include <vouch/conformance/clauses/nudge.hpp>
#include <vouch/conformance/clauses/overlaps.hpp>
#include <vouch/conformance/clauses/parent.hpp>
#include <vouch/conformance/clauses/processes.hpp>
#include <vouch/conformance/clauses/purge.hpp>
#include <vouch/conformance/clauses/reads.hpp>
#include <vouch/conformance/clauses/reads_filters.hpp>
#include <vouch/conformance/clauses/requeue.hpp>
#include <vouch/conformance/clauses/settle.hpp>
#include <vouch/conformance/clauses/settle_tickets.hpp>
#include <vouch/conformance/clauses/simulation.hpp>
#include <vouch/conformance/clauses/sizes.hpp>
#include <vouch/conformance/clauses/sizes_histories.hpp>
#include <vouch/conformance/clauses/sizes_reads.hpp>
#include <vouch/conformance/clauses/sizes_values.hpp>
#include <vouch/conformance/clauses/threads.hpp>
#include <vouch/conformance/clauses/times.hpp>
#include <vouch/conformance/clauses/times_others.hpp>
#include <vouch/conformance/clauses/transaction.hpp>
#include <vouch/conformance/clauses/transaction_use.hpp>
#include <vouch/conformance/clauses/validation.hpp>
#include <vouch/conformance/clauses/validation_calls.hpp>
#include <vouch/conformance/clauses/verdicts.hpp>
#include <vouch/conformance/clauses/waiting.hpp>
#include <vouch/conformance/clauses/wakes.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance {

/// Call it as `all_clauses()`. It is a template so that a build with several suite programs can compile the clauses once:
/// one source file has `template const std::vector<clause>& all_clauses<void>();`, and the programs declare the same with
/// `extern` in front. tests/conformance/clauses.hpp does. With the split headers, a program that defines
/// VOUCH_CLAUSES_ELSEWHERE declares it, and does not even read the clauses.
template <class = void>
[[nodiscard]] const std::vector<clause>& all_clauses() {
    static const std::vector<clause> all = [] {
        std::vector<clause> out;
        const auto add = [&](std::span<const clause> some) { out.insert(out.end(), some.begin(), some.end()); };
        add(clauses::fixture);
        add(clauses::enqueues);
        add(clauses::dedup);
        add(clauses::requeues);
        add(clauses::claiming);
        add(clauses::claiming_in_order);
        add(clauses::settling);
        add(clauses::settling_by_ticket);
        add(clauses::verdict_table);
        add(clauses::extending);
        add(clauses::nudging);
        add(clauses::cancelling);
        add(clauses::lanes);
        add(clauses::parents);
        add(clauses::groups);
        add(clauses::transactions);
        add(clauses::transaction_use);
        add(clauses::lifecycles);
        add(clauses::reads);
        add(clauses::filtered_reads);
        add(clauses::purges);
        add(clauses::validation);
        add(clauses::validation_of_calls);
        add(clauses::fidelity);
        add(clauses::naming);
        add(clauses::naming_of_values);
        add(clauses::timing);
        add(clauses::timing_of_others);
        add(clauses::sizes);
        add(clauses::sizes_of_reads);
        add(clauses::sizes_of_histories);
        add(clauses::sizes_of_values);
        add(clauses::largest_sizes);
        add(clauses::wakes);
        add(clauses::waiting);
        add(clauses::capability);
        add(clauses::committing);
        add(clauses::committing_claims);
        add(clauses::committing_relations);
        add(clauses::committing_settles);
        add(clauses::model_runs);
        add(clauses::interleavings);
        add(clauses::overlaps);
        add(clauses::histories);
        add(clauses::threads);
        add(clauses::crashes);
        add(clauses::processes);
        add(clauses::cost);
        add(clauses::faults);
        add(clauses::fault_ends);
        add(clauses::committing_together);
        add(clauses::committing_faults);
        add(clauses::committing_settles_together);
        add(clauses::simulation);
        return out;
    }();
    return all;
}

} // namespace conformance
} // namespace v0
} // namespace vouch

// amalgamate: split only
#endif
// amalgamate: end
