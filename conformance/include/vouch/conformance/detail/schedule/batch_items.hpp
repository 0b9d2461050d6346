// SPDX-License-Identifier: MIT
// The items of a batch, one by one, and what their answers rest on.
#pragma once

#include <cstddef>

#include <vouch/conformance/detail/model/model.hpp>
#include <vouch/conformance/detail/schedule/operation.hpp>
#include <vouch/contract/draft.hpp>
#include <vouch/contract/verdict.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

/// Item n of an operation, as an operation.
[[nodiscard]] inline operation item(const operation& o, std::size_t n) {
    operation one{.what = o.what, .now = o.now, .lease = o.lease, .wanted = o.wanted};
    if (n < o.drafts.size()) {
        one.drafts = {o.drafts[n]};
    }
    if (n < o.settles.size()) {
        one.settles = {o.settles[n]};
    }
    if (n < o.tickets.size()) {
        one.tickets = {o.tickets[n]};
    }
    return one;
}

/// Item n of an answer, as an answer.
[[nodiscard]] inline answer item(const answer& a, std::size_t n) {
    answer one;
    if (n < a.receipts.size()) {
        one.receipts = {a.receipts[n]};
    }
    if (n < a.settlements.size()) {
        one.settlements = {a.settlements[n]};
    }
    if (n < a.verdicts.size()) {
        one.verdicts = {a.verdicts[n]};
    }
    return one;
}

/// Whether the answer of an item says that something is absent.
[[nodiscard]] inline bool rests_on_absence(const answer& one) {
    return (!one.receipts.empty() && one.receipts.front().what != receipt::kind::inserted) ||
           (!one.settlements.empty() && one.settlements.front().verdict == verdict::unknown) ||
           (!one.verdicts.empty() && one.verdicts.front() == verdict::unknown);
}

/// The owner that a duplicate names stays stored until the transaction ends.
[[nodiscard]] inline bool names_stored(const operation& one, const answer& answered, const model& at_place) {
    if (answered.receipts.empty() || answered.receipts.front().what != receipt::kind::duplicate) {
        return true;
    }
    const auto& d = one.drafts.front();
    const auto* const owner = at_place.find(answered.receipts.front().id);
    return owner != nullptr && (owner->id == d.id || (!d.predecessor.is_nil() && owner->predecessor == d.predecessor) ||
                                (!d.key.empty() && owner->key == d.key && owner->queue == d.queue));
}

} // namespace conformance::detail
} // namespace v0
} // namespace vouch
