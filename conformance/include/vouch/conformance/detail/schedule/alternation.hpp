// SPDX-License-Identifier: MIT
// Two open transactions on one thread, which takes their steps in turn. Only for steps of which it is known that none
// waits for the other transaction.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>
#include <vector>

#include <vouch/conformance/any_store.hpp>
#include <vouch/conformance/detail/schedule/history.hpp>
#include <vouch/conformance/detail/schedule/operation.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

/// Takes the next step of a transaction: a call, with begin if it is the first one, or the end.
inline void take_step(any_store& store, std::optional<any_transaction>& tx, transaction_run& d, event_log& log) {
    if (d.ended != transaction_run::end::none) {
        return;
    }
    try {
        if (!tx) {
            d.begun_at = log.add(d.thread, "begin");
            tx.emplace(store.begin());
        }
        if (d.answers.size() < d.operations.size()) {
            const auto& o = d.operations[d.answers.size()];
            d.calls.push_back({.begun_at = log.now()});
            d.answers.push_back(perform(*tx, o));
            d.calls.back().ended_at = log.add(d.thread, show(o) + " -> " + show(o, d.answers.back()));
            return;
        }
        d.commit_begun_at = log.now();
        tx->commit();
        d.ended = transaction_run::end::committed;
        d.thrown = "committed";
    } catch (const error& e) {
        d.ended = e.kind() == error_kind::conflict ? transaction_run::end::conflict : transaction_run::end::threw;
        d.thrown = show(e.kind()) + ": " + e.what();
    }
    tx.reset();
    d.ended_at = log.add(d.thread, d.thrown);
}

/// Whether the steps of these transactions ended in this order, so that none waited for the other transaction.
[[nodiscard]] inline bool has_kept_order(const std::vector<transaction_run>& runs,
                                         const std::vector<std::size_t>& order) {
    std::vector<std::size_t> taken(runs.size());
    std::uint64_t last = 0;
    for (const auto which : order) {
        const auto& d = runs[which];
        const auto step = taken[which]++;
        const auto ended_at = step < d.calls.size() ? d.calls[step].ended_at : d.ended_at;
        if (ended_at < last || !d.has_answers()) {
            return false;
        }
        last = ended_at;
    }
    return true;
}

/// Runs two transactions, which commit, on the calling thread, in this order of their steps.
inline void run_alternating(std::vector<any_store>& handles, std::vector<transaction_run>& runs,
                            const std::vector<std::size_t>& order, event_log& log) {
    std::array<std::optional<any_transaction>, 2> open{};
    for (const auto which : order) {
        take_step(handles[which], open[which], runs[which], log);
    }
}

} // namespace conformance::detail
} // namespace v0
} // namespace vouch
