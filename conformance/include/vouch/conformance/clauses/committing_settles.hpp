// SPDX-License-Identifier: MIT
// `settle_claim_and_commit`: what it settles and claims, and that it commits all of it or, if a settle is refused, nothing.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <vouch/conformance/clause.hpp>
#include <vouch/conformance/clauses/committing_claims.hpp>
#include <vouch/conformance/clauses/threads.hpp>
#include <vouch/conformance/detail/steps.hpp>
#include <vouch/conformance/detail/threads/free_threads.hpp>
#include <vouch/conformance/detail/trial.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace committing_settle_checks {

using namespace committing_claim_checks;
using settles_of = vector<vouch::settle>;

inline settled_and_claimed settle_last(any_store& store, const settles_of& settles, const claim_request& wanted,
                                       time_point now = at(20)) {
    return repeatedly(store, [&](auto& tx) { return tx.settle_last(settles, now, wanted); });
}

[[nodiscard]] inline vouch::settle settle_of(std::uint64_t n, outcome o, std::uint64_t epoch = 1) {
    return {{id_of(n), epoch}, std::move(o)};
}

/// In "q": 1 to 5 claimed until at(1000), 6 due at(15), 7 due at(12), 8 due at(90), 9 behind 2 in its lane. In "r": 10 due
/// at(500), the parent of 1; 11 due at(12). The members of the group are 3 and 4.
[[nodiscard]] inline any_store with_held_entries(trial& t) {
    auto store = t.open(t.fresh_location());
    const string lane = t.can().lanes ? "x" : "";
    const string group = t.can().groups ? "g" : "";
    put(store, draft_of(1, {.parent = id_of(10)}));
    put(store, draft_of(2, {.lane = lane}));
    put(store, draft_of(3, {.group = group}));
    put(store, draft_of(4, {.group = group}));
    put(store, draft_of(5));
    t.equal(take(store, at(0), {.lease = duration{1'000}}).size(), 5, "claimed");
    put(store, draft_of(6, {.payload = "six", .due_at = at(15)}));
    put(store, draft_of(7, {.due_at = at(12)}));
    put(store, draft_of(8, {.due_at = at(90)}));
    if (t.can().lanes) {
        put(store, draft_of(9, {.lane = lane, .due_at = at(13)}));
    }
    put(store, draft_of(10, {.queue = "r", .due_at = at(500)}));
    put(store, draft_of(11, {.queue = "r", .due_at = at(12)}));
    return store;
}

struct settles_and_request {
    settles_of settles{};
    claim_request wanted{};
};

[[nodiscard]] inline vector<settles_and_request> applied_calls() {
    const auto now = at(20);
    const settles_of all{settle_of(1, succeed{"one"}), settle_of(2, bury{"e", "reply"}), settle_of(3, succeed{}),
                         settle_of(4, succeed{"4"}), settle_of(5, retry{"e", at(20)})};
    return {
        {{settle_of(5, succeed{"done"})}, request(now)},
        {{settle_of(5, succeed{"done"})}, request(now, {.limit = 1})},
        {{settle_of(5, succeed{})}, request(now, {.limit = 0})},
        {{settle_of(5, succeed{})}, request(now, {.only = id_of(6)})},
        {{settle_of(5, succeed{})}, request(now, {.queue = "unused"})},
        {{settle_of(5, succeed{})}, request(at(90), {.lease = duration{7}, .worker = "another"})},
        {{settle_of(5, succeed{})}, request(at(12))},
        {{settle_of(5, succeed{}), settle_of(3, succeed{"3"}), settle_of(4, succeed{"4"})}, request(now)},
        {{settle_of(4, succeed{"4"}), settle_of(5, bury{"e", "r"}), settle_of(3, succeed{"3"})}, request(now)},
        {{settle_of(1, succeed{})}, request(now, {.queue = "r"})},
        {{settle_of(2, succeed{})}, request(now, {.limit = 2})},
        {{settle_of(5, retry{"e", at(14)})}, request(now)},
        {{settle_of(5, release{}), settle_of(3, release{at(30)})}, request(now)},
        {{settle_of(5, advance{"step", at(20)})}, request(now, {.only = id_of(5)})},
        {{}, request(now)},
        {all, request(now)},
        {all, request(at(600), {.queue = "r"})},
    };
}

inline void settles_and_claims(trial& t) {
    for (const auto& [settles, wanted] : applied_calls()) {
        const auto& in = settles; // a lambda cannot capture a structured binding
        const auto& next = wanted;
        auto one = with_held_entries(t);
        auto other = with_held_entries(t);
        const auto done = settle_last(one, in, next);
        t.equal(done.settlements, transact(other, [&](auto& tx) { return tx.settle(in, at(20)); }),
                "the settlements of settle_claim_and_commit, and those of settle");
        if (done.claimed) {
            const auto claimed = transact(other, [&](auto& tx) { return tx.claim(next); });
            t.equal(without_sequences(*done.claimed), without_sequences(claimed),
                    "claimed by settle_claim_and_commit, and by claim after settle");
        }
        same(one, other, "what settle_claim_and_commit stores is what settle, claim and commit store");
    }
}

/// Settles of which one is refused. The claim would find 7 and 6.
[[nodiscard]] inline vector<settles_of> refused_settles() {
    return {
        {settle_of(5, succeed{}, 2)},
        {settle_of(5, succeed{}), settle_of(1, succeed{}, 7)},
        {settle_of(1, succeed{}, 7), settle_of(5, succeed{})},
        {settle_of(20, succeed{})},
        {settle_of(5, succeed{}), settle_of(20, succeed{}), settle_of(3, succeed{})},
        {settle_of(5, succeed{"5"}), settle_of(5, succeed{"again"})},
        {settle_of(5, retry{"e", at(20)}), settle_of(3, succeed{}), settle_of(8, succeed{}, 0)},
        {settle_of(8, succeed{})},
        {settle_of(3, succeed{}), settle_of(4, succeed{}), settle_of(5, release{}, 2)},
    };
}

inline void rolls_back_if_refused(trial& t) {
    for (const auto& settles : refused_settles()) {
        auto store = with_held_entries(t);
        const auto before = snapshot_of(store);
        const auto expected = repeatedly(store, [&](auto& tx) { return tx.settle(settles, at(20)); });
        const auto done = settle_last(store, settles, request(at(20)));
        t.equal(done.settlements, expected, "the settlements if one is refused");
        t.expect(!done.claimed, "settle_claim_and_commit claims nothing if a settle is refused");
        unchanged(store, before, "a settle_claim_and_commit of which a settle is refused");
        t.equal(numbers(take(store, at(20), {.limit = 2})), list_of{7, 6}, "claimed after that");
    }
}

/// What a transaction may do before, so that its last operation is refused.
inline constexpr std::array refusing{
    deed{"a settle",
         [](any_transaction& tx) {
             settle_in(tx, {id_of(5), 1}, succeed{}, at(20));
         }},
    deed{"a settle and an enqueue",
         [](any_transaction& tx) {
             settle_in(tx, {id_of(5), 1}, release{}, at(20));
             put_in(tx, draft_of(15, {.key = "k"}));
         }},
    deed{"a cancel", [](any_transaction& tx) { std::ignore = tx.cancel(id_of(5), "e", at(2'000)); }},
    deed{"a claim", [](any_transaction& tx) { std::ignore = tx.claim(request(at(2'000), {.only = id_of(5)})); }},
};

inline void rolls_back_earlier_writes(trial& t) {
    for (const auto& [name, change] : refusing) {
        const string what(name); // a lambda cannot capture a structured binding
        const auto& in = change;
        auto store = with_held_entries(t);
        const auto before = snapshot_of(store);
        from_begin(store, [&](auto& tx) {
            in(tx);
            const auto done =
                tx.settle_last(settles_of{settle_of(4, succeed{}), settle_of(5, succeed{})}, at(20), request(at(20)));
            t.equal(done.settlements.front().verdict, verdict::applied, "the settle that is not refused");
            t.expect(done.settlements.back().verdict != verdict::applied, "the settle after " + what + " is refused");
            t.expect(!done.claimed, "nothing is claimed");
            all_misuse_at_last(t, tx);
        });
        unchanged(store, before, what + " before a settle_claim_and_commit of which a settle is refused");
        t.equal(put(store, draft_of(16, {.key = "k"})), inserted(16), "the key of an earlier draft is free");
        t.expect(all_applied(settle_last(store, {settle_of(5, succeed{})}, request(at(20))).settlements),
                 "the same ticket can be settled in another transaction");
    }
}

inline void sees_what_is_due(trial& t) {
    const auto claimed_by = [&](const vouch::settle& s, claim_options how, time_point now = at(20)) {
        auto store = with_held_entries(t);
        auto done = settle_last(store, {s}, request(now, how), now);
        return numbers(done.claimed ? *done.claimed : take(store, now, how));
    };
    t.equal(claimed_by(settle_of(5, retry{"e", at(20)}), {}), list_of{7, 6, 5},
            "claimed with the entry that the same call retries");
    t.equal(claimed_by(settle_of(5, release{}), {.limit = 1}), list_of{5}, "claimed first: the entry released");
    t.equal(claimed_by(settle_of(5, advance{"step", {}}), {.only = id_of(5)}), list_of{5},
            "claimed by its id: the entry that advances");
    t.equal(claimed_by(settle_of(2, succeed{}), {}), t.can().lanes ? list_of{7, 9, 6} : list_of{7, 6},
            "claimed with the next entry of the lane");
    t.equal(claimed_by(settle_of(1, succeed{}), {.queue = "r"}), list_of{11, 10}, "claimed with the parent");
    t.equal(claimed_by(settle_of(5, retry{"e", at(21)}), {.only = id_of(5)}), list_of{}, "claimed before its retry");
}

inline void leaves_expired_claims(trial& t) {
    for (const auto& wanted : {request(at(100)), request(at(100), {.limit = 2}), request(at(200), {.limit = 2}),
                               request(at(100), {.only = id_of(1)})}) {
        auto store = t.open(t.fresh_location());
        put_expiring(store);
        put(store, draft_of(4, {.queue = "r"}));
        const auto held = take_one(store, at(0), {.queue = "r"});
        const auto before = store.list(query::all("q"));
        const auto done = settle_last(store, {{held, succeed{}}}, wanted);
        t.equal(done.settlements, vector<settlement>{{verdict::applied}}, "the settlement beside an expired lease");
        t.expect(!done.claimed, "settle_claim_and_commit claims nothing if it would take over an entry whose lease has "
                                "expired");
        t.equal(store.list(query::all("q")), before, "a claim that was left claims nothing");
        t.equal(get(store, 4).state, state::succeeded, "the settle is committed, although the claim was left");
    }
    {
        auto store = t.open(t.fresh_location());
        put_handed_back(store);
        put(store, draft_of(4, {.queue = "r"}));
        const auto held = take_one(store, at(0), {.queue = "r"});
        t.expect(
            !settle_last(store, {{held, succeed{}}}, request(at(200))).claimed,
            "settle_claim_and_commit claims nothing if it would claim an entry that has lapsed and was handed back");
        t.equal(get(store, 1).state, state::pending, "the entry with a lapse");
    }
    auto store = t.open(t.fresh_location());
    put_expiring(store);
    const auto done = settle_last(store, {settle_of(1, succeed{})}, request(at(100)));
    t.equal(done.settlements, vector<settlement>{{verdict::applied}}, "the settlement of an expired lease");
    t.equal(numbers(done.claimed ? *done.claimed : take(store, at(100))), list_of{2},
            "claimed when the entry with the expired lease is settled by the same call");
}

/// All threads settle the same entry and claim the next two.
inline void settles_once(trial& t) {
    using namespace threads_checks;
    constexpr std::size_t due = 1 + 2 * threads_count;
    std::array<settled_and_claimed, threads_count> done;
    vouch::ticket held;
    in_rounds(
        t,
        [&](std::size_t i, any_store& store) {
            commit_freely(store, [&](auto& tx) {
                tx.enqueue(numbered(due, draft_of(1 + i * due)), at(0));
                held = ticket_of(tx.claim(request(at(0), {.limit = 1})).front());
            });
        },
        [&](std::size_t n, std::size_t, any_store& store) {
            const settles_of settles{{held, succeed{std::to_string(n)}}};
            repeat_after_conflict(
                [&] { done[n] = store.begin().settle_last(settles, at(0), request(at(0), {.limit = 2})); });
        },
        [&](std::size_t, any_store& store) {
            std::size_t applied = 0;
            std::set<id> claimed{held.id};
            for (std::size_t n = 0; n < threads_count; ++n) {
                if (all_applied(done[n].settlements)) {
                    applied += 1;
                    trial::equal(get(store, held.id.low).result, optional(std::to_string(n)),
                                 "the result of the settle that was applied");
                }
                for (const auto& e : done[n].claimed.value_or(vector<entry>{})) {
                    trial::expect(claimed.insert(e.id).second, "no entry is claimed by two threads");
                }
                trial::expect(!done[n].claimed || all_applied(done[n].settlements),
                              "a thread whose settle is refused claims nothing");
            }
            trial::equal(applied, std::size_t{1}, "threads whose settle of the same ticket was applied");
            trial::equal(store.counts("q")[state::claimed] + 1, claimed.size(),
                         "entries claimed, of those that were returned");
            commit_freely(store, [&](auto& tx) {
                for (const auto& e : tx.list(query::live("q"))) {
                    if (e.state == state::claimed) {
                        settle_in(tx, ticket_of(e), succeed{}, at(0));
                    } else {
                        std::ignore = tx.cancel(e.id, "over", at(0));
                    }
                }
            });
        });
}

} // namespace committing_settle_checks

inline constexpr std::array committing_settles{
    clause{"COMMIT-15", layer::examples, level::may, needs::committing,
           "settle_claim_and_commit returns and stores what settle, claim and commit do, or it claims nothing and "
           "returns no claim.",
           committing_settle_checks::settles_and_claims},
    clause{"COMMIT-16", layer::examples, level::may, needs::committing,
           "If a verdict is not applied, settle_claim_and_commit returns what settle returns, and stores and claims "
           "nothing.",
           committing_settle_checks::rolls_back_if_refused},
    clause{"COMMIT-17", layer::examples, level::may, needs::committing,
           "A verdict of settle_claim_and_commit rests on the earlier writes of its transaction, which are rolled back "
           "if it is not applied.",
           committing_settle_checks::rolls_back_earlier_writes},
    clause{"COMMIT-18", layer::examples, level::may, needs::committing,
           "The claim of settle_claim_and_commit finds what its settles have made due.",
           committing_settle_checks::sees_what_is_due},
    clause{
        "COMMIT-19", layer::examples, level::may, needs::committing,
        "settle_claim_and_commit claims nothing, and commits its settles, if an entry that it would claim would have "
        "lapses above 0.",
        committing_settle_checks::leaves_expired_claims},
};

inline constexpr std::array committing_settles_together{
    clause{
        "COMMIT-20", layer::threads, level::may, needs::committing,
        "Of threads that settle the same ticket with settle_claim_and_commit at the same time, one is told that it is "
        "applied, and no two claim the same entry.",
        committing_settle_checks::settles_once},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch
