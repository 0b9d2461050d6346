// SPDX-License-Identifier: MIT
// Extend: prolongs the lease of a claim and never shortens it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
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

namespace extend_checks {

/// Entry 1, claimed at 0 until 100, with values in the fields that an extend must not change.
[[nodiscard]] inline entry claimed(any_store& store) {
    put(store, draft_of(1, {.payload = "p", .key = "k", .due_at = at(-5), .progress = "begun"}));
    std::ignore = take_one(store, at(0));
    return get(store, 1);
}

inline void fields(trial& t) {
    auto store = t.open();
    auto expected = claimed(store);
    t.equal(extend(store, ticket_of(expected), at(30), duration{200}), verdict::applied, "the extend");
    expected.lease_until = at(230);
    expected.updated_at = at(30);
    t.equal(get(store, 1), expected, "the entry after the extend");
    t.equal(store.next_due("q"), std::optional{at(230)}, "next_due");
}

inline void never_shorter(trial& t) {
    for (const std::int64_t lease : {1, 69, 70, 71}) { // at 30 the lease has 70 left
        auto store = t.open(t.fresh_location());
        auto expected = claimed(store);
        t.equal(extend(store, ticket_of(expected), at(30), duration{lease}), verdict::applied, "the extend");
        expected.lease_until = at(lease == 71 ? 101 : 100);
        expected.updated_at = at(30);
        t.equal(get(store, 1), expected, "the entry after an extend by " + show(duration{lease}));
    }
}

inline void keeps_others_away(trial& t) {
    auto store = t.open();
    const auto held = claimed(store);
    std::ignore = extend(store, ticket_of(held), at(99), duration{50});
    t.equal(numbers(take(store, at(100))), list_of{}, "taken over when the lease would have ended");
    t.equal(numbers(take(store, at(148))), list_of{}, "taken over one microsecond before the new end");
    t.equal(numbers(take(store, at(149))), list_of{1}, "taken over at the new end");
}

inline void revives_a_lapsed_claim(trial& t) {
    for (const auto now : {at(100), at(1000)}) { // the end of the lease, and long after
        auto store = t.open(t.fresh_location());
        auto expected = claimed(store);
        t.equal(extend(store, ticket_of(expected), now, duration{1}), verdict::applied, "the extend of a lapsed claim");
        expected.lease_until = now + duration{1};
        expected.updated_at = now;
        t.equal(get(store, 1), expected, "the entry after the extend");
        t.equal(numbers(take(store, now)), list_of{}, "taken over while the new lease runs");
    }
}

inline void not_once_taken_over(trial& t) {
    auto store = t.open();
    const auto first = ticket_of(claimed(store));
    const auto second = take_one(store, at(100), {.worker = "w"});
    const auto before = snapshot_of(store);
    t.equal(extend(store, first, at(110), duration{500}), verdict::stale, "the extend of the first claim");
    unchanged(store, before, "a claim that was taken over extends nothing");
    t.equal(extend(store, second, at(110), duration{500}), verdict::applied, "the extend of the second claim");
}

inline void ticket_stays_good(trial& t) {
    auto store = t.open();
    const auto ticket = ticket_of(claimed(store));
    for (const auto now : {at(10), at(20), at(30)}) {
        t.equal(extend(store, ticket, now, duration{100}), verdict::applied, "one of several extends");
        t.equal(get(store, 1).lease_until, std::optional{now + duration{100}}, "lease_until");
    }
    t.equal(settle(store, ticket, succeed{}, at(40)), settlement{verdict::applied}, "the settle after them");
}

inline void keeps_the_wake_mark(trial& t) {
    auto store = t.open();
    const auto ticket = ticket_of(claimed(store));
    nudge(store, id_of(1), at(10));
    std::ignore = extend(store, ticket, at(20), duration{200});
    t.expect(get(store, 1).woken, "the wake mark is kept");
    std::ignore = settle(store, ticket, retry{"e", at(500)}, at(50));
    t.equal(get(store, 1).due_at, at(50), "due_at after the claim that was nudged");
}

inline void batch(trial& t) {
    auto store = t.open();
    t.equal(transact(store, [](auto& tx) { return tx.extend({}, at(1), duration{9}); }), std::vector<verdict>{},
            "the answers to none");
    for (std::uint64_t n = 1; n <= 4; ++n) {
        put(store, draft_of(n));
    }
    std::ignore = take(store, at(0), {.limit = 3});
    auto expected = snapshot_of(store).found;
    const std::array tickets{ticket{id_of(5), 1}, ticket{id_of(3), 1}, ticket{id_of(2), 2}, ticket{id_of(4), 0},
                             ticket{id_of(1), 1}};
    const auto answers = transact(store, [&](auto& tx) { return tx.extend(tickets, at(50), duration{100}); });
    using enum verdict;
    t.equal(answers, std::vector{unknown, applied, stale, repeated, applied},
            "the answers, in the order of the tickets");
    for (const std::size_t i : {0U, 2U}) {
        expected[i].lease_until = at(150);
        expected[i].updated_at = at(50);
    }
    t.equal(snapshot_of(store).found, expected, "the entries after the extends");
}

inline void lease_bounds(trial& t) {
    auto store = t.open();
    const auto ticket = ticket_of(claimed(store));
    const auto& limits = t.can().limits;
    const auto before = snapshot_of(store);
    for (const auto lease : {limits.lease_min - duration{1}, limits.lease_max + duration{1}}) {
        t.throws(error_kind::invalid_argument, "an extend by " + show(lease),
                 [&] { extend(store, ticket, at(30), lease); });
    }
    unchanged(store, before, "an extend that is refused changes nothing");
    t.equal(extend(store, ticket, at(30), limits.lease_max), verdict::applied, "the extend by the longest lease");
    t.equal(get(store, 1).lease_until, std::optional{at(30) + limits.lease_max}, "lease_until");
}

} // namespace extend_checks

inline constexpr std::array extending{
    clause{"EXTEND-01", layer::examples, level::must, needs::nothing,
           "An extend sets lease_until to now + lease, and updated_at; nothing else changes.", extend_checks::fields},
    clause{"EXTEND-02", layer::examples, level::must, needs::nothing,
           "An extend never shortens a lease: lease_until becomes the later of its old value and now + lease.",
           extend_checks::never_shorter},
    clause{"EXTEND-03", layer::examples, level::must, needs::nothing,
           "An extended claim can be taken over exactly from the new end of its lease on.",
           extend_checks::keeps_others_away},
    clause{"EXTEND-04", layer::examples, level::must, needs::nothing,
           "A lease that is over but was not taken over can be extended, and then runs again.",
           extend_checks::revives_a_lapsed_claim},
    clause{"EXTEND-05", layer::examples, level::must, needs::nothing,
           "After a takeover the earlier ticket extends nothing.", extend_checks::not_once_taken_over},
    clause{"EXTEND-06", layer::examples, level::must, needs::nothing,
           "A ticket can extend any number of times and still settle.", extend_checks::ticket_stays_good},
    clause{"EXTEND-07", layer::examples, level::must, needs::nothing, "An extend keeps the wake mark.",
           extend_checks::keeps_the_wake_mark},
    clause{"EXTEND-08", layer::examples, level::must, needs::nothing,
           "A batch of tickets returns one verdict per ticket, in order, and extends exactly the valid ones.",
           extend_checks::batch},
    clause{"EXTEND-09", layer::examples, level::must, needs::nothing,
           "An extend whose lease is out of bounds throws invalid_argument and changes nothing.",
           extend_checks::lease_bounds},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch
