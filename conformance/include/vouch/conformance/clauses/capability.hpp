// SPDX-License-Identifier: MIT
// Capabilities: a store refuses the use of a capability that it does not declare, and its limits are not tighter than
// the contract's.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include <vouch/conformance/clause.hpp>
#include <vouch/conformance/clauses/transaction_use.hpp>
#include <vouch/conformance/detail/steps.hpp>
#include <vouch/conformance/detail/trial.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace capability_checks {

using namespace transaction_checks;

/// Requires that a batch with such a draft in its middle is refused with the name of the field, and nothing is written.
inline void unsupported(trial& t, std::string_view field, const draft& d) {
    auto store = furnished(t);
    const auto before = snapshot_of(store);
    const std::array batch{draft_of(17), d, draft_of(19)};
    auto tx = store.begin();
    const std::string said = t.throws(error_kind::unsupported, "a draft with a " + std::string(field), [&] {
                                  tx.enqueue(batch, at(0));
                              }).what();
    t.expect(said.find(field) != std::string::npos, "the refusal names the field that is not supported");
    all_misuse(t, tx);
    unchanged(store, before, "an unsupported draft changes nothing");
}

inline void groups_refused(trial& t) {
    if (!t.can().groups) {
        unsupported(t, "group", draft_of(18, {.group = "g"}));
    }
}

inline void lanes_refused(trial& t) {
    if (!t.can().lanes) {
        unsupported(t, "lane", draft_of(18, {.lane = "lane"}));
    }
}

inline void committing_declared(trial& t) {
    const bool has_operations = t.open().is_committing();
    t.expect(has_operations || !t.can().committing,
             "a store that declares committing has transactions with enqueue_and_commit, claim_and_commit and "
             "settle_claim_and_commit");
    t.expect(
        !has_operations || t.can().committing,
        "a store whose transactions have enqueue_and_commit, claim_and_commit and settle_claim_and_commit declares "
        "committing");
}

inline void limits_not_lowered(trial& t) {
    const auto& own = t.can().limits;
    const vouch::limits least;
    const auto at_least = [](std::size_t seen, std::size_t expected, std::string_view name) {
        if (seen < expected) {
            trial::fail(std::string(name) + " is not lower than the contract's", show(seen), show(expected));
        }
    };
    at_least(own.name_max, least.name_max, "name_max");
    at_least(own.error_max, least.error_max, "error_max");
    at_least(own.payload_max, least.payload_max, "payload_max");
    at_least(own.result_max, least.result_max, "result_max");
    at_least(own.progress_max, least.progress_max, "progress_max");
    at_least(own.trail_max, least.trail_max, "trail_max");
    at_least(own.headers_max, least.headers_max, "headers_max");
    at_least(own.header_value_max, least.header_value_max, "header_value_max");
    at_least(own.batch_max, least.batch_max, "batch_max");
    t.expect(own.lease_min <= least.lease_min && own.lease_max >= least.lease_max,
             "leases as short and as long as the contract's are allowed");
}

} // namespace capability_checks

inline constexpr std::array capability{
    clause{"CAP-01", layer::examples, level::must, needs::nothing,
           "A store that does not declare groups refuses a draft with a group as unsupported, writes nothing of its "
           "batch and closes the transaction.",
           capability_checks::groups_refused},
    clause{"CAP-02", layer::examples, level::must, needs::nothing,
           "A store that does not declare lanes refuses a draft with a lane as unsupported, writes nothing of its "
           "batch and closes the transaction.",
           capability_checks::lanes_refused},
    clause{"CAP-03", layer::examples, level::must, needs::nothing,
           "No limit that a store declares is tighter than the contract's.", capability_checks::limits_not_lowered},
    clause{"CAP-04", layer::examples, level::must, needs::nothing,
           "A store declares committing exactly if its transactions have enqueue_and_commit, claim_and_commit and "
           "settle_claim_and_commit.",
           capability_checks::committing_declared},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch
