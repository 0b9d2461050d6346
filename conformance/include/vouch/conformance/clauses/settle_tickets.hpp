// SPDX-License-Identifier: MIT
// Settle: which tickets are valid, how a batch is answered, and how outcomes change lapses.
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

inline void by_ticket_not_by_time(trial& t) {
    for (const auto now : {at(-1), at(99), at(100), at(101), at(1'000'000'000)}) { // the lease ends at 100
        auto store = t.open(t.fresh_location());
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
    const auto before = snapshot_of(store);
    t.equal(settle(store, first, succeed{"old"}, at(110)), settlement{verdict::stale}, "the settle of the first claim");
    unchanged(store, before, "a claim that was taken over settles nothing");
    t.equal(settle(store, second, succeed{"new"}, at(110)), settlement{verdict::applied}, "that of the second");
    t.equal(get(store, 1).result, std::optional<std::string>{"new"}, "the result");
}

inline void ticket_is_used_up(trial& t) {
    const std::array<outcome, 5> outcomes{succeed{"r"}, retry{"e", at(0)}, bury{"e", "r"}, release{}, advance{"p", {}}};
    for (const auto& first : outcomes) {
        auto store = t.open(t.fresh_location());
        put(store, draft_of(1));
        const auto ticket = take_one(store, at(0));
        std::ignore = settle(store, ticket, first, at(1));
        const auto before = snapshot_of(store);
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
    t.equal(get(store, 11).state, state::pending, "the state of the released entry");
}

inline void twice_in_a_batch(trial& t) {
    auto store = t.open();
    put(store, draft_of(1));
    const auto ticket = take_one(store, at(0));
    const std::array settles{vouch::settle{ticket, retry{"e", at(5)}}, vouch::settle{ticket, succeed{"r"}}};
    const auto answers = transact(store, [&](auto& tx) { return tx.settle(settles, at(1)); });
    t.equal(answers, std::vector<settlement>{{verdict::applied}, {verdict::repeated}}, "the answers");
    t.equal(get(store, 1).state, state::retrying, "the state is that of the first settle");
}

inline void invalid_batch(trial& t) {
    auto store = t.open();
    put(store, draft_of(1));
    const auto ticket = take_one(store, at(0));
    const auto before = snapshot_of(store);
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
    const auto before = snapshot_of(store);
    {
        auto tx = store.begin();
        t.equal(settle_in(tx, ticket, succeed{}, at(0)), settlement{verdict::applied},
                "the settle that is rolled back");
    }
    unchanged(store, before, "a settle in a transaction that is rolled back has no effect");
    t.equal(settle(store, ticket, succeed{}, at(0)), settlement{verdict::applied}, "the settle that is committed");
}

inline void outcomes_end_the_row(trial& t) {
    for (const outcome& o : {outcome{succeed{"r"}}, outcome{bury{"e", {}}}, outcome{retry{"e", at(210)}},
                             outcome{advance{"p", at(210)}}}) {
        auto store = t.open(t.fresh_location());
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

inline constexpr std::array settling_by_ticket{
    clause{"SETTLE-15", layer::examples, level::must, needs::nothing,
           "A settle depends on its ticket, never on time: an expired lease that was not taken over still settles.",
           settle_checks::by_ticket_not_by_time},
    clause{"SETTLE-16", layer::examples, level::must, needs::nothing,
           "After a takeover the earlier ticket is stale, even if the worker has the same name.",
           settle_checks::taken_over},
    clause{"SETTLE-17", layer::examples, level::must, needs::nothing,
           "A ticket settles once: any further settle under it is repeated and changes nothing.",
           settle_checks::ticket_is_used_up},
    clause{"SETTLE-18", layer::examples, level::must, needs::nothing, "A settle changes only the entry of its ticket.",
           settle_checks::by_id},
    clause{"SETTLE-19", layer::examples, level::must, needs::nothing,
           "A batch of settles returns one settlement per item, in order; a settle that is not applied does not stop "
           "the others.",
           settle_checks::batch},
    clause{"SETTLE-20", layer::examples, level::must, needs::nothing,
           "If a batch has two settles under one ticket, the first is applied and the second is repeated.",
           settle_checks::twice_in_a_batch},
    clause{"SETTLE-21", layer::examples, level::must, needs::nothing,
           "A settle whose error, result or progress is out of bounds throws invalid_argument; nothing of its batch is "
           "written.",
           settle_checks::invalid_batch},
    clause{"SETTLE-22", layer::examples, level::must, needs::nothing,
           "A settle in a transaction that is rolled back has no effect, and its ticket stays valid.",
           settle_checks::rolled_back},
    clause{"SETTLE-23", layer::examples, level::must, needs::nothing,
           "Settles in a batch that differ only in their ids are judged each by its own ticket.",
           settle_checks::alike_in_a_batch},
    clause{"SETTLE-24", layer::examples, level::must, needs::nothing,
           "succeed, retry, bury and advance set lapses to 0, so that the next lapse is a first one again.",
           settle_checks::outcomes_end_the_row},
    clause{"SETTLE-25", layer::examples, level::must, needs::nothing,
           "release keeps lapses and decrements attempts, after a lapse too.", settle_checks::release_keeps_lapses},
    clause{"SETTLE-26", layer::examples, level::must, needs::nothing,
           "Each entry that succeeds in a batch gets its own result.", settle_checks::own_results},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch
