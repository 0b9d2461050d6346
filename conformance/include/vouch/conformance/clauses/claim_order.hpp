// SPDX-License-Identifier: MIT
// Claim: which eligible entries are taken, in which order they are returned, and how takeovers count.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include <vouch/conformance/any_store.hpp>
#include <vouch/conformance/clause.hpp>
#include <vouch/conformance/clauses/claim.hpp>
#include <vouch/conformance/detail/steps.hpp>
#include <vouch/conformance/detail/trial.hpp>
#include <vouch/contract/error.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace claim_checks {

inline void taken_by_gate(trial& t) {
    auto store = t.open();
    put_claimed(store, 1, at(30)); // due first, but its gate opens last
    put(store, draft_of(2, {.due_at = at(20)}));
    put(store, draft_of(3, {.due_at = at(10)}));
    t.equal(numbers(take(store, at(50), {.limit = 1})), list_of{3}, "the entry with the earliest gate");
    t.equal(numbers(take(store, at(50), {.limit = 1})), list_of{2}, "the entry with the next gate");
    t.equal(numbers(take(store, at(50), {.limit = 1})), list_of{1}, "the entry whose lease ended last");
}

inline void returned_by_due(trial& t) {
    auto store = t.open();
    put_claimed(store, 1, at(30));
    put(store, draft_of(2, {.due_at = at(20)}));
    put(store, draft_of(3, {.due_at = at(10)}));
    put(store, draft_of(4, {.due_at = at(40)}));
    t.equal(numbers(take(store, at(50), {.limit = 3})), list_of{1, 3, 2}, "the first three gates, by due time");
}

inline void taken_ties(trial& t) {
    auto store = t.open();
    for (const std::uint64_t n : {3U, 5U, 1U, 4U, 2U}) {
        put(store, draft_of(n, {.due_at = at(0)}));
    }
    for (const std::uint64_t n : {3U, 5U, 1U, 4U, 2U}) {
        t.equal(numbers(take(store, at(9), {.limit = 1})), list_of{n}, "the next of the entries due at the same time");
    }
    t.equal(numbers(take(store, at(109))), list_of{3, 5, 1, 4, 2}, "the entries whose leases ended at the same time");
}

inline void returned_ties(trial& t) {
    auto store = t.open();
    put_claimed(store, 2, at(30));
    put(store, draft_of(1, {.due_at = at(0)}));
    t.equal(numbers(take(store, at(30))), list_of{2, 1}, "due at the same time, in the order of their sequence");
}

inline void clocks_run_backwards(trial& t) {
    auto store = t.open();
    put(store, draft_of(1, {.due_at = at(0)}), at(90));
    put(store, draft_of(2, {.due_at = at(0)}), at(10));
    put(store, draft_of(3, {.due_at = at(0)}), at(50));
    t.equal(numbers(take(store, at(5), {.limit = 2})), list_of{1, 2}, "the first two by sequence");
    t.equal(get(store, 1).updated_at, at(5), "updated_at, though the entry was created later");
    t.equal(numbers(take(store, at(4))), list_of{3}, "claimed at an earlier time than the previous claim");
}

inline void only_one_id(trial& t) {
    auto store = t.open();
    for (std::uint64_t n = 1; n <= 3; ++n) {
        put(store, draft_of(n));
    }
    auto expected = snapshot_of(store).found;
    expected[1] = claimed_from(expected[1], at(7));
    t.equal(take(store, at(7), {.only = id_of(2)}), std::vector{expected[1]}, "claimed by its id");
    t.equal(snapshot_of(store).found, expected, "the stored entry after the claim");
}

inline void only_if_eligible(trial& t) {
    auto store = t.open();
    put(store, draft_of(1, {.due_at = at(10)}));
    put(store, draft_of(2, {.queue = "r"}));
    put_claimed(store, 3, at(10));
    put_retrying(store, 4, at(10));
    const auto before = snapshot_of(store);
    for (const std::uint64_t n : {1U, 2U, 3U, 4U, 5U}) { // not due, in another queue, claimed, not due, absent
        t.equal(numbers(take(store, at(9), {.only = id_of(n)})), list_of{}, "claimed by id though not eligible");
    }
    unchanged(store, before, "a claim of an entry that is not eligible changes nothing");
    for (const std::uint64_t n : {1U, 3U, 4U}) {
        t.equal(numbers(take(store, at(10), {.only = id_of(n)})), list_of{n}, "claimed by id as soon as eligible");
    }
}

inline void expiry_is_not_its_business(trial& t) {
    auto store = t.open();
    put(store, draft_of(1, {.expires_at = at(5), .attempts_max = 1}));
    t.equal(numbers(take(store, at(10))), list_of{1}, "claimed after expires_at");
    t.equal(numbers(take(store, at(110))), list_of{1}, "taken over with attempts_max reached");
    t.equal(numbers(take(store, at(210))), list_of{1}, "claimed more often than attempts_max");
    t.equal(get(store, 1).attempts, 2U, "attempts");
}

inline void rolled_back(trial& t) {
    auto store = t.open();
    put(store, draft_of(1));
    const auto before = snapshot_of(store);
    {
        auto tx = store.begin();
        t.equal(numbers(tx.claim(request(at(0)))), list_of{1}, "claimed in a transaction");
    }
    unchanged(store, before, "a claim in a transaction that is rolled back has no effect");
    t.equal(take_one(store, at(0)), ticket{id_of(1), 1}, "the ticket of the next claim");
}

inline void invalid_requests(trial& t) {
    auto store = t.open();
    put(store, draft_of(1));
    const auto before = snapshot_of(store);
    const auto& limits = t.can().limits;
    for (const auto& wrong : {claim_options{.limit = limits.batch_max + 1}, claim_options{.queue = ""},
                              claim_options{.queue = "q\n"}, claim_options{.lease = limits.lease_min - duration{1}},
                              claim_options{.lease = limits.lease_max + duration{1}},
                              claim_options{.worker = std::string(limits.name_max + 1, 'w')}}) {
        t.throws(error_kind::invalid_argument, "a claim beyond a limit",
                 [&] { std::ignore = take(store, at(0), wrong); });
    }
    unchanged(store, before, "a claim that is refused changes nothing");
}

inline void no_smaller_limit(trial& t) {
    constexpr std::uint64_t many = 1'100;
    auto store = t.open();
    std::vector<draft> drafts;
    for (std::uint64_t n = 1; n <= many; ++n) {
        drafts.push_back(draft_of(n));
    }
    vouch::enqueue(store, drafts, at(0));
    t.equal(take(store, at(0), {.limit = many - 1}).size(), many - 1,
            "claimed with a limit one below the number of due entries");
    t.equal(take(store, at(0), {.limit = t.can().limits.batch_max}).size(), 1, "claimed with the largest limit");
    t.equal(take(store, at(100), {.limit = t.can().limits.batch_max}).size(), many,
            "taken over with the largest limit");
}

inline void only_later_lapses_count(trial& t) {
    auto store = t.open();
    put(store, draft_of(1));
    list_of attempts;
    for (std::int64_t claims = 0; claims < 5; ++claims) {
        std::ignore = take_one(store, at(100 * claims));
        attempts.push_back(get(store, 1).attempts);
    }
    t.equal(attempts, list_of{1, 1, 2, 3, 4}, "attempts after a claim and four takeovers");
}

inline void lapses_are_counted(trial& t) {
    auto store = t.open();
    put(store, draft_of(1));
    const auto ticket = take_lapsed(store, 1, 3);
    t.equal(get(store, 1).lapses, 3U, "lapses after three claims that ended with their leases");
    nudge(store, id_of(1), at(310));
    extend(store, ticket, at(320), duration{100});
    t.equal(get(store, 1).lapses, 3U, "lapses after a nudge and an extend");
    settle(store, ticket, release{}, at(330));
    std::ignore = take_one(store, at(330));
    t.equal(get(store, 1).lapses, 3U, "lapses after a claim of an entry that was released");
}

inline void each_by_its_own_past(trial& t) {
    auto store = t.open();
    for (std::uint64_t n = 1; n <= 5; ++n) {
        put(store, draft_of(n));
    }
    std::ignore = take_lapsed(store, 2, 0);
    std::ignore = take_lapsed(store, 3, 1);
    std::ignore = take_lapsed(store, 4, 2);
    settle(store, take_one(store, at(0), {.only = id_of(5)}), retry{"e", at(0)}, at(0));
    auto expected = snapshot_of(store).found;
    for (auto& e : expected) {
        e = claimed_from(e, at(300));
    }
    t.equal(take(store, at(300)), expected, "claimed together: pending, after no, one and two lapses, and retrying");
    t.equal(snapshot_of(store).found, expected, "the stored entry after that claim");
}

inline void rolled_back_takeover(trial& t) {
    for (const std::uint32_t lapses : {0U, 1U}) {
        auto store = t.open(t.fresh_location());
        put(store, draft_of(1));
        std::ignore = take_lapsed(store, 1, lapses);
        const auto before = get(store, 1);
        from_begin(store, [&](auto& tx) {
            t.equal(numbers(tx.claim(request(at(200)))), list_of{1}, "taken over in a transaction that is rolled back");
        });
        t.equal(get(store, 1), before, "the entry after the rollback");
        t.equal(take(store, at(200)), std::vector{claimed_from(before, at(200))}, "taken over for the first time");
    }
}

} // namespace claim_checks

inline constexpr std::array claiming_in_order{
    clause{"CLAIM-12", layer::examples, level::must, needs::nothing,
           "A claim takes the entries with the earliest gates first; the gate is due_at, or lease_until if the entry "
           "is claimed.",
           claim_checks::taken_by_gate},
    clause{"CLAIM-13", layer::examples, level::must, needs::nothing,
           "A claim returns entries in the order of due_at, not of their gates.", claim_checks::returned_by_due},
    clause{"CLAIM-14", layer::examples, level::must, needs::nothing,
           "Entries with equal gates are taken in the order of their sequences.", claim_checks::taken_ties},
    clause{"CLAIM-15", layer::examples, level::must, needs::nothing,
           "Entries with equal due_at are returned in the order of their sequences.", claim_checks::returned_ties},
    clause{"CLAIM-16", layer::examples, level::must, needs::nothing,
           "Clocks may run backwards: sequences do not depend on times, and a claim uses the time that it is given.",
           claim_checks::clocks_run_backwards},
    clause{"CLAIM-17", layer::examples, level::must, needs::nothing,
           "A claim with `only` takes that entry and no other, even if other entries come first.",
           claim_checks::only_one_id},
    clause{"CLAIM-18", layer::examples, level::must, needs::nothing,
           "A claim with `only` takes nothing unless the entry is in the queue and its gate is open.",
           claim_checks::only_if_eligible},
    clause{"CLAIM-19", layer::examples, level::must, needs::nothing,
           "A claim ignores expires_at and attempts_max, which are for the runner.",
           claim_checks::expiry_is_not_its_business},
    clause{"CLAIM-20", layer::examples, level::must, needs::nothing,
           "A claim in a transaction that is rolled back has no effect.", claim_checks::rolled_back},
    clause{"CLAIM-21", layer::examples, level::must, needs::nothing,
           "A claim whose limit, queue, lease or worker is out of bounds throws invalid_argument and takes nothing.",
           claim_checks::invalid_requests},
    clause{"CLAIM-22", layer::examples, level::must, needs::nothing,
           "A claim takes as many entries as its limit allows; the store has no lower limit of its own.",
           claim_checks::no_smaller_limit},
    clause{"CLAIM-23", layer::examples, level::must, needs::nothing,
           "A takeover after the first lapse in a row is not an attempt; a takeover after any further lapse is one.",
           claim_checks::only_later_lapses_count},
    clause{"CLAIM-24", layer::examples, level::must, needs::nothing,
           "lapses counts the consecutive claims that ended with their lease; a nudge, an extend and the claim of an "
           "unclaimed entry do not change it.",
           claim_checks::lapses_are_counted},
    clause{"CLAIM-25", layer::examples, level::must, needs::nothing,
           "One claim of pending, retrying and lapsed entries counts attempts and lapses for each entry separately.",
           claim_checks::each_by_its_own_past},
    clause{"CLAIM-26", layer::examples, level::must, needs::nothing,
           "A takeover in a transaction that is rolled back leaves lapses and attempts unchanged.",
           claim_checks::rolled_back_takeover},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch
