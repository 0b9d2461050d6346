// SPDX-License-Identifier: MIT
// Settle: what each outcome makes of every field of the entry, and which ticket entitles to it.
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

/// Entry 1, with something in every field that a settle might touch by mistake: it has failed once, was due at 20 and
/// is claimed for the second time, at 30.
[[nodiscard]] inline entry second_claim(any_store& store) {
    put(store, draft_of(1, {.payload = "p", .key = "k", .expires_at = at(500), .progress = "begun"}));
    std::ignore = settle(store, take_one(store, at(0)), retry{"first", at(20)}, at(10));
    std::ignore = take_one(store, at(30));
    return get(store, 1);
}

/// Settles at 40, which must count, and compares the whole entry with `expected`, whose claim is over at 40.
inline void settle_at_40(any_store& store, const outcome& o, entry expected) {
    expected.lease_until.reset();
    expected.updated_at = at(40);
    trial::equal(settle(store, ticket_of(expected), o, at(40)), settlement{verdict::applied}, "the settle");
    trial::equal(get(store, 1), expected, "the entry after the settle");
}

/// That entry 1 can be claimed from `due` on.
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
        auto store = t.open(t.fresh_place());
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
        auto store = t.open(t.fresh_place());
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
        auto store = t.open(t.fresh_place());
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
    for (std::uint32_t n = 1; n <= 300; ++n) { // more than a byte can count
        std::ignore = settle(store, take_one(store, at(n)), retry{"e", at(n)}, at(n));
    }
    const auto e = get(store, 1);
    t.equal(std::vector<std::uint64_t>{e.attempts, e.failures, e.epoch}, std::vector<std::uint64_t>{300, 300, 300},
            "attempts, failures and epoch after 300 failures");
}

inline void by_ticket_not_by_time(trial& t) {
    for (const auto now : {at(-1), at(99), at(100), at(101), at(1'000'000'000)}) { // the lease ends at 100
        auto store = t.open(t.fresh_place());
        put(store, draft_of(1));
        const auto ticket = take_one(store, at(0));
        t.equal(settle(store, ticket, succeed{}, now), settlement{verdict::applied}, "the settle at " + show(now));
        t.equal(get(store, 1).updated_at, now, "updated_at");
    }
}

inline void taken_over(trial& t) {
    auto store = t.open();
    put(store, draft_of(1));
    const auto first = take_one(store, at(0), {.worker = "w"});
    const auto second = take_one(store, at(100), {.worker = "w"}); // the name does not matter
    const auto before = look(store);
    t.equal(settle(store, first, succeed{"old"}, at(110)), settlement{verdict::stale}, "the settle of the first claim");
    unchanged(store, before, "a claim that was taken over settles nothing");
    t.equal(settle(store, second, succeed{"new"}, at(110)), settlement{verdict::applied}, "that of the second");
    t.equal(get(store, 1).result, std::optional<std::string>{"new"}, "the result");
}

inline void ticket_is_used_up(trial& t) {
    const std::array<outcome, 5> outcomes{succeed{"r"}, retry{"e", at(0)}, bury{"e", "r"}, release{}, advance{"p", {}}};
    for (const auto& first : outcomes) {
        auto store = t.open(t.fresh_place());
        put(store, draft_of(1));
        const auto ticket = take_one(store, at(0));
        std::ignore = settle(store, ticket, first, at(1));
        const auto before = look(store);
        for (const auto& second : outcomes) {
            t.equal(settle(store, ticket, second, at(2)), settlement{verdict::repeated}, "the second settle");
        }
        unchanged(store, before, "a ticket that is used up settles nothing");
    }
}

inline void by_id(trial& t) {
    auto store = t.open();
    put(store, draft_of(1));
    put(store, draft_of(2, {.queue = "r"}));
    std::ignore = take_one(store, at(0));
    std::ignore = take_one(store, at(0), {.queue = "r"});
    const auto first = get(store, 1);
    t.equal(settle(store, {id_of(2), 1}, succeed{"r"}, at(1)), settlement{verdict::applied}, "the settle");
    t.equal(get(store, 1), first, "the entry whose claim has the same epoch");
    t.equal(get(store, 2).state, state::succeeded, "the state of the entry that was settled");
}

inline void batch(trial& t) {
    auto store = t.open();
    t.equal(transact(store, [](auto& tx) { return tx.settle({}, at(1)); }), std::vector<settlement>{},
            "the answers to none");
    for (std::uint64_t n = 1; n <= 3; ++n) {
        put(store, draft_of(n, {.due_at = at(n == 3 ? 50 : 0)}));
    }
    std::ignore = take(store, at(0));
    const std::array settles{vouch::settle{{id_of(4), 1}, succeed{}}, vouch::settle{{id_of(2), 1}, bury{"e", "2"}},
                             vouch::settle{{id_of(1), 7}, succeed{}}, vouch::settle{{id_of(3), 0}, succeed{}},
                             vouch::settle{{id_of(1), 1}, succeed{"1"}}};
    const auto answers = transact(store, [&](auto& tx) { return tx.settle(settles, at(1)); });
    t.equal(answers,
            std::vector<settlement>{
                {verdict::unknown}, {verdict::applied}, {verdict::stale}, {verdict::repeated}, {verdict::applied}},
            "the answers, in the order of the settles");
    t.equal(get(store, 1).result, std::optional<std::string>{"1"}, "the result of the last settle");
    t.equal(get(store, 2).result, std::optional<std::string>{"2"}, "the result of the second settle");
    t.equal(get(store, 3).state, state::pending, "the state of an entry that was not claimed");
}

inline void alike_in_a_batch(trial& t) {
    auto store = t.open();
    for (std::uint64_t n = 1; n <= 12; ++n) {
        put(store, draft_of(n));
    }
    std::ignore = take(store, at(0));
    std::ignore = take(store, at(100), {.only = id_of(4)}); // taken over
    settle(store, {id_of(9), 1}, succeed{}, at(100));       // used up
    settle(store, {id_of(11), 1}, release{}, at(100));      // handed back
    for (const std::uint64_t first : {1U, 7U}) {
        std::vector<vouch::settle> settles;
        std::vector<settlement> expected;
        for (auto n = first; n < first + 6; ++n) {
            settles.push_back({{id_of(n), 1}, succeed{}});
            expected.push_back({n == 4 ? verdict::stale : n == 9 || n == 11 ? verdict::repeated : verdict::applied});
        }
        t.equal(transact(store, [&](auto& tx) { return tx.settle(settles, at(101)); }), expected, "the answers");
    }
    t.equal(get(store, 4).state, state::claimed, "the state of the entry that was taken over");
    t.equal(get(store, 9).updated_at, at(100), "the last change of the entry that had succeeded");
    t.equal(get(store, 10).state, state::succeeded, "the state of the entry after it");
    t.equal(get(store, 11).state, state::pending, "the state of the entry that was handed back");
}

inline void twice_in_a_batch(trial& t) {
    auto store = t.open();
    put(store, draft_of(1));
    const auto ticket = take_one(store, at(0));
    const std::array settles{vouch::settle{ticket, retry{"e", at(5)}}, vouch::settle{ticket, succeed{"r"}}};
    const auto answers = transact(store, [&](auto& tx) { return tx.settle(settles, at(1)); });
    t.equal(answers, std::vector<settlement>{{verdict::applied}, {verdict::repeated}}, "the answers");
    t.equal(get(store, 1).state, state::retrying, "the state is what the first settle said");
}

inline void invalid_batch(trial& t) {
    auto store = t.open();
    put(store, draft_of(1));
    const auto ticket = take_one(store, at(0));
    const auto before = look(store);
    const auto& limits = t.can().limits;
    const std::string error(limits.error_max + 1, 'e');
    for (const outcome& wrong : {outcome{retry{error, at(5)}}, outcome{bury{error, {}}}, outcome{retry{"\n", at(5)}},
                                 outcome{succeed{std::string(limits.result_max + 1, 'r')}},
                                 outcome{bury{"e", std::string(limits.result_max + 1, 'r')}},
                                 outcome{advance{std::string(limits.progress_max + 1, 'p'), {}}}}) {
        const std::array settles{vouch::settle{ticket, succeed{}}, vouch::settle{ticket, wrong}};
        auto tx = store.begin();
        t.throws(error_kind::invalid_argument, "a settle beyond a limit",
                 [&] { std::ignore = tx.settle(settles, at(1)); });
        tx.commit();
        unchanged(store, before, "a settle beyond a limit rejects its whole batch");
    }
}

inline void rolled_back(trial& t) {
    auto store = t.open();
    put(store, draft_of(1));
    const auto ticket = take_one(store, at(0));
    const auto before = look(store);
    {
        auto tx = store.begin();
        t.equal(settle_in(tx, ticket, succeed{}, at(0)), settlement{verdict::applied},
                "the settle that is rolled back");
    }
    unchanged(store, before, "a settle in a transaction that rolls back never happened");
    t.equal(settle(store, ticket, succeed{}, at(0)), settlement{verdict::applied}, "the settle that is committed");
}

inline void outcomes_end_the_row(trial& t) {
    for (const outcome& o : {outcome{succeed{"r"}}, outcome{bury{"e", {}}}, outcome{retry{"e", at(210)}},
                             outcome{advance{"p", at(210)}}}) {
        auto store = t.open(t.fresh_place());
        put(store, draft_of(1));
        std::ignore = settle(store, take_lapsed(store, 1, 2), o, at(210));
        const auto settled = get(store, 1);
        t.equal(settled.lapses, 0U, "lapses of an entry that is " + show(settled.state));
        if (is_live(settled.state)) {
            std::ignore = take_one(store, at(210));
            std::ignore = take_one(store, at(310));
            t.equal(get(store, 1).lapses, 1U, "lapses after the next one");
            t.equal(get(store, 1).attempts, settled.attempts + 1, "attempts after that, which is a first lapse again");
        }
    }
}

inline void release_keeps_lapses(trial& t) {
    auto store = t.open();
    put(store, draft_of(1));
    const auto mine = take_lapsed(store, 1, 1);
    auto expected = get(store, 1);
    std::ignore = settle(store, mine, release{}, at(110));
    expected.state = state::pending;
    expected.attempts = 0;
    expected.lease_until.reset();
    expected.updated_at = at(110);
    t.equal(get(store, 1), expected, "the entry that was released after a lapse");
    std::ignore = take_one(store, at(110));
    std::ignore = take_one(store, at(210));
    t.equal(get(store, 1).lapses, 2U, "lapses after another one");
    t.equal(get(store, 1).attempts, 2U, "attempts after that, which is a second lapse");
}

inline void own_results(trial& t) {
    auto store = t.open();
    std::vector<vouch::settle> settles;
    std::vector<std::string> expected{"same", "same", "", "other", "same", "last"};
    for (const auto& result : expected) {
        const auto n = settles.size() + 1;
        put(store, draft_of(n));
        settles.push_back({{id_of(n), 1}, succeed{result}});
    }
    std::ignore = take(store, at(0));
    std::ignore = transact(store, [&](auto& tx) { return tx.settle(settles, at(1)); });
    std::vector<std::string> seen;
    for (std::uint64_t n = 1; n <= expected.size(); ++n) {
        seen.push_back(get(store, n).result.value_or("none"));
    }
    t.equal(seen, expected, "the results of neighbours that succeeded in one batch");
}

} // namespace settle_checks

inline constexpr std::array settling{
    clause{"SETTLE-01", layer::examples, level::must, needs::nothing,
           "succeed: the state is succeeded and the result is stored; of the rest only lapses, lease_until and "
           "updated_at change, so last_error, failures and due_at stay.",
           settle_checks::succeed_fields},
    clause{
        "SETTLE-02", layer::examples, level::must, needs::nothing,
        "retry: the state is retrying, failures grows by one, last_error and due_at are those given; attempts, epoch "
        "and progress stay.",
        settle_checks::retry_fields},
    clause{"SETTLE-03", layer::examples, level::must, needs::nothing,
           "retry: the entry is due exactly at the time given, be it past, present or future.",
           settle_checks::retry_at_any_time},
    clause{"SETTLE-04", layer::examples, level::must, needs::nothing,
           "bury: the state is dead, failures grows by one, last_error and result are those given; attempts, epoch, "
           "due_at and progress stay.",
           settle_checks::bury_fields},
    clause{"SETTLE-05", layer::examples, level::must, needs::nothing,
           "An empty result is a result; only a bury without one leaves none.", settle_checks::empty_is_a_result},
    clause{"SETTLE-06", layer::examples, level::must, needs::nothing, "Result and progress are kept to the byte.",
           settle_checks::bytes_are_kept},
    clause{"SETTLE-07", layer::examples, level::must, needs::nothing,
           "release: gives back one attempt, and with attempts left the state is retrying; due_at, failures and "
           "last_error stay.",
           settle_checks::release_fields},
    clause{"SETTLE-08", layer::examples, level::must, needs::nothing,
           "release: of the first attempt makes the entry pending again, due when it was due before.",
           settle_checks::release_of_first_attempt},
    clause{"SETTLE-09", layer::examples, level::must, needs::nothing,
           "release: with a time the entry is due exactly then, be it earlier or later than before.",
           settle_checks::release_at_another_time},
    clause{"SETTLE-10", layer::examples, level::must, needs::nothing,
           "release: whether the entry is pending or retrying depends on its attempts, not on its failures.",
           settle_checks::release_goes_by_attempts},
    clause{"SETTLE-11", layer::examples, level::must, needs::nothing,
           "release: attempts go down again, the epoch never does.", settle_checks::release_costs_nothing},
    clause{
        "SETTLE-12", layer::examples, level::must, needs::nothing,
        "advance: the state is pending, progress and due_at are those given, attempts is 0; failures, last_error and "
        "epoch stay.",
        settle_checks::advance_fields},
    clause{"SETTLE-13", layer::examples, level::must, needs::nothing,
           "advance: without a time the entry is due now; an empty progress replaces the one before.",
           settle_checks::advance_now},
    clause{"SETTLE-14", layer::examples, level::must, needs::nothing,
           "attempts, failures and epoch count every claim and every failure, however many.", settle_checks::counters},
    clause{"SETTLE-15", layer::examples, level::must, needs::nothing,
           "A settle goes by its ticket and never by time: a lease that is over but not taken over still settles.",
           settle_checks::by_ticket_not_by_time},
    clause{"SETTLE-16", layer::examples, level::must, needs::nothing,
           "Once an entry is taken over, the earlier ticket is stale, even if the worker has the same name.",
           settle_checks::taken_over},
    clause{"SETTLE-17", layer::examples, level::must, needs::nothing,
           "A ticket settles once: whatever is said under it a second time is repeated and changes nothing.",
           settle_checks::ticket_is_used_up},
    clause{"SETTLE-18", layer::examples, level::must, needs::nothing,
           "A settle concerns the entry of its ticket's id only.", settle_checks::by_id},
    clause{"SETTLE-19", layer::examples, level::must, needs::nothing,
           "A batch of settles is answered item by item, in order; one that is not applied stops none of the others.",
           settle_checks::batch},
    clause{"SETTLE-20", layer::examples, level::must, needs::nothing,
           "Of two settles under one ticket in a batch the first is applied, the second repeated.",
           settle_checks::twice_in_a_batch},
    clause{"SETTLE-21", layer::examples, level::must, needs::nothing,
           "A settle whose error, result or progress is out of bounds throws invalid_argument; nothing of its batch is "
           "written.",
           settle_checks::invalid_batch},
    clause{"SETTLE-22", layer::examples, level::must, needs::nothing,
           "A settle in a transaction that rolls back never happened: the ticket is still good.",
           settle_checks::rolled_back},
    clause{"SETTLE-23", layer::examples, level::must, needs::nothing,
           "Settles in a batch that differ in their ids only are judged each by its own ticket.",
           settle_checks::alike_in_a_batch},
    clause{"SETTLE-24", layer::examples, level::must, needs::nothing,
           "succeed, retry, bury and advance set lapses to 0: the next lapse is a first one again.",
           settle_checks::outcomes_end_the_row},
    clause{"SETTLE-25", layer::examples, level::must, needs::nothing,
           "release: keeps lapses, and gives back an attempt after a lapse, too.", settle_checks::release_keeps_lapses},
    clause{"SETTLE-26", layer::examples, level::must, needs::nothing,
           "Entries that succeed in one batch get each its own result.", settle_checks::own_results},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch
