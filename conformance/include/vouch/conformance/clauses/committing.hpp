// SPDX-License-Identifier: MIT
// The last operation of a transaction together with its commit: `enqueue_and_commit`, `claim_and_commit` and
// `settle_claim_and_commit`, which are `enqueue_last`, `claim_last` and `settle_last` of `any_transaction`.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <vouch/conformance/clause.hpp>
#include <vouch/conformance/clauses/transaction_use.hpp>
#include <vouch/conformance/detail/fault_scenario.hpp>
#include <vouch/conformance/detail/steps.hpp>
#include <vouch/conformance/detail/trial.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace committing_checks {

using namespace transaction_checks;
using std::optional;
using std::string;
using std::vector;

inline vector<receipt> enqueue_last(any_store& store, const vector<draft>& drafts, time_point now = at(0)) {
    return repeatedly(store, [&](auto& tx) { return tx.enqueue_last(drafts, now); });
}

[[nodiscard]] inline optional<vector<entry>> claim_last(any_store& store, const claim_request& wanted) {
    return repeatedly(store, [&](auto& tx) { return tx.claim_last(wanted); });
}

/// Requires that two stores have the same entries, apart from their sequences.
inline void same(const any_store& seen, const any_store& expected, std::string_view what) {
    const auto a = ranked_snapshot_of(seen);
    if (const auto b = ranked_snapshot_of(expected); a != b) {
        auto [shown, wanted] = show_difference(a, b);
        trial::fail(string(what), std::move(shown), std::move(wanted));
    }
}

/// Batches for a furnished store.
[[nodiscard]] inline vector<vector<draft>> batches(const capabilities& can) {
    vector<vector<draft>> out{
        {},
        {draft_of(
            7, {.payload = "p", .due_at = at(70), .expires_at = at(99), .trail = {id_of(1)}, .headers = {{"h", "v"}}})},
        {draft_of(3)},
        {draft_of(7, {.key = "k"})},
        {draft_of(7, {.queue = "r", .key = "k"})},
        {draft_of(7, {.key = "m"}), draft_of(8, {.key = "m"}), draft_of(7), draft_of(9)},
        {draft_of(7, {.predecessor = id_of(5)}), draft_of(8, {.predecessor = id_of(5)})},
        {draft_of(7, {.predecessor = id_of(5)})},
        {draft_of(7, {.predecessor = id_of(1)})},
        {draft_of(7), draft_of(8, {.predecessor = id_of(20)}), draft_of(9)},
        {draft_of(7, {.result = "r"})},
        {draft_of(7, {.queue = "r", .parent = id_of(3)})},
    };
    if (can.lanes) {
        out.push_back({draft_of(7, {.lane = "x"}), draft_of(8, {.lane = "x"})});
    }
    if (can.groups) {
        out.push_back({draft_of(7, {.group = "g"})});
    }
    return out;
}

inline void enqueues_as_enqueue(trial& t) {
    for (const auto& batch : batches(t.can())) {
        auto one = furnished(t);
        auto other = furnished(t);
        const auto wanted = transact(other, [&](auto& tx) { return tx.enqueue(batch, at(60)); });
        t.equal(enqueue_last(one, batch, at(60)), wanted, "the receipts of enqueue_and_commit, and those of enqueue");
        same(one, other, "what enqueue_and_commit stores is what enqueue and commit store");
    }
}

/// What a transaction does before its last operation. The last one is about other queues than "q" and "r", and about
/// entries that a snapshot does not show.
inline constexpr std::array earlier{
    deed{"nothing", [](any_transaction&) {}},
    deed{"a read", [](any_transaction& tx) { std::ignore = tx.find(id_of(1)); }},
    deed{"an enqueue", [](any_transaction& tx) { put_in(tx, draft_of(7)); }},
    deed{"a settle", [](any_transaction& tx) { settle_third(tx, succeed{"done"}); }},
    deed{"every operation", everything},
};

inline void earlier_writes(trial& t) {
    for (const auto& [name, change] : earlier) {
        const string what(name); // a lambda cannot capture a structured binding
        const auto& in = change;
        auto store = furnished(t);
        from_begin(store, [&](auto& tx) {
            in(tx);
            const auto own = snapshot_of(tx);
            tx.enqueue_last(std::array{draft_of(31, {.queue = "y"})}, at(0));
            unchanged(store, own, what + " and then enqueue_and_commit");
            t.expect(store.find(id_of(31)).has_value(), "the last draft is stored as well");
        });
        auto other = furnished(t);
        put(other, draft_of(30, {.queue = "z"}));
        from_begin(other, [&](auto& tx) {
            in(tx);
            const auto own = snapshot_of(tx);
            const bool is_claimed = tx.claim_last(request(at(0), {.queue = "z"})).has_value();
            unchanged(other, own, what + " and then claim_and_commit");
            t.equal(get(other, 30).state, is_claimed ? state::claimed : state::pending, "the entry to be claimed");
        });
        auto third = furnished(t);
        put(third, draft_of(30, {.queue = "z"}));
        const auto held = take_one(third, at(0), {.queue = "z"});
        from_begin(third, [&](auto& tx) {
            in(tx);
            const auto own = snapshot_of(tx);
            std::ignore =
                tx.settle_last(std::array{vouch::settle{held, succeed{}}}, at(0), request(at(0), {.queue = "z"}));
            unchanged(third, own, what + " and then settle_claim_and_commit");
            t.equal(get(third, 30).state, state::succeeded, "the entry to be settled");
        });
    }
}

/// Settles entry 3 of a furnished store, which is claimed with epoch 1, and claims.
inline void settle_third_last(any_transaction& tx, std::uint64_t epoch, outcome o, const claim_request& next) {
    std::ignore = tx.settle_last(std::array{vouch::settle{{id_of(3), epoch}, std::move(o)}}, at(20), next);
}

inline void all_misuse_at_last(trial& t, any_transaction& closed) {
    t.throws(error_kind::misuse, "enqueue_and_commit on a closed transaction",
             [&] { closed.enqueue_last(std::array{draft_of(15)}, at(0)); });
    t.throws(error_kind::misuse, "claim_and_commit on a closed transaction",
             [&] { std::ignore = closed.claim_last(request(at(200))); });
    t.throws(error_kind::misuse, "settle_claim_and_commit on a closed transaction",
             [&] { settle_third_last(closed, 1, succeed{}, request(at(200))); });
    all_misuse(t, closed);
}

/// The ways in which the three operations return, on a furnished store.
inline constexpr std::array endings{
    deed{"an insert", [](any_transaction& tx) { tx.enqueue_last(std::array{draft_of(7)}, at(0)); }},
    deed{"a duplicate", [](any_transaction& tx) { tx.enqueue_last(std::array{draft_of(1)}, at(0)); }},
    deed{"a claim", [](any_transaction& tx) { std::ignore = tx.claim_last(request(at(60))); }},
    deed{"a claim of one",
         [](any_transaction& tx) { std::ignore = tx.claim_last(request(at(60), {.only = id_of(1)})); }},
    deed{"a claim of no entry", [](any_transaction& tx) { std::ignore = tx.claim_last(request(at(5))); }},
    deed{"a claim with limit 0",
         [](any_transaction& tx) { std::ignore = tx.claim_last(request(at(60), {.limit = 0})); }},
    deed{"a claim of an expired lease", [](any_transaction& tx) { std::ignore = tx.claim_last(request(at(200))); }},
    deed{"a settle and a claim", [](any_transaction& tx) { settle_third_last(tx, 1, succeed{}, request(at(60))); }},
    deed{"a settle that is refused", [](any_transaction& tx) { settle_third_last(tx, 9, succeed{}, request(at(60))); }},
    deed{"a settle beside an expired lease",
         [](any_transaction& tx) {
             settle_third_last(tx, 1, retry{"e", at(300)}, request(at(200)));
         }},
    deed{"a settle and a claim of one",
         [](any_transaction& tx) { settle_third_last(tx, 1, succeed{}, request(at(60), {.only = id_of(1)})); }},
    deed{"a commit", [](any_transaction& tx) { tx.commit(); }},
};

inline void closes(trial& t) {
    auto empty = t.open(t.fresh_location()); // first, so that a printed test is short
    auto first = empty.begin();
    first.enqueue_last(std::array{draft_of(1)}, at(0));
    all_misuse_at_last(t, first);
    for (const auto& [what, end] : endings) {
        auto store = furnished(t);
        auto tx = store.begin();
        end(tx);
        const auto before = snapshot_of(store);
        all_misuse_at_last(t, tx);
        unchanged(store, before, "the use of a transaction after " + string(what));
        t.equal(put(store, draft_of(8)), inserted(8), "a transaction after that");
    }
    auto store = furnished(t);
    auto tx = store.begin();
    auto other = tx.move_out();
    all_misuse_at_last(t, tx);
    other.enqueue_last(std::array{draft_of(7)}, at(0));
    t.expect(store.find(id_of(7)).has_value(), "the transaction moved to can end with an enqueue");
}

inline constexpr std::array invalid_endings{
    deed{"enqueue_and_commit of one draft", [](any_transaction& tx) { tx.enqueue_last(std::array{draft{}}, at(0)); }},
    deed{"enqueue_and_commit of a batch",
         [](any_transaction& tx) {
             tx.enqueue_last(std::array{draft_of(9), draft{}}, at(0));
         }},
    deed{"claim_and_commit without a queue",
         [](any_transaction& tx) {
             std::ignore = tx.claim_last({.queue = "", .limit = 1, .now = at(60), .lease = duration{9}});
         }},
    deed{"claim_and_commit without a lease",
         [](any_transaction& tx) { std::ignore = tx.claim_last(request(at(60), {.lease = duration{0}})); }},
    deed{"settle_claim_and_commit with an error code that is too long",
         [](any_transaction& tx) {
             settle_third_last(tx, 1, retry{string(101, 'e'), at(0)}, request(at(60)));
         }},
    deed{"settle_claim_and_commit without a queue",
         [](any_transaction& tx) { settle_third_last(tx, 1, succeed{}, request(at(60), {.queue = ""})); }},
    deed{"settle_claim_and_commit without a lease",
         [](any_transaction& tx) { settle_third_last(tx, 9, succeed{}, request(at(60), {.lease = duration{0}})); }},
};

inline void open_after_invalid_end(trial& t) {
    for (const auto& [name, call] : invalid_endings) {
        const string what(name); // a lambda cannot capture a structured binding
        const auto& use = call;
        auto store = furnished(t);
        const auto before = snapshot_of(store);
        from_begin(store, [&](auto& tx) {
            put_in(tx, draft_of(7));
            const auto own = snapshot_of(tx);
            t.throws(error_kind::invalid_argument, what + " with an invalid argument", [&] { use(tx); });
            t.equal(tx.nudge(id_of(7), at(0)), verdict::repeated, "a nudge after " + what);
            unchanged(tx, own, what + " with an invalid argument changes nothing");
            unchanged(store, before, what + " with an invalid argument commits nothing");
            tx.enqueue_last(std::array{draft_of(30)}, at(0));
        });
        t.expect(store.find(id_of(7)) && store.find(id_of(30)), "what was written before and after " + what);
    }
}

} // namespace committing_checks

inline constexpr std::array committing{
    clause{
        "COMMIT-01", layer::examples, level::may, needs::committing,
        "enqueue_and_commit returns and stores what enqueue and commit do: inserted, duplicate, refused, single or in "
        "a batch.",
        committing_checks::enqueues_as_enqueue},
    clause{
        "COMMIT-02", layer::examples, level::may, needs::committing,
        "enqueue_and_commit, claim_and_commit and settle_claim_and_commit commit everything that their transaction has "
        "written before.",
        committing_checks::earlier_writes},
    clause{"COMMIT-03", layer::examples, level::may, needs::committing,
           "After enqueue_and_commit, claim_and_commit and settle_claim_and_commit the transaction is closed, whatever "
           "they return.",
           committing_checks::closes},
    clause{"COMMIT-04", layer::examples, level::may, needs::committing,
           "If enqueue_and_commit, claim_and_commit or settle_claim_and_commit gets an invalid argument, it writes and "
           "commits nothing, and the transaction is still open and keeps its earlier writes.",
           committing_checks::open_after_invalid_end},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch
