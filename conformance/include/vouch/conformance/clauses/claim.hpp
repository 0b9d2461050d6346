// SPDX-License-Identifier: MIT
// Claim: which entries are eligible, and how a claim changes an entry.
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

/// Enqueues a retrying entry: claimed at 0, failed once, due again at `due`.
inline void put_retrying(any_store& store, std::uint64_t n, time_point due) {
    put(store, draft_of(n));
    std::ignore = settle(store, take_one(store, at(0), {.only = id_of(n)}), retry{"e", due}, at(0));
}

/// Enqueues a claimed entry whose lease ends at `end`.
inline void put_claimed(any_store& store, std::uint64_t n, time_point end) {
    put(store, draft_of(n));
    std::ignore = take_one(store, at(0), {.lease = end - at(0), .only = id_of(n)});
}

/// The entry after a claim at `now` by "w" with a lease of 100 us.
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
    const auto before = snapshot_of(store);
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
    const auto before = snapshot_of(store);
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
    const auto before = snapshot_of(store);
    t.equal(numbers(take(store, at(49), {.worker = "v"})), list_of{},
            "taken over one microsecond before its lease ends");
    t.equal(numbers(take(store, at(49), {.worker = "w"})), list_of{}, "taken once more by a worker of the same name");
    unchanged(store, before, "a claim does not change an entry whose lease runs");
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
    t.equal(get(store, 1), expected, "the stored entry after the claim");
}

inline void take_over_fields(trial& t) {
    auto store = t.open();
    put(store, draft_of(1, {.due_at = at(5), .progress = "step"}), at(1));
    std::ignore = take_one(store, at(10), {.lease = duration{10}, .worker = "ann"});
    nudge(store, id_of(1), at(15));
    const auto before = get(store, 1);
    const auto claimed = take(store, at(70));
    t.equal(claimed, std::vector{claimed_from(before, at(70))}, "the entries that the takeover returns");
    t.equal(get(store, 1), claimed_from(before, at(70)), "the stored entry after the takeover");
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
    t.equal(numbers(take(store, at(40))), list_of{1, 5, 3}, "pending, retrying and lapsed entries in one claim");
}

inline void terminal_never(trial& t) {
    auto store = t.open();
    for (const outcome& end : {outcome{succeed{}}, outcome{bury{"e", {}}}}) {
        put(store, draft_of(1 + end.index()));
        std::ignore = settle(store, take_one(store, at(0)), end, at(0));
    }
    put_dead(store, draft_of(2));
    put(store, draft_of(4, {.result = "r"}));
    const auto before = snapshot_of(store);
    const auto later = at(0) + std::chrono::hours{24 * 365};
    t.equal(numbers(take(store, later)), list_of{}, "succeeded and dead entries claimed");
    for (std::uint64_t n = 1; n <= 4; ++n) {
        t.equal(numbers(take(store, later, {.only = id_of(n)})), list_of{}, "a succeeded or dead entry claimed by id");
    }
    unchanged(store, before, "claims do not change succeeded and dead entries");
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

} // namespace claim_checks

inline constexpr std::array claiming{
    clause{"CLAIM-01", layer::examples, level::must, needs::nothing, "A claim with limit 0 takes nothing.",
           claim_checks::limit_zero},
    clause{"CLAIM-02", layer::examples, level::must, needs::nothing,
           "A claim takes `limit` entries, or all eligible ones if there are fewer; other entries do not change.",
           claim_checks::limit_is_exact},
    clause{"CLAIM-03", layer::examples, level::must, needs::nothing,
           "A pending entry can be claimed exactly from its due_at on.", claim_checks::due_exactly_now},
    clause{"CLAIM-04", layer::examples, level::must, needs::nothing,
           "A retrying entry can be claimed exactly from its due_at on.", claim_checks::retry_due_exactly_now},
    clause{"CLAIM-05", layer::examples, level::must, needs::nothing,
           "A claimed entry can be taken over exactly from the end of its lease on, and not before, even by a worker "
           "with the same name.",
           claim_checks::lease_ends_exactly_now},
    clause{"CLAIM-06", layer::examples, level::must, needs::nothing,
           "A claim sets state, attempts, epoch, lease_until, worker, last_attempt_at and updated_at and nothing else, "
           "and returns the changed entry with its payload.",
           claim_checks::fields},
    clause{"CLAIM-07", layer::examples, level::must, needs::nothing,
           "A takeover after the first lapse counts a lapse and no attempt, increments the epoch and clears the wake "
           "mark.",
           claim_checks::take_over_fields},
    clause{"CLAIM-08", layer::examples, level::must, needs::nothing,
           "A claim sets lease_until to now + lease, for the shortest and the longest lease, and worker to the "
           "claiming worker, for the longest and the empty name.",
           claim_checks::bounds_are_allowed},
    clause{"CLAIM-09", layer::examples, level::must, needs::nothing,
           "One claim takes pending, retrying and lapsed entries alike.", claim_checks::every_kind_at_once},
    clause{"CLAIM-10", layer::examples, level::must, needs::nothing, "Succeeded and dead entries are never claimed.",
           claim_checks::terminal_never},
    clause{"CLAIM-11", layer::examples, level::must, needs::nothing, "A claim takes only entries of its queue.",
           claim_checks::queue_of_its_own},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch
