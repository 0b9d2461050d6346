// SPDX-License-Identifier: MIT
// Cancel: ends an entry that no worker holds.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>

#include <vouch/conformance/any_store.hpp>
#include <vouch/conformance/clause.hpp>
#include <vouch/conformance/detail/steps.hpp>
#include <vouch/conformance/detail/trial.hpp>
#include <vouch/contract/error.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace cancel_checks {

inline void pending_fields(trial& t) {
    auto store = t.open();
    put(store, draft_of(1, {.payload = "p", .key = "k", .due_at = at(500), .progress = "begun"}));
    auto expected = get(store, 1);
    t.equal(cancel(store, id_of(1), at(30), "why"), verdict::applied, "the cancel");
    expected.state = state::dead;
    expected.last_error = "why";
    expected.updated_at = at(30);
    t.equal(get(store, 1), expected, "the entry after the cancel");
    t.equal(store.next_due("q"), std::optional<time_point>{}, "next_due");
    t.equal(numbers(take(store, at(900))), list_of{}, "claimed after the cancel");
    t.equal(numbers(store.list(query::dead("q"))), list_of{1}, "the list of the dead");
}

inline void retrying_fields(trial& t) {
    auto store = t.open();
    put(store, draft_of(1, {.progress = "begun"}));
    const auto ticket = take_one(store, at(0));
    std::ignore = settle(store, ticket, retry{"e", at(500)}, at(10));
    auto expected = get(store, 1);
    t.equal(cancel(store, id_of(1), at(30), "why"), verdict::applied, "the cancel");
    expected.state = state::dead;
    expected.last_error = "why";
    expected.updated_at = at(30);
    t.equal(get(store, 1), expected, "the entry after the cancel");
    t.equal(settle(store, ticket, succeed{}, at(40)), settlement{verdict::repeated}, "the settle of the last claim");
}

inline void lapsed_fields(trial& t) {
    auto store = t.open();
    put(store, draft_of(1, {.progress = "begun"}));
    std::ignore = take_one(store, at(0));
    nudge(store, id_of(1), at(10));
    auto expected = get(store, 1);
    t.equal(cancel(store, id_of(1), at(200), "why"), verdict::applied, "the cancel");
    expected.state = state::dead;
    expected.epoch = 2;
    expected.lease_until.reset();
    expected.woken = false;
    expected.last_error = "why";
    expected.updated_at = at(200);
    t.equal(get(store, 1), expected, "the entry after the cancel");
}

inline void lapsed_ticket_is_stale(trial& t) {
    auto store = t.open();
    put(store, draft_of(1));
    const auto ticket = take_one(store, at(0));
    std::ignore = cancel(store, id_of(1), at(100));
    const auto before = snapshot_of(store);
    t.equal(settle(store, ticket, succeed{"late"}, at(110)), settlement{verdict::stale}, "the settle after the cancel");
    t.equal(extend(store, ticket, at(110), duration{100}), verdict::stale, "the extend after the cancel");
    unchanged(store, before, "the old ticket cannot change the entry");
}

inline void lease_ends_exactly_now(trial& t) {
    auto store = t.open();
    put(store, draft_of(1));
    const auto ticket = take_one(store, at(0));
    const auto before = snapshot_of(store);
    t.equal(cancel(store, id_of(1), at(99)), verdict::stale, "the cancel one microsecond before the lease ends");
    unchanged(store, before, "a cancel does not change a claim whose lease runs");
    t.equal(extend(store, ticket, at(99), duration{2}), verdict::applied, "the extend of that claim");
    t.equal(cancel(store, id_of(1), at(100)), verdict::stale, "the cancel when the lease would have ended");
    t.equal(cancel(store, id_of(1), at(101)), verdict::applied, "the cancel exactly when the lease ends");
}

inline void error_is_stored(trial& t) {
    auto store = t.open();
    const std::string longest(t.can().limits.error_max, 'e');
    put(store, draft_of(1));
    std::ignore = cancel(store, id_of(1), at(1), longest);
    t.equal(get(store, 1).last_error, longest, "the longest error");
    put(store, draft_of(2));
    std::ignore = settle(store, take_one(store, at(0)), retry{"e", at(5)}, at(1));
    std::ignore = cancel(store, id_of(2), at(2), "");
    t.equal(get(store, 2).last_error, std::string{}, "the empty error, which replaces the earlier one");
}

inline void error_out_of_bounds(trial& t) {
    auto store = t.open();
    put(store, draft_of(1));
    const auto before = snapshot_of(store);
    for (const auto& wrong : {std::string(t.can().limits.error_max + 1, 'e'), std::string("a\nb")}) {
        t.throws(error_kind::invalid_argument, "a cancel with an error out of bounds",
                 [&] { cancel(store, id_of(1), at(1), wrong); });
    }
    unchanged(store, before, "a cancel that is refused changes nothing");
}

inline void first_error_stays(trial& t) {
    auto store = t.open();
    put(store, draft_of(1));
    std::ignore = cancel(store, id_of(1), at(1), "first");
    const auto before = snapshot_of(store);
    t.equal(cancel(store, id_of(1), at(2), "second"), verdict::repeated, "the second cancel");
    unchanged(store, before, "a second cancel changes nothing, its error included");
}

inline void by_id(trial& t) {
    auto store = t.open();
    for (std::uint64_t n = 1; n <= 3; ++n) {
        put(store, draft_of(n));
    }
    auto expected = snapshot_of(store).found;
    std::ignore = cancel(store, id_of(2), at(1), "why");
    expected[1].state = state::dead;
    expected[1].last_error = "why";
    expected[1].updated_at = at(1);
    t.equal(snapshot_of(store).found, expected, "the entries after one was cancelled");
    t.equal(numbers(take(store, at(1))), list_of{1, 3}, "claimed after one was cancelled");
}

inline void lapses_stay(trial& t) {
    auto store = t.open();
    put(store, draft_of(1));
    std::ignore = take_lapsed(store, 1, 2);
    t.equal(cancel(store, id_of(1), at(300)), verdict::applied, "the cancel at the end of a third lease");
    t.equal(get(store, 1).lapses, 2U, "lapses");
    t.equal(get(store, 1).attempts, 2U, "attempts");
}

} // namespace cancel_checks

inline constexpr std::array cancelling{
    clause{"CANCEL-01", layer::examples, level::must, needs::nothing,
           "A pending entry that is cancelled is dead with the given error; beside that only updated_at changes.",
           cancel_checks::pending_fields},
    clause{"CANCEL-02", layer::examples, level::must, needs::nothing,
           "A retrying entry that is cancelled is dead with the given error; epoch, attempts and failures stay.",
           cancel_checks::retrying_fields},
    clause{
        "CANCEL-03", layer::examples, level::must, needs::nothing,
        "A lapsed claim that is cancelled is dead, its epoch is incremented, and its lease and wake mark are cleared.",
        cancel_checks::lapsed_fields},
    clause{"CANCEL-04", layer::examples, level::must, needs::nothing,
           "After a lapsed claim was cancelled, its ticket is stale.", cancel_checks::lapsed_ticket_is_stale},
    clause{"CANCEL-05", layer::examples, level::must, needs::nothing,
           "A claimed entry can be cancelled exactly from the end of its lease on, extended or not.",
           cancel_checks::lease_ends_exactly_now},
    clause{"CANCEL-06", layer::examples, level::must, needs::nothing,
           "A cancel stores its error, from the empty one to the longest.", cancel_checks::error_is_stored},
    clause{"CANCEL-07", layer::examples, level::must, needs::nothing,
           "A cancel whose error is out of bounds throws invalid_argument and changes nothing.",
           cancel_checks::error_out_of_bounds},
    clause{"CANCEL-08", layer::examples, level::must, needs::nothing,
           "A second cancel is repeated and keeps the first error.", cancel_checks::first_error_stays},
    clause{"CANCEL-09", layer::examples, level::must, needs::nothing, "A cancel changes only the entry with its id.",
           cancel_checks::by_id},
    clause{"CANCEL-10", layer::examples, level::must, needs::nothing,
           "A lapsed claim that is cancelled keeps its lapses and attempts, because a cancel is not a takeover.",
           cancel_checks::lapses_stay},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch
