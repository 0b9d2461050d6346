// SPDX-License-Identifier: MIT
// Faults and crashes in transactions that commit with their last operation.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <vouch/conformance/clause.hpp>
#include <vouch/conformance/clauses/committing_claims.hpp>
#include <vouch/conformance/clauses/crashes.hpp>
#include <vouch/conformance/clauses/fault_ends.hpp>
#include <vouch/conformance/detail/steps.hpp>
#include <vouch/conformance/detail/trial.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace committing_fault_checks {

using namespace committing_claim_checks;

/// A transaction that ends with `end`, in which faults occur. `ends` are the snapshots that it may lead to, and `end`
/// returns the number of the one that it has led to.
struct faulty_end {
    string what{};
    std::size_t (*end)(any_transaction&) = nullptr;
    vector<snapshot> ends{};
    bool puts_seventh = true; ///< whether it enqueues 7 before
};

inline void prepare_faults(any_store& store) {
    put_expiring(store);
    put(store, draft_of(4, {.queue = "r"}));
}

[[nodiscard]] inline std::array<vouch::settle, 1> first_settled() {
    return {vouch::settle{{id_of(1), 1}, succeed{"done"}}};
}

inline std::size_t enqueue_end(any_transaction& tx) {
    tx.enqueue_last(std::array{draft_of(8, {.key = "k"}), draft_of(9)}, at(1));
    return 0;
}
inline std::size_t claim_end(any_transaction& tx) {
    return tx.claim_last(request(at(1), {.queue = "r"})).has_value() ? 0 : 1;
}
inline std::size_t settle_end(any_transaction& tx) {
    const auto done = tx.settle_last(first_settled(), at(1), request(at(1), {.queue = "r"}));
    trial::expect(all_applied(done.settlements), "the settle is applied");
    return done.claimed ? 0 : 1;
}
inline std::size_t left_end(any_transaction& tx) {
    std::ignore = tx.claim_last(request(at(100)));
    return 0;
}

/// The snapshot after a transaction with these calls.
template <class Work>
[[nodiscard]] snapshot after(trial& t, const Work& work) {
    auto store = t.open(t.fresh_location());
    prepare_faults(store);
    transact(store, work);
    return ranked_snapshot_of(store);
}

[[nodiscard]] inline vector<faulty_end> faulty_ends(trial& t) {
    const auto put_seventh = [](any_transaction& tx) { put_in(tx, draft_of(7)); };
    const auto alone = after(t, put_seventh);
    const auto with_drafts = after(t, [&](auto& tx) {
        put_seventh(tx);
        tx.enqueue(std::array{draft_of(8, {.key = "k"}), draft_of(9)}, at(1));
    });
    const auto with_claim = after(t, [&](auto& tx) {
        put_seventh(tx);
        std::ignore = tx.claim(request(at(1), {.queue = "r"}));
    });
    const auto settled = [&](bool puts, bool claims) {
        return after(t, [&](auto& tx) {
            puts ? put_seventh(tx) : void();
            std::ignore = tx.settle(first_settled(), at(1));
            if (claims) {
                std::ignore = tx.claim(request(at(1), {.queue = "r"}));
            }
        });
    };
    return {{"enqueue_and_commit", enqueue_end, {with_drafts}},
            {"claim_and_commit", claim_end, {with_claim, alone}},
            {"claim_and_commit beside an expired lease", left_end, {alone}},
            {"settle_claim_and_commit", settle_end, {settled(true, true), settled(true, false)}},
            {"settle_claim_and_commit alone", settle_end, {settled(false, true), settled(false, false)}, false}};
}

/// Fails the n-th step of the last operation. Returns false if it has no such step.
inline bool fail_end(trial& t, const faulty_end& e, std::size_t n) {
    const auto& fail_at = fault_end_checks::hook_of(t);
    const fault_end_checks::faults_end off{fail_at};
    auto store = t.open(t.fresh_location());
    prepare_faults(store);
    const auto before = ranked_snapshot_of(store);
    optional<std::size_t> returned;
    bool in_doubt = false;
    {
        auto tx = store.begin();
        e.puts_seventh ? put_in(tx, draft_of(7)) : void();
        fail_at(n);
        try {
            returned = e.end(tx);
        } catch (const error& thrown) {
            if (thrown.kind() == error_kind::conflict) {
                throw;
            }
            in_doubt = thrown.is_in_doubt();
        }
        const bool has_fired = fail_at(0);
        t.tally().faults += has_fired ? 1U : 0U;
        if (!has_fired) {
            return false;
        }
        all_misuse_at_last(t, tx);
    }
    const auto now = ranked_snapshot_of(store);
    const bool is_whole = in_doubt && (now == e.ends.front() || now == e.ends.back());
    if (const auto& wanted = returned ? e.ends[*returned] : before; now != wanted && !is_whole) {
        auto [seen, expected] = show_difference(now, wanted);
        t.fail(e.what + (returned   ? ", after it has returned"
                         : in_doubt ? ", after an error in doubt"
                                    : ", after an error that is not in doubt"),
               std::move(seen), std::move(expected));
    }
    t.equal(put(store, draft_of(20, {.key = "k"})).what == receipt::kind::duplicate,
            now != before && e.end == enqueue_end, "the key of the last draft is taken");
    return true;
}

inline void faults_leave_nothing(trial& t) {
    std::ignore = fault_end_checks::hook_of(t);
    for (const auto& e : faulty_ends(t)) {
        for (std::size_t n = 1; fail_end(t, e, n); ++n) {
        }
    }
}

enum class last_call : std::uint8_t { enqueue, claim, settle };

/// Settles what is claimed.
[[nodiscard]] inline vector<vouch::settle> crash_settles(any_transaction& tx) {
    vector<vouch::settle> out;
    for (const auto& e : tx.list(query::live("q"))) {
        if (e.state == state::claimed) {
            out.push_back({ticket_of(e), succeed{"done"}});
        }
    }
    return out;
}

inline void survives_crashes(trial& t) {
    if (!t.can().durable) {
        return;
    }
    crash_checks::require_files(t);
    const auto p = t.fresh_location();
    constexpr std::uint64_t rounds = 3;
    for (std::uint64_t n = 1; n <= rounds; ++n) {
        for (const auto end : {last_call::enqueue, last_call::claim, last_call::settle}) {
            optional<any_store> store(t.context().open(p));
            const auto next = request(at(0), {.limit = 1, .lease = duration{1'000}});
            repeatedly(*store, [&](auto& tx) {
                put_in(tx, draft_of(100 * n + 10 * static_cast<std::uint64_t>(end)));
                if (end == last_call::claim) {
                    return tx.claim_last(next).has_value();
                }
                if (end == last_call::settle) {
                    return all_applied(tx.settle_last(crash_settles(tx), at(0), next).settlements);
                }
                return !tx.enqueue_last(std::array{draft_of(100 * n + 1, {.payload = "p"})}, at(0)).empty();
            });
            const auto before = crash_checks::stored_in(*store);
            optional<any_transaction> open(store->begin());
            put_in(*open, draft_of(1'000));
            crash_checks::end_process(t, p, [&] {
                open.reset();
                store.reset();
            });
            t.equal(crash_checks::stored_in(t.context().open(p)), before,
                    "the entries after the death of a process that had committed with its last operation");
        }
    }
    t.abandon(p);
}

} // namespace committing_fault_checks

inline constexpr std::array committing_faults{
    clause{"COMMIT-13", layer::faults, level::may, needs::committing,
           "If a step of enqueue_and_commit, claim_and_commit or settle_claim_and_commit fails, nothing of the "
           "transaction "
           "is stored, or all of it if the error is in doubt, and the transaction is closed.",
           committing_fault_checks::faults_leave_nothing},
    clause{"COMMIT-14", layer::crashes, level::may, needs::committing,
           "In a durable store, what enqueue_and_commit, claim_and_commit and settle_claim_and_commit have committed "
           "survives the death of the process.",
           committing_fault_checks::survives_crashes},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch
