// SPDX-License-Identifier: MIT
// Settle: how each outcome changes every field of the entry.
#pragma once

#include <array>
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

namespace settle_checks {

/// Entry 1, with values in all fields that a settle might change by mistake: it has failed once, was due at 20 and is
/// claimed for the second time, at 30.
[[nodiscard]] inline entry second_claim(any_store& store) {
    put(store, draft_of(1, {.payload = "p", .key = "k", .expires_at = at(500), .progress = "begun"}));
    std::ignore = settle(store, take_one(store, at(0)), retry{"first", at(20)}, at(10));
    std::ignore = take_one(store, at(30));
    return get(store, 1);
}

/// Settles at 40, which must be applied, and compares the whole entry with `expected`, whose claim ends at 40.
inline void settle_at_40(any_store& store, const outcome& o, entry expected) {
    expected.lease_until.reset();
    expected.updated_at = at(40);
    trial::equal(settle(store, ticket_of(expected), o, at(40)), settlement{verdict::applied}, "the settle");
    trial::equal(get(store, 1), expected, "the entry after the settle");
}

/// Requires that entry 1 can be claimed from `due` on.
inline void due_from(any_store& store, time_point due) {
    trial::equal(store.next_due("q"), std::optional{due}, "next_due");
    trial::equal(numbers(take(store, due - duration{1})), list_of{}, "claimed one microsecond before it is due");
    trial::equal(numbers(take(store, due)), list_of{1}, "claimed when it is due");
}

inline void succeed_fields(trial& t) {
    auto store = t.open();
    auto expected = second_claim(store);
    expected.state = state::succeeded;
    expected.result = "done";
    settle_at_40(store, succeed{"done"}, expected);
    t.equal(store.next_due("q"), std::optional<time_point>{}, "next_due");
}

inline void retry_fields(trial& t) {
    auto store = t.open();
    auto expected = second_claim(store);
    expected.state = state::retrying;
    expected.failures = 2;
    expected.last_error = "second";
    expected.due_at = at(90);
    settle_at_40(store, retry{"second", at(90)}, expected);
    due_from(store, at(90));
    std::ignore = settle(store, {id_of(1), 3}, retry{"", at(95)}, at(90));
    t.equal(get(store, 1).last_error, std::string{}, "last_error after a retry that gives none");
}

inline void retry_at_any_time(trial& t) {
    for (const auto due : {at(39), at(40), at(41)}) { // past, present, future
        auto store = t.open(t.fresh_location());
        std::ignore = second_claim(store);
        std::ignore = settle(store, {id_of(1), 2}, retry{"e", due}, at(40));
        t.equal(get(store, 1).due_at, due, "due_at");
        due_from(store, due);
    }
}

inline void bury_fields(trial& t) {
    auto store = t.open();
    auto expected = second_claim(store);
    expected.state = state::dead;
    expected.failures = 2;
    expected.last_error = "second";
    expected.result = "a reply";
    settle_at_40(store, bury{"second", "a reply"}, expected);
    t.equal(store.next_due("q"), std::optional<time_point>{}, "next_due");
}

inline void empty_is_a_result(trial& t) {
    const std::optional<std::string> none{};
    const std::optional<std::string> empty{""};
    const auto result_of = [&](const outcome& o) {
        auto store = t.open(t.fresh_location());
        std::ignore = second_claim(store);
        std::ignore = settle(store, {id_of(1), 2}, o, at(40));
        return get(store, 1).result;
    };
    t.equal(result_of(succeed{""}), empty, "the result of a succeed with an empty one");
    t.equal(result_of(bury{"e", ""}), empty, "the result of a bury with an empty one");
    t.equal(result_of(bury{"e", std::nullopt}), none, "the result of a bury without one");
}

inline void bytes_are_kept(trial& t) {
    auto store = t.open();
    std::ignore = second_claim(store);
    const std::string bytes("a\0\xff\n", 4);
    std::ignore = settle(store, {id_of(1), 2}, advance{bytes, at(40)}, at(40));
    t.equal(get(store, 1).progress, bytes, "the progress");
    std::ignore = settle(store, take_one(store, at(40)), succeed{bytes}, at(40));
    t.equal(get(store, 1).result, std::optional{bytes}, "the result");
}

inline void release_fields(trial& t) {
    auto store = t.open();
    auto expected = second_claim(store);
    expected.state = state::retrying;
    expected.attempts = 1;
    settle_at_40(store, release{}, expected); // due_at stays 20
    due_from(store, at(20));
}

inline void release_of_first_attempt(trial& t) {
    auto store = t.open();
    put(store, draft_of(1, {.due_at = at(20)}));
    std::ignore = take_one(store, at(30));
    auto expected = get(store, 1);
    expected.state = state::pending;
    expected.attempts = 0;
    settle_at_40(store, release{}, expected);
    due_from(store, at(20));
}

inline void release_at_another_time(trial& t) {
    for (const auto due : {at(10), at(40), at(90)}) {
        auto store = t.open(t.fresh_location());
        auto expected = second_claim(store);
        expected.state = state::retrying;
        expected.attempts = 1;
        expected.due_at = due;
        settle_at_40(store, release{due}, expected);
        due_from(store, due);
    }
}

inline void release_goes_by_attempts(trial& t) {
    auto store = t.open();
    put(store, draft_of(1));
    std::ignore = settle(store, take_lapsed(store, 1, 2), release{}, at(210)); // the second lapse was an attempt
    t.equal(get(store, 1).state, state::retrying, "an entry without failures, but with an attempt left to its count");
    std::ignore = settle(store, take_one(store, at(220)), retry{"e", at(230)}, at(230));
    std::ignore = settle(store, take_one(store, at(230)), advance{"p", at(240)}, at(240));
    std::ignore = settle(store, take_one(store, at(240)), release{}, at(250));
    t.equal(get(store, 1).state, state::pending, "an entry with a failure, but no attempt left to its count");
}

inline void release_costs_nothing(trial& t) {
    auto store = t.open();
    put(store, draft_of(1));
    for (std::uint64_t epoch = 1; epoch <= 3; ++epoch) {
        t.equal(take_one(store, at(0)), ticket{id_of(1), epoch}, "the ticket of the claim");
        t.equal(get(store, 1).attempts, 1U, "attempts while it is claimed");
        std::ignore = settle(store, {id_of(1), epoch}, release{}, at(0));
        t.equal(get(store, 1).attempts, 0U, "attempts after the release");
    }
}

inline void advance_fields(trial& t) {
    auto store = t.open();
    auto expected = second_claim(store);
    expected.state = state::pending;
    expected.attempts = 0;
    expected.progress = "further";
    expected.due_at = at(90);
    settle_at_40(store, advance{"further", at(90)}, expected);
    due_from(store, at(90));
}

inline void advance_now(trial& t) {
    auto store = t.open();
    auto expected = second_claim(store);
    expected.state = state::pending;
    expected.attempts = 0;
    expected.progress = "";
    expected.due_at = at(40);
    settle_at_40(store, advance{"", std::nullopt}, expected);
    due_from(store, at(40));
}

inline void counters(trial& t) {
    auto store = t.open();
    put(store, draft_of(1));
    for (std::uint32_t n = 1; n <= 300; ++n) { // more than a byte holds
        std::ignore = settle(store, take_one(store, at(n)), retry{"e", at(n)}, at(n));
    }
    const auto e = get(store, 1);
    t.equal(std::vector<std::uint64_t>{e.attempts, e.failures, e.epoch}, std::vector<std::uint64_t>{300, 300, 300},
            "attempts, failures and epoch after 300 failures");
}

} // namespace settle_checks

inline constexpr std::array settling{
    clause{"SETTLE-01", layer::examples, level::must, needs::nothing,
           "succeed sets the state to succeeded and stores the result; beside these only lapses, lease_until and "
           "updated_at change, so last_error, failures and due_at stay.",
           settle_checks::succeed_fields},
    clause{"SETTLE-02", layer::examples, level::must, needs::nothing,
           "retry sets the state to retrying, increments failures, and stores the given error and due_at; attempts, "
           "epoch and progress stay.",
           settle_checks::retry_fields},
    clause{"SETTLE-03", layer::examples, level::must, needs::nothing,
           "retry makes the entry due exactly at the given time, in the past, present or future.",
           settle_checks::retry_at_any_time},
    clause{"SETTLE-04", layer::examples, level::must, needs::nothing,
           "bury sets the state to dead, increments failures, and stores the given error and result; attempts, epoch, "
           "due_at and progress stay.",
           settle_checks::bury_fields},
    clause{"SETTLE-05", layer::examples, level::must, needs::nothing,
           "An empty result is a result; only a bury without a result stores none.", settle_checks::empty_is_a_result},
    clause{"SETTLE-06", layer::examples, level::must, needs::nothing, "Results and progress are stored byte for byte.",
           settle_checks::bytes_are_kept},
    clause{
        "SETTLE-07", layer::examples, level::must, needs::nothing,
        "release decrements attempts; if attempts remain, the state is retrying; due_at, failures and last_error stay.",
        settle_checks::release_fields},
    clause{"SETTLE-08", layer::examples, level::must, needs::nothing,
           "release of the first attempt makes the entry pending again, with its due_at unchanged.",
           settle_checks::release_of_first_attempt},
    clause{"SETTLE-09", layer::examples, level::must, needs::nothing,
           "release with a time makes the entry due exactly then, earlier or later than before.",
           settle_checks::release_at_another_time},
    clause{"SETTLE-10", layer::examples, level::must, needs::nothing,
           "After release the state depends on attempts, not on failures.", settle_checks::release_goes_by_attempts},
    clause{"SETTLE-11", layer::examples, level::must, needs::nothing,
           "release decrements attempts, but never the epoch.", settle_checks::release_costs_nothing},
    clause{"SETTLE-12", layer::examples, level::must, needs::nothing,
           "advance sets the state to pending and attempts to 0, and stores the given progress and due_at; failures, "
           "last_error and epoch stay.",
           settle_checks::advance_fields},
    clause{"SETTLE-13", layer::examples, level::must, needs::nothing,
           "advance without a time makes the entry due now; an empty progress replaces the earlier one.",
           settle_checks::advance_now},
    clause{"SETTLE-14", layer::examples, level::must, needs::nothing,
           "attempts, failures and epoch count every claim and every failure, however many there are.",
           settle_checks::counters},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch
