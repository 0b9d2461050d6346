// SPDX-License-Identifier: MIT
// `claim_and_commit`: what it claims, and when it leaves the claim to another transaction.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include <vouch/conformance/clause.hpp>
#include <vouch/conformance/clauses/committing.hpp>
#include <vouch/conformance/detail/steps.hpp>
#include <vouch/conformance/detail/trial.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace committing_claim_checks {

using namespace committing_checks;

/// In "q": 1 due at(15), 2 and 3 due at(13), 4 retrying from at(10), 5 due at(90), 6 claimed until at(100); in "r": 7.
[[nodiscard]] inline any_store with_due_entries(trial& t) {
    auto store = t.open(t.fresh_location());
    put_as(store, draft_of(6), state::claimed);
    put_as(store, draft_of(4, {.payload = "four"}), state::retrying);
    put(store, draft_of(1, {.payload = "one", .due_at = at(15), .trail = {id_of(9)}, .headers = {{"h", "v"}}}));
    put(store, draft_of(2, {.key = "k", .due_at = at(13)}));
    put(store, draft_of(3, {.due_at = at(13)}));
    put(store, draft_of(5, {.due_at = at(90)}));
    put(store, draft_of(7, {.queue = "r", .due_at = at(12)}));
    return store;
}

[[nodiscard]] inline vector<claim_request> requests() {
    vector<claim_request> out;
    for (const std::size_t limit : {0U, 1U, 2U, 3U}) {
        out.push_back(request(at(20), {.limit = limit}));
    }
    for (const int now : {0, 12, 13, 14, 15, 90}) {
        out.push_back(request(at(now)));
    }
    for (const std::uint64_t n : {1U, 5U, 6U, 7U, 20U}) {
        out.push_back(request(at(20), {.only = id_of(n)}));
    }
    out.push_back(request(at(20), {.queue = "r", .lease = duration{7}, .worker = "another"}));
    out.push_back(request(at(20), {.queue = "unused"}));
    return out;
}

[[nodiscard]] inline vector<entry> without_sequences(vector<entry> entries) {
    for (auto& e : entries) {
        e.sequence = 0;
    }
    return entries;
}

inline void claims_as_claim(trial& t) {
    for (const auto& wanted : requests()) {
        auto one = with_due_entries(t);
        auto other = with_due_entries(t);
        if (const auto claimed = claim_last(one, wanted)) {
            const auto expected = transact(other, [&](auto& tx) { return tx.claim(wanted); });
            t.equal(without_sequences(*claimed), without_sequences(expected),
                    "claimed by claim_and_commit, and by claim");
            same(one, other, "what claim_and_commit stores is what claim and commit store");
        } else {
            same(one, other, "if claim_and_commit returns nothing, it has claimed nothing");
        }
    }
}

/// In "q": 1 claimed until at(100), 2 due at(50), 3 due at(150).
inline void put_expiring(any_store& store) {
    put(store, draft_of(1));
    std::ignore = take_one(store, at(0));
    put(store, draft_of(2, {.due_at = at(50)}));
    put(store, draft_of(3, {.due_at = at(150)}));
}

/// In "q": 1 has lapsed once, was handed back and is due at(0), 2 due at(50).
inline void put_handed_back(any_store& store) {
    put(store, draft_of(1));
    const auto held = take_lapsed(store, 1, 1);
    trial::equal(settle(store, held, release{}, at(100)).verdict, verdict::applied, "the entry is handed back");
    put(store, draft_of(2, {.due_at = at(50)}));
}

inline void leaves_lapsed(trial& t) {
    for (const auto& wanted :
         {request(at(200)), request(at(200), {.limit = 1}), request(at(200), {.only = id_of(1)})}) {
        auto store = t.open(t.fresh_location());
        put_handed_back(store);
        const auto before = snapshot_of(store);
        t.expect(!claim_last(store, wanted),
                 "claim_and_commit returns nothing if it would claim an entry that has lapsed and was handed back");
        unchanged(store, before, "a claim_and_commit that returns nothing claims nothing");
    }
}

inline void leaves_expired(trial& t) {
    leaves_lapsed(t);
    for (const auto& wanted : {request(at(100)), request(at(100), {.limit = 2}), request(at(150)),
                               request(at(200), {.limit = 2}), request(at(100), {.only = id_of(1)})}) {
        auto store = t.open(t.fresh_location());
        put_expiring(store);
        const auto before = snapshot_of(store);
        const auto claimed = claim_last(store, wanted);
        t.expect(!claimed, "claim_and_commit returns nothing if it would take over an entry whose lease has expired");
        unchanged(store, before, "a claim_and_commit that returns nothing claims nothing");
        const auto later = transact(store, [&](auto& tx) { return tx.claim(wanted); });
        t.expect(!later.empty(), "another transaction can claim then");
    }
    for (const auto& wanted : {request(at(100), {.limit = 1}), request(at(99)), request(at(100), {.only = id_of(2)})}) {
        auto store = t.open(t.fresh_location());
        put_expiring(store);
        auto claimed = claim_last(store, wanted);
        if (!claimed) {
            claimed = transact(store, [&](auto& tx) { return tx.claim(wanted); });
        }
        t.equal(numbers(*claimed), list_of{2}, "claimed beside an entry that it would not take over");
    }
}

inline void nothing_still_commits(trial& t) {
    for (const auto& [name, change] : earlier) {
        const string what(name); // a lambda cannot capture a structured binding
        const auto& in = change;
        auto store = furnished(t);
        put(store, draft_of(30, {.queue = "z"}));
        std::ignore = take_one(store, at(0), {.queue = "z"});
        from_begin(store, [&](auto& tx) {
            in(tx);
            const auto own = snapshot_of(tx);
            const auto claimed = tx.claim_last(request(at(100), {.queue = "z"}));
            t.expect(!claimed, "nothing is returned, because a lease has expired");
            unchanged(store, own, what + ", in a transaction that left its claim to another one");
            t.equal(get(store, 30).epoch, 1U, "the epoch of the entry with an expired lease");
        });
    }
}

} // namespace committing_claim_checks

inline constexpr std::array committing_claims{
    clause{"COMMIT-05", layer::examples, level::may, needs::committing,
           "claim_and_commit claims and returns what claim does, or it claims nothing and returns nothing.",
           committing_claim_checks::claims_as_claim},
    clause{"COMMIT-06", layer::examples, level::may, needs::committing,
           "claim_and_commit claims nothing and returns nothing if an entry that it would claim would have lapses "
           "above 0.",
           committing_claim_checks::leaves_expired},
    clause{"COMMIT-07", layer::examples, level::may, needs::committing,
           "A claim_and_commit that returns nothing commits the earlier writes of its transaction.",
           committing_claim_checks::nothing_still_commits},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch
