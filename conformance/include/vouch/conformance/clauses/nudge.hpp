// SPDX-License-Identifier: MIT
// Nudge: an entry that waits becomes due now; a claimed entry is marked and becomes due when its claim ends. No nudge is
// lost.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <tuple>

#include <vouch/conformance/any_store.hpp>
#include <vouch/conformance/clause.hpp>
#include <vouch/conformance/detail/steps.hpp>
#include <vouch/conformance/detail/trial.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace nudge_checks {

/// Entry 1, claimed at 0 until 100 and nudged at 10.
[[nodiscard]] inline ticket marked(any_store& store) {
    put(store, draft_of(1, {.payload = "p", .progress = "begun"}));
    const auto ticket = take_one(store, at(0));
    trial::equal(nudge(store, id_of(1), at(10)), verdict::applied, "the nudge of a claimed entry");
    return ticket;
}

/// Requires that an outcome at 20 with the time at(90) leaves the marked entry due at 20, and one with at(15) at 15.
template <class Outcome>
void earlier_of_time_and_now(trial& t, const Outcome& outcome_at) {
    for (const auto given : {at(90), at(21), at(20), at(15)}) {
        auto store = t.open(t.fresh_location());
        const auto ticket = marked(store);
        t.equal(settle(store, ticket, outcome_at(given), at(20)), settlement{verdict::applied}, "the settle");
        const auto due = given < at(20) ? given : at(20);
        t.equal(get(store, 1).due_at, due,
                "due_at after an outcome with the time " + show(given) + " at " + show(at(20)));
        t.expect(!get(store, 1).woken, "the mark is gone");
        t.equal(numbers(take(store, at(20))), list_of{1}, "claimed at once");
    }
}

inline void pending_fields(trial& t) {
    auto store = t.open();
    put(store, draft_of(1, {.payload = "p", .key = "k", .due_at = at(500), .progress = "begun"}));
    auto expected = get(store, 1);
    t.equal(nudge(store, id_of(1), at(30)), verdict::applied, "the nudge");
    expected.due_at = expected.updated_at = at(30);
    t.equal(get(store, 1), expected, "the entry after the nudge");
    t.equal(store.next_due("q"), std::optional{at(30)}, "next_due");
    t.equal(numbers(take(store, at(30))), list_of{1}, "claimed at once");
}

inline void retrying_fields(trial& t) {
    auto store = t.open();
    put(store, draft_of(1, {.progress = "begun"}));
    std::ignore = settle(store, take_one(store, at(0)), retry{"e", at(500)}, at(5));
    auto expected = get(store, 1);
    t.equal(nudge(store, id_of(1), at(30)), verdict::applied, "the nudge");
    expected.due_at = expected.updated_at = at(30);
    t.equal(get(store, 1), expected, "the entry after the nudge");
    t.equal(numbers(take(store, at(30))), list_of{1}, "claimed at once");
}

inline void due_already(trial& t) {
    auto store = t.open();
    put(store, draft_of(1, {.due_at = at(29)}));
    put(store, draft_of(2, {.due_at = at(30)}));
    const auto before = snapshot_of(store);
    t.equal(nudge(store, id_of(1), at(30)), verdict::repeated, "the nudge of an entry due a microsecond ago");
    t.equal(nudge(store, id_of(2), at(30)), verdict::repeated, "the nudge of an entry due exactly now");
    unchanged(store, before, "a nudge moves nothing back");
    t.equal(nudge(store, id_of(2), at(29)), verdict::applied, "the nudge a microsecond before an entry is due");
    t.equal(get(store, 2).due_at, at(29), "due_at after it");
}

inline void claimed_fields(trial& t) {
    auto store = t.open();
    put(store, draft_of(1, {.payload = "p", .key = "k", .progress = "begun"}));
    std::ignore = take_one(store, at(0));
    auto expected = get(store, 1);
    t.equal(nudge(store, id_of(1), at(30)), verdict::applied, "the nudge");
    expected.woken = true;
    expected.updated_at = at(30);
    t.equal(get(store, 1), expected, "the entry after the nudge");
    t.equal(store.next_due("q"), std::optional{at(100)}, "next_due, the end of the lease");
    t.equal(numbers(take(store, at(99))), list_of{}, "taken over while the lease runs");
}

inline void through_retry(trial& t) {
    earlier_of_time_and_now(t, [](time_point given) { return outcome{retry{"e", given}}; });
}

inline void through_release(trial& t) {
    earlier_of_time_and_now(t, [](time_point given) { return outcome{release{given}}; });
}

inline void through_advance(trial& t) {
    earlier_of_time_and_now(t, [](time_point given) { return outcome{advance{"p", given}}; });
}

inline void through_outcomes_without_time(trial& t) {
    auto store = t.open();
    auto ticket = marked(store);
    std::ignore = settle(store, ticket, release{}, at(20));
    t.equal(get(store, 1).due_at, at(0), "due_at after a release: it was due before");
    ticket = take_one(store, at(30));
    nudge(store, id_of(1), at(40));
    std::ignore = settle(store, ticket, release{}, at(-5)); // a clock that is slow
    t.equal(get(store, 1).due_at, at(-5), "due_at after a release before it was due");
    ticket = take_one(store, at(50));
    nudge(store, id_of(1), at(60));
    std::ignore = settle(store, ticket, advance{"p", {}}, at(70));
    t.equal(get(store, 1).due_at, at(70), "due_at after an advance");
}

inline void ends_with_the_entry(trial& t) {
    for (const outcome& end : {outcome{succeed{"r"}}, outcome{bury{"e", "r"}}}) {
        auto store = t.open(t.fresh_location());
        const auto ticket = marked(store);
        t.equal(settle(store, ticket, end, at(-20)), settlement{verdict::applied}, "the settle");
        t.expect(!get(store, 1).woken, "the mark is gone");
        t.equal(get(store, 1).due_at, at(0), "due_at is left alone");
    }
}

inline void not_for_the_next_claim(trial& t) {
    auto store = t.open();
    std::ignore = settle(store, marked(store), retry{"e", at(90)}, at(20));
    auto ticket = take_one(store, at(20));
    t.expect(!get(store, 1).woken, "the next claim has no mark");
    std::ignore = settle(store, ticket, retry{"e", at(90)}, at(30));
    t.equal(get(store, 1).due_at, at(90), "due_at after the next claim");
}

inline void take_over_answers_it(trial& t) {
    auto store = t.open();
    std::ignore = marked(store);
    const auto ticket = take_one(store, at(100));
    t.expect(!get(store, 1).woken, "a takeover clears the wake mark");
    std::ignore = settle(store, ticket, release{at(500)}, at(110));
    t.equal(get(store, 1).due_at, at(500), "due_at after the takeover");
}

inline void lapsed_claim(trial& t) {
    auto store = t.open();
    put(store, draft_of(1));
    const auto ticket = take_one(store, at(0));
    t.equal(nudge(store, id_of(1), at(150)), verdict::applied, "the nudge of a lapsed claim");
    t.equal(store.next_due("q"), std::optional{at(100)}, "next_due is still the end of the lease");
    std::ignore = settle(store, ticket, retry{"e", at(500)}, at(160));
    t.equal(get(store, 1).due_at, at(160), "due_at after the lapsed claim has settled");
}

inline void by_id(trial& t) {
    auto store = t.open();
    for (std::uint64_t n = 1; n <= 3; ++n) {
        put(store, draft_of(n, {.due_at = at(500)}));
    }
    auto expected = snapshot_of(store).found;
    std::ignore = nudge(store, id_of(2), at(30));
    expected[1].due_at = expected[1].updated_at = at(30);
    t.equal(snapshot_of(store).found, expected, "the entries after one was nudged");
    t.equal(numbers(take(store, at(30))), list_of{2}, "claimed after one was nudged");
}

} // namespace nudge_checks

inline constexpr std::array nudging{
    clause{"NUDGE-01", layer::examples, level::must, needs::nothing,
           "A nudge makes a pending entry due now; beside that only updated_at changes.", nudge_checks::pending_fields},
    clause{"NUDGE-02", layer::examples, level::must, needs::nothing,
           "A nudge makes a retrying entry due now; beside that only updated_at changes.",
           nudge_checks::retrying_fields},
    clause{"NUDGE-03", layer::examples, level::must, needs::nothing,
           "A nudge does not change an entry that is already due; it never makes an entry due later.",
           nudge_checks::due_already},
    clause{"NUDGE-04", layer::examples, level::must, needs::nothing,
           "A nudge of a claimed entry sets its wake mark and updated_at; lease, due_at and ticket stay.",
           nudge_checks::claimed_fields},
    clause{"NUDGE-05", layer::examples, level::must, needs::nothing,
           "A retry does not lose a nudge of its claim: the entry is due at the earlier of the given time and now.",
           nudge_checks::through_retry},
    clause{"NUDGE-06", layer::examples, level::must, needs::nothing,
           "A release does not lose a nudge of its claim: the entry is due at the earlier of the given time and now.",
           nudge_checks::through_release},
    clause{"NUDGE-07", layer::examples, level::must, needs::nothing,
           "An advance does not lose a nudge of its claim: the entry is due at the earlier of the given time and now.",
           nudge_checks::through_advance},
    clause{
        "NUDGE-08", layer::examples, level::must, needs::nothing,
        "If release or advance gives no time, a nudge of the claim makes the entry due now, unless it was due before.",
        nudge_checks::through_outcomes_without_time},
    clause{"NUDGE-09", layer::examples, level::must, needs::nothing,
           "succeed and bury clear the wake mark and leave due_at unchanged.", nudge_checks::ends_with_the_entry},
    clause{"NUDGE-10", layer::examples, level::must, needs::nothing,
           "The settle that ends a claim clears its wake mark; the next claim starts without one.",
           nudge_checks::not_for_the_next_claim},
    clause{"NUDGE-11", layer::examples, level::must, needs::nothing,
           "A takeover clears the wake mark, because it is the attempt that the nudge asked for.",
           nudge_checks::take_over_answers_it},
    clause{"NUDGE-12", layer::examples, level::must, needs::nothing,
           "A nudge also marks a claim whose lease is over, and does not change lease_until.",
           nudge_checks::lapsed_claim},
    clause{"NUDGE-13", layer::examples, level::must, needs::nothing, "A nudge changes only the entry with its id.",
           nudge_checks::by_id},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch
