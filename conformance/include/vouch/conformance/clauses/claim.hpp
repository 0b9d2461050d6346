// SPDX-License-Identifier: MIT
// Claim: what is eligible, what of it is taken, in which order it comes back, and what a claim does to an entry.
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
#include <vouch/conformance/detail/steps.hpp>
#include <vouch/conformance/detail/trial.hpp>
#include <vouch/contract/error.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace claim_checks {

/// A retrying entry: claimed at 0, failed once, due again at `due`.
inline void put_retrying(any_store& store, std::uint64_t n, time_point due) {
    put(store, draft_of(n));
    std::ignore = settle(store, take_one(store, at(0), {.only = id_of(n)}), retry{"e", due}, at(0));
}

/// A claimed entry whose lease ends at `end`.
inline void put_claimed(any_store& store, std::uint64_t n, time_point end) {
    put(store, draft_of(n));
    std::ignore = take_one(store, at(0), {.lease = end - at(0), .only = id_of(n)});
}

/// What a claim at `now` by "w" with a lease of 100 us makes of it.
[[nodiscard]] inline entry claimed_from(entry e, time_point now) {
    const bool is_takeover = e.state == state::claimed;
    e.state = state::claimed;
    e.attempts += is_takeover && e.lapses == 0 ? 0U : 1U;
    e.lapses += is_takeover ? 1U : 0U;
    e.epoch += 1;
    e.lease_until = now + duration{100};
    e.woken = false;
    e.worker = "w";
    e.last_attempt_at = now;
    e.updated_at = now;
    return e;
}

inline void limit_zero(trial& t) {
    auto store = t.open();
    put(store, draft_of(1));
    const auto before = look(store);
    t.equal(numbers(take(store, at(0), {.limit = 0})), list_of{}, "claimed with limit 0");
    t.equal(numbers(take(store, at(0), {.limit = 0, .only = id_of(1)})), list_of{}, "claimed with limit 0 by id");
    unchanged(store, before, "a claim with limit 0 changes nothing");
}

inline void limit_is_exact(trial& t) {
    auto store = t.open();
    for (std::uint64_t n = 1; n <= 4; ++n) {
        put(store, draft_of(n));
    }
    const auto last = get(store, 4);
    t.equal(numbers(take(store, at(0), {.limit = 1})), list_of{1}, "claimed with limit 1");
    t.equal(numbers(take(store, at(0), {.limit = 2})), list_of{2, 3}, "claimed with limit 2");
    t.equal(get(store, 4), last, "the entry beyond the limit");
    t.equal(store.counts("q")[state::claimed], 3U, "claimed entries");
    t.equal(numbers(take(store, at(0), {.limit = t.can().limits.batch_max})), list_of{4},
            "claimed with the largest limit");
}

inline void due_exactly_now(trial& t) {
    auto store = t.open();
    put(store, draft_of(1, {.due_at = at(10)}));
    const auto before = look(store);
    t.equal(numbers(take(store, at(9))), list_of{}, "claimed one microsecond before it is due");
    unchanged(store, before, "a claim that finds nothing due changes nothing");
    t.equal(numbers(take(store, at(10))), list_of{1}, "claimed exactly when it is due");
}

inline void retry_due_exactly_now(trial& t) {
    auto store = t.open();
    put_retrying(store, 1, at(10));
    const auto before = get(store, 1);
    t.equal(numbers(take(store, at(9))), list_of{}, "claimed one microsecond before its retry is due");
    t.equal(numbers(take(store, at(10))), list_of{1}, "claimed exactly when its retry is due");
    t.equal(get(store, 1), claimed_from(before, at(10)), "the retried entry after the claim");
}

inline void lease_ends_exactly_now(trial& t) {
    auto store = t.open();
    put_claimed(store, 1, at(50));
    const auto before = look(store);
    t.equal(numbers(take(store, at(49), {.worker = "v"})), list_of{},
            "taken over one microsecond before its lease ends");
    t.equal(numbers(take(store, at(49), {.worker = "w"})), list_of{}, "taken once more by a worker of the same name");
    unchanged(store, before, "a claim that meets a running lease changes nothing");
    t.equal(numbers(take(store, at(50), {.worker = "v"})), list_of{1}, "taken over exactly when its lease ends");
}

inline void fields(trial& t) {
    auto store = t.open();
    put(store, draft_of(1, {.payload = "p", .key = "k", .due_at = at(5), .headers = {{"h", "v"}}, .progress = "step"}));
    auto expected = get(store, 1);
    const auto claimed = take(store, at(20), {.lease = duration{30}, .worker = "ann"});
    expected.state = state::claimed;
    expected.attempts = 1;
    expected.epoch = 1;
    expected.lease_until = at(50);
    expected.worker = "ann";
    expected.last_attempt_at = expected.updated_at = at(20);
    t.equal(claimed, std::vector{expected}, "what the claim returns");
    t.equal(get(store, 1), expected, "what is stored after the claim");
}

inline void take_over_fields(trial& t) {
    auto store = t.open();
    put(store, draft_of(1, {.due_at = at(5), .progress = "step"}), at(1));
    std::ignore = take_one(store, at(10), {.lease = duration{10}, .worker = "ann"});
    nudge(store, id_of(1), at(15));
    const auto before = get(store, 1);
    const auto claimed = take(store, at(70));
    t.equal(claimed, std::vector{claimed_from(before, at(70))}, "what the claim that takes over returns");
    t.equal(get(store, 1), claimed_from(before, at(70)), "what is stored after the take-over");
}

inline void bounds_are_allowed(trial& t) {
    auto store = t.open();
    put(store, draft_of(1));
    const auto& limits = t.can().limits;
    const std::string longest_name(limits.name_max, 'w');
    std::ignore = take_one(store, at(0), {.lease = limits.lease_min, .worker = longest_name});
    t.equal(get(store, 1).lease_until, std::optional{at(0) + limits.lease_min}, "the end of the shortest lease");
    t.equal(get(store, 1).worker, longest_name, "the worker with the longest name");
    const auto again = at(0) + limits.lease_min;
    std::ignore = take_one(store, again, {.lease = limits.lease_max, .worker = ""});
    t.equal(get(store, 1).lease_until, std::optional{again + limits.lease_max}, "the end of the longest lease");
    t.equal(get(store, 1).worker, std::string{}, "the worker after a claim without a name");
}

inline void every_kind_at_once(trial& t) {
    auto store = t.open();
    put_claimed(store, 1, at(30));
    put_claimed(store, 2, at(41));
    put_retrying(store, 3, at(20));
    put_retrying(store, 4, at(41));
    put(store, draft_of(5, {.due_at = at(10)}));
    put(store, draft_of(6, {.due_at = at(41)}));
    t.equal(numbers(take(store, at(40))), list_of{1, 5, 3}, "fresh, retried and taken over by one claim");
}

inline void terminal_never(trial& t) {
    auto store = t.open();
    for (const outcome& end : {outcome{succeed{}}, outcome{bury{"e", {}}}}) {
        put(store, draft_of(1 + end.index()));
        std::ignore = settle(store, take_one(store, at(0)), end, at(0));
    }
    put_dead(store, draft_of(2));
    put(store, draft_of(4, {.result = "r"}));
    const auto before = look(store);
    const auto later = at(0) + std::chrono::hours{24 * 365};
    t.equal(numbers(take(store, later)), list_of{}, "succeeded and dead entries claimed");
    for (std::uint64_t n = 1; n <= 4; ++n) {
        t.equal(numbers(take(store, later, {.only = id_of(n)})), list_of{}, "a succeeded or dead entry claimed by id");
    }
    unchanged(store, before, "claims leave succeeded and dead entries alone");
}

inline void queue_of_its_own(trial& t) {
    auto store = t.open();
    put(store, draft_of(1, {.queue = "q"}));
    put(store, draft_of(2, {.queue = "r"}));
    const auto other = get(store, 2);
    t.equal(numbers(take(store, at(0), {.queue = "no such queue"})), list_of{}, "claimed from an empty queue");
    t.equal(numbers(take(store, at(0), {.queue = "q"})), list_of{1}, "claimed from the queue");
    t.equal(get(store, 2), other, "the entry of another queue");
    t.equal(numbers(take(store, at(0), {.queue = "r"})), list_of{2}, "claimed from the other queue");
}

inline void taken_by_gate(trial& t) {
    auto store = t.open();
    put_claimed(store, 1, at(30)); // due first, but its gate opens last
    put(store, draft_of(2, {.due_at = at(20)}));
    put(store, draft_of(3, {.due_at = at(10)}));
    t.equal(numbers(take(store, at(50), {.limit = 1})), list_of{3}, "the one whose gate opened first");
    t.equal(numbers(take(store, at(50), {.limit = 1})), list_of{2}, "the one whose gate opened next");
    t.equal(numbers(take(store, at(50), {.limit = 1})), list_of{1}, "the one whose lease ended last");
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
        t.equal(numbers(take(store, at(9), {.limit = 1})), list_of{n}, "the next of those due at the same time");
    }
    t.equal(numbers(take(store, at(109))), list_of{3, 5, 1, 4, 2}, "those whose leases ended at the same time");
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
    t.equal(numbers(take(store, at(4))), list_of{3}, "claimed at an earlier time than the one before");
}

inline void only_one_id(trial& t) {
    auto store = t.open();
    for (std::uint64_t n = 1; n <= 3; ++n) {
        put(store, draft_of(n));
    }
    auto expected = look(store).found;
    expected[1] = claimed_from(expected[1], at(7));
    t.equal(take(store, at(7), {.only = id_of(2)}), std::vector{expected[1]}, "claimed by its id");
    t.equal(look(store).found, expected, "what is stored after the claim");
}

inline void only_if_eligible(trial& t) {
    auto store = t.open();
    put(store, draft_of(1, {.due_at = at(10)}));
    put(store, draft_of(2, {.queue = "r"}));
    put_claimed(store, 3, at(10));
    put_retrying(store, 4, at(10));
    const auto before = look(store);
    for (const std::uint64_t n : {1U, 2U, 3U, 4U, 5U}) { // not due, of another queue, held, not due, absent
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
    const auto before = look(store);
    {
        auto tx = store.begin();
        t.equal(numbers(tx.claim(request(at(0)))), list_of{1}, "claimed in a transaction");
    }
    unchanged(store, before, "a claim in a transaction that rolls back never happened");
    t.equal(take_one(store, at(0)), ticket{id_of(1), 1}, "the ticket of the next claim");
}

inline void invalid_requests(trial& t) {
    auto store = t.open();
    put(store, draft_of(1));
    const auto before = look(store);
    const auto& limits = t.can().limits;
    for (const auto& wrong :
         {taking{.limit = limits.batch_max + 1}, taking{.queue = ""}, taking{.queue = "q\n"},
          taking{.lease = limits.lease_min - duration{1}}, taking{.lease = limits.lease_max + duration{1}},
          taking{.worker = std::string(limits.name_max + 1, 'w')}}) {
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
    t.equal(take(store, at(0), {.limit = many - 1}).size(), many - 1, "claimed with a limit of one less than are due");
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
    t.equal(attempts, list_of{1, 1, 2, 3, 4}, "attempts after a claim and four that took over");
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
    auto expected = look(store).found;
    for (auto& e : expected) {
        e = claimed_from(e, at(300));
    }
    t.equal(take(store, at(300)), expected, "claimed at once: fresh, after no, one and two lapses, and retried");
    t.equal(look(store).found, expected, "what is stored after that claim");
}

inline void rolled_back_takeover(trial& t) {
    for (const std::uint32_t lapses : {0U, 1U}) {
        auto store = t.open(t.fresh_place());
        put(store, draft_of(1));
        std::ignore = take_lapsed(store, 1, lapses);
        const auto before = get(store, 1);
        from_begin(store, [&](auto& tx) {
            t.equal(numbers(tx.claim(request(at(200)))), list_of{1}, "taken over in a transaction that rolls back");
        });
        t.equal(get(store, 1), before, "the entry after the rollback");
        t.equal(take(store, at(200)), std::vector{claimed_from(before, at(200))}, "taken over for the first time");
    }
}

} // namespace claim_checks

inline constexpr std::array claiming{
    clause{"CLAIM-01", layer::examples, level::must, needs::nothing, "A claim with limit 0 takes nothing.",
           claim_checks::limit_zero},
    clause{"CLAIM-02", layer::examples, level::must, needs::nothing,
           "A claim takes `limit` entries if there are as many, else all there are; the others stay as they are.",
           claim_checks::limit_is_exact},
    clause{"CLAIM-03", layer::examples, level::must, needs::nothing,
           "A pending entry can be claimed from exactly its due_at on.", claim_checks::due_exactly_now},
    clause{"CLAIM-04", layer::examples, level::must, needs::nothing,
           "A retrying entry can be claimed from exactly its due_at on.", claim_checks::retry_due_exactly_now},
    clause{"CLAIM-05", layer::examples, level::must, needs::nothing,
           "A claimed entry can be taken over from exactly the end of its lease on, and by nobody before, not even by "
           "a worker of the same name.",
           claim_checks::lease_ends_exactly_now},
    clause{
        "CLAIM-06", layer::examples, level::must, needs::nothing,
        "A claim sets state, attempts, epoch, lease_until, worker, last_attempt_at and updated_at, and nothing else; "
        "it returns the entry as it is then, payload included.",
        claim_checks::fields},
    clause{
        "CLAIM-07", layer::examples, level::must, needs::nothing,
        "Taking over after a first lapse counts the lapse and no attempt, raises the epoch and clears the wake mark.",
        claim_checks::take_over_fields},
    clause{"CLAIM-08", layer::examples, level::must, needs::nothing,
           "lease_until is now + lease, for the shortest as for the longest lease; worker is who claimed last, be the "
           "name long or empty.",
           claim_checks::bounds_are_allowed},
    clause{"CLAIM-09", layer::examples, level::must, needs::nothing,
           "Fresh, retried and lapsed entries are taken by one and the same claim.", claim_checks::every_kind_at_once},
    clause{"CLAIM-10", layer::examples, level::must, needs::nothing,
           "Succeeded and dead entries are never claimed again.", claim_checks::terminal_never},
    clause{"CLAIM-11", layer::examples, level::must, needs::nothing, "A claim takes entries of its queue only.",
           claim_checks::queue_of_its_own},
    clause{"CLAIM-12", layer::examples, level::must, needs::nothing,
           "A claim takes the entries whose gates opened first: due_at, or the end of the lease of a claimed one.",
           claim_checks::taken_by_gate},
    clause{"CLAIM-13", layer::examples, level::must, needs::nothing,
           "A claim returns what it took in the order of due_at, not of the gates.", claim_checks::returned_by_due},
    clause{"CLAIM-14", layer::examples, level::must, needs::nothing,
           "Of entries whose gates open at the same time, those of lower sequence are taken first.",
           claim_checks::taken_ties},
    clause{"CLAIM-15", layer::examples, level::must, needs::nothing,
           "Of entries due at the same time, those of lower sequence are returned first.", claim_checks::returned_ties},
    clause{"CLAIM-16", layer::examples, level::must, needs::nothing,
           "Clocks may run backwards: sequences do not follow them, and a claim goes by the time it is given.",
           claim_checks::clocks_run_backwards},
    clause{"CLAIM-17", layer::examples, level::must, needs::nothing,
           "A claim of one id takes that entry and no other, though others come first.", claim_checks::only_one_id},
    clause{"CLAIM-18", layer::examples, level::must, needs::nothing,
           "A claim of one id takes nothing unless the entry is in the queue and its gate is open.",
           claim_checks::only_if_eligible},
    clause{"CLAIM-19", layer::examples, level::must, needs::nothing,
           "A claim does not look at expires_at or attempts_max: they are the runner's business.",
           claim_checks::expiry_is_not_its_business},
    clause{"CLAIM-20", layer::examples, level::must, needs::nothing,
           "A claim in a transaction that rolls back never happened.", claim_checks::rolled_back},
    clause{"CLAIM-21", layer::examples, level::must, needs::nothing,
           "A claim whose limit, queue, lease or worker is out of bounds throws invalid_argument and takes nothing.",
           claim_checks::invalid_requests},
    clause{"CLAIM-22", layer::examples, level::must, needs::nothing,
           "A claim takes as many as its limit says; the store has no smaller limit of its own.",
           claim_checks::no_smaller_limit},
    clause{"CLAIM-23", layer::examples, level::must, needs::nothing,
           "A takeover after the first lapse in a row is no attempt; one after the second or a later lapse is.",
           claim_checks::only_later_lapses_count},
    clause{"CLAIM-24", layer::examples, level::must, needs::nothing,
           "lapses counts the claims in a row that ended with their lease; a nudge, an extend and a claim of a waiting "
           "entry leave it.",
           claim_checks::lapses_are_counted},
    clause{"CLAIM-25", layer::examples, level::must, needs::nothing,
           "One claim of fresh, retried and lapsed entries counts attempts and lapses for each by its own past.",
           claim_checks::each_by_its_own_past},
    clause{"CLAIM-26", layer::examples, level::must, needs::nothing,
           "A takeover in a transaction that rolls back leaves lapses and attempts as they were.",
           claim_checks::rolled_back_takeover},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch
