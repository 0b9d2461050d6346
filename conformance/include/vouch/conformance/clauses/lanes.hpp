// SPDX-License-Identifier: MIT
// Lanes: one entry is claimed at a time, in sequence. The head is the live entry with the lowest sequence. It blocks the
// entries behind it until it ends; a blocked entry has no gate.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>

#include <vouch/conformance/any_store.hpp>
#include <vouch/conformance/clause.hpp>
#include <vouch/conformance/detail/steps.hpp>
#include <vouch/conformance/detail/trial.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace lane_checks {

struct standing_in {
    time_point due = at(0);
    std::string lane = "a";
    std::string queue = "q";
};

inline void put_in(any_store& store, std::uint64_t n, const standing_in& where = {}) {
    put(store, draft_of(n, {.queue = where.queue, .lane = where.lane, .due_at = where.due}));
}

/// Entries 1, 2 and 3 in one lane, all due.
inline void put_three(any_store& store) {
    for (std::uint64_t n = 1; n <= 3; ++n) {
        put_in(store, n);
    }
}

inline void one_at_a_time(trial& t) {
    auto store = t.open();
    put_in(store, 3);
    const std::array together{draft_of(1, {.lane = "a"}), draft_of(4, {.lane = "a"}), draft_of(2, {.lane = "a"})};
    std::ignore = transact(store, [&](auto& tx) { return tx.enqueue(together, at(0)); });
    for (const std::uint64_t n : {3U, 1U, 4U, 2U}) { // by sequence, not by id
        const auto ticket = take_one(store, at(0));
        t.equal(ticket.id, id_of(n), "claimed from the lane");
        t.equal(numbers(take(store, at(50))), list_of{}, "claimed beside it");
        std::ignore = settle(store, ticket, succeed{}, at(0));
    }
}

inline void future_head_holds(trial& t) {
    auto store = t.open();
    put_in(store, 1, {.due = at(50)});
    put_in(store, 2, {.due = at(10)});
    t.equal(store.next_due("q"), std::optional{at(50)}, "next_due");
    t.equal(numbers(take(store, at(49))), list_of{}, "claimed while the head is not due");
    t.equal(numbers(take(store, at(50))), list_of{1}, "claimed when the head is due");
}

inline void settled_head_holds(trial& t) {
    for (const outcome& o : {outcome{retry{"e", at(50)}}, outcome{release{at(50)}}, outcome{advance{"p", at(50)}}}) {
        auto store = t.open(t.fresh_location());
        put_three(store);
        std::ignore = settle(store, take_one(store, at(0)), o, at(1));
        t.equal(store.next_due("q"), std::optional{at(50)}, "next_due");
        t.equal(numbers(take(store, at(49))), list_of{}, "claimed while the head waits for its next attempt");
        t.equal(numbers(take(store, at(50))), list_of{1}, "claimed when the head is due again");
    }
}

inline void lapsed_head_holds(trial& t) {
    auto store = t.open();
    put_three(store);
    std::ignore = take_one(store, at(0));
    t.equal(store.next_due("q"), std::optional{at(100)}, "next_due, the end of the head's lease");
    t.equal(numbers(take(store, at(200), {.limit = 2})), list_of{1}, "claimed when the head's lease is over");
}

/// A way to end entry 1, the head.
struct way {
    std::string_view name;
    void (*end)(any_store& store);
};

inline constexpr std::array ways{
    way{"succeed", [](any_store& s) { std::ignore = settle(s, take_one(s, at(0)), succeed{}, at(50)); }},
    way{"bury",
        [](any_store& s) {
            std::ignore = settle(s, take_one(s, at(0)), bury{"e", {}}, at(50));
        }},
    way{"succeed after its lease",
        [](any_store& s) { std::ignore = settle(s, take_one(s, at(0)), succeed{}, at(150)); }},
    way{"cancel while pending", [](any_store& s) { cancel(s, id_of(1), at(50)); }},
    way{"cancel while retrying",
        [](any_store& s) {
            std::ignore = settle(s, take_one(s, at(0)), retry{"e", at(900)}, at(0));
            cancel(s, id_of(1), at(50));
        }},
    way{"cancel after its lease",
        [](any_store& s) {
            std::ignore = take_one(s, at(0));
            cancel(s, id_of(1), at(100));
        }},
};

inline void every_end_opens(trial& t) {
    for (const auto& w : ways) {
        auto store = t.open(t.fresh_location());
        put_in(store, 1);
        put_in(store, 2, {.due = at(-7)});
        put_in(store, 3, {.due = at(-8)});
        const auto next = get(store, 2);
        w.end(store);
        const auto head = "the head ended by " + std::string(w.name) + ": ";
        t.equal(get(store, 2), next, head + "the next entry as it was");
        t.equal(store.next_due("q"), std::optional{at(-7)}, head + "next_due, the due time of the next");
        t.equal(numbers(take(store, at(0))), list_of{2}, head + "claimed");
    }
}

inline void in_the_same_transaction(trial& t) {
    auto store = t.open();
    put_three(store);
    const auto ticket = take_one(store, at(0));
    const auto before = snapshot_of(store);
    {
        auto tx = store.begin();
        std::ignore = settle_in(tx, ticket, succeed{}, at(0));
        t.equal(tx.next_due("q"), std::optional{at(0)}, "next_due in the transaction that ended the head");
        t.equal(numbers(tx.claim(request(at(0)))), list_of{2}, "claimed in the transaction that ended the head");
        t.equal(tx.cancel(id_of(2), "why", at(100)), verdict::applied, "the cancel of the next");
        t.equal(numbers(tx.claim(request(at(0)))), list_of{3}, "claimed after that");
    }
    unchanged(store, before, "the lane after the rollback");
    t.equal(numbers(take(store, at(0))), list_of{}, "claimed behind the head whose end was rolled back");
}

inline void blocked_are_counted(trial& t) {
    auto store = t.open();
    put_three(store);
    std::ignore = take_one(store, at(0));
    const auto before = snapshot_of(store);
    t.equal(store.counts("q")[state::pending], 2U, "pending entries");
    t.equal(numbers(store.list(query::live("q"))), list_of{1, 2, 3}, "the list of the live");
    t.equal(store.next_due("q"), std::optional{at(100)}, "next_due, the end of the head's lease");
    t.equal(numbers(take(store, at(90), {.only = id_of(2)})), list_of{}, "claimed by id behind the head");
    t.equal(numbers(take(store, at(900), {.only = id_of(3)})), list_of{}, "claimed by id behind a lapsed head");
    unchanged(store, before, "claims do not change blocked entries");
}

inline void due_time_kept(trial& t) {
    auto store = t.open();
    put_in(store, 1, {.due = at(10)});
    put_in(store, 2, {.due = at(80)});
    put_in(store, 3, {.due = at(5)});
    std::ignore = settle(store, take_one(store, at(10)), succeed{}, at(20));
    t.equal(numbers(take(store, at(79))), list_of{}, "claimed one microsecond before the new head is due");
    std::ignore = settle(store, take_one(store, at(80)), succeed{}, at(90));
    put(store, draft_of(4, {.due_at = at(6)}));
    t.equal(store.next_due("q"), std::optional{at(5)}, "next_due");
    t.equal(numbers(take(store, at(90), {.limit = 1})), list_of{3},
            "claimed first, because it has been due for longer");
}

inline void nudge_leaves_blocked(trial& t) {
    auto store = t.open();
    put_in(store, 1, {.due = at(500)});
    put_in(store, 2, {.due = at(900)});
    auto expected = get(store, 2);
    t.equal(nudge(store, id_of(2), at(30)), verdict::applied, "the nudge of a blocked entry");
    t.equal(nudge(store, id_of(2), at(30)), verdict::repeated, "the second nudge of it");
    expected.due_at = expected.updated_at = at(30);
    t.equal(get(store, 2), expected, "the blocked entry after the nudge");
    t.equal(store.next_due("q"), std::optional{at(500)}, "next_due");
    t.equal(numbers(take(store, at(30))), list_of{}, "claimed after the nudge");
    cancel(store, id_of(1), at(31));
    t.equal(numbers(take(store, at(30))), list_of{2}, "claimed when it is the head");
}

inline void blocked_parent(trial& t) {
    auto store = t.open();
    put_in(store, 1, {.due = at(500)});
    put_in(store, 2, {.due = at(900)});
    put_dead(store, draft_of(3, {.parent = id_of(2)}), at(30));
    t.equal(get(store, 2).due_at, at(30), "due_at of the parent");
    t.equal(store.next_due("q"), std::optional{at(500)}, "next_due");
    t.equal(numbers(take(store, at(499))), list_of{}, "claimed while the parent is blocked");
}

inline void cancel_in_the_middle(trial& t) {
    auto store = t.open();
    put_three(store);
    const auto ticket = take_one(store, at(0));
    t.equal(cancel(store, id_of(2), at(1)), verdict::applied, "the cancel of a blocked entry");
    t.equal(store.next_due("q"), std::optional{at(100)}, "next_due, the end of the head's lease");
    t.equal(numbers(take(store, at(1))), list_of{}, "claimed while the head is held");
    std::ignore = settle(store, ticket, succeed{}, at(2));
    t.equal(numbers(take(store, at(2))), list_of{3}, "claimed when the head has ended");
}

inline void scope(trial& t) {
    auto store = t.open();
    put_in(store, 1);
    put_in(store, 2);
    put_in(store, 3, {.lane = "b"});
    put_in(store, 4, {.queue = "r"});
    put(store, draft_of(5));
    put(store, draft_of(6));
    t.equal(numbers(take(store, at(0))), list_of{1, 3, 5, 6}, "claimed from one queue: lanes a and b, and no lane");
    t.equal(numbers(take(store, at(0), {.queue = "r"})), list_of{4}, "claimed from the lane a of another queue");
}

inline void limit_counts_heads(trial& t) {
    auto store = t.open();
    put_in(store, 1, {.due = at(30)});
    put_in(store, 2, {.due = at(10)});
    put_in(store, 3, {.due = at(20), .lane = "b"});
    put_in(store, 4, {.due = at(25), .lane = "c"});
    t.equal(numbers(take(store, at(50), {.limit = 2})), list_of{3, 4}, "the two heads that have been due for longest");
    t.equal(numbers(take(store, at(50))), list_of{1}, "the remaining head");
}

inline void begins_anew(trial& t) {
    auto store = t.open();
    for (std::uint64_t n = 1; n <= 3; ++n) {
        put_in(store, n);
        const auto ticket = take_one(store, at(0));
        t.equal(ticket.id, id_of(n), "claimed from a lane whose earlier entries have ended");
        std::ignore = settle(store, ticket, n == 2 ? outcome{bury{"e", {}}} : outcome{succeed{}}, at(0));
    }
    put_in(store, 4, {.due = at(70)});
    t.equal(store.next_due("q"), std::optional{at(70)}, "next_due");
}

inline void rolled_back_head(trial& t) {
    auto store = t.open();
    {
        auto tx = store.begin();
        const std::array never{draft_of(1, {.lane = "a", .due_at = at(500)})};
        std::ignore = tx.enqueue(never, at(0));
    }
    put_in(store, 2);
    t.equal(numbers(take(store, at(0))), list_of{2}, "claimed from a lane whose first entry was rolled back");
}

inline void successor_at_the_end(trial& t) {
    auto store = t.open();
    put_three(store);
    cancel(store, id_of(1), at(0));
    put(store, draft_of(4, {.predecessor = id_of(1)}));
    put_in(store, 5);
    for (const std::uint64_t n : {2U, 3U, 4U, 5U}) {
        const auto ticket = take_one(store, at(0));
        t.equal(ticket.id, id_of(n), "claimed from the lane");
        std::ignore = settle(store, ticket, succeed{}, at(0));
    }
}

} // namespace lane_checks

inline constexpr std::array lanes{
    clause{"LANE-01", layer::examples, level::may, needs::lanes,
           "At most one entry of a lane is claimed at a time, in the order of sequences; a batch of drafts keeps its "
           "order.",
           lane_checks::one_at_a_time},
    clause{"LANE-02", layer::examples, level::may, needs::lanes,
           "A head that is not due yet blocks its lane, even if entries behind it are due.",
           lane_checks::future_head_holds},
    clause{"LANE-03", layer::examples, level::may, needs::lanes,
           "A head that is retried, released or advanced blocks its lane until its next attempt.",
           lane_checks::settled_head_holds},
    clause{"LANE-04", layer::examples, level::may, needs::lanes,
           "A head whose lease is over is taken over before any entry behind it is claimed.",
           lane_checks::lapsed_head_holds},
    clause{"LANE-05", layer::examples, level::may, needs::lanes,
           "When the head ends in any way, the next entry becomes the head, and no later one.",
           lane_checks::every_end_opens},
    clause{"LANE-06", layer::examples, level::may, needs::lanes,
           "The next entry becomes the head in the transaction that ends the old head; a rollback undoes both.",
           lane_checks::in_the_same_transaction},
    clause{"LANE-07", layer::examples, level::may, needs::lanes,
           "Blocked entries are counted and listed, but do not affect next_due and are never claimed, not even by id.",
           lane_checks::blocked_are_counted},
    clause{"LANE-08", layer::examples, level::may, needs::lanes,
           "A blocked entry keeps its due_at until it becomes the head.", lane_checks::due_time_kept},
    clause{"LANE-09", layer::examples, level::may, needs::lanes,
           "A nudge changes the due_at of a blocked entry, which stays blocked.", lane_checks::nudge_leaves_blocked},
    clause{"LANE-10", layer::examples, level::may, needs::lanes,
           "A blocked parent is nudged when its child ends, and stays blocked.", lane_checks::blocked_parent},
    clause{"LANE-11", layer::examples, level::may, needs::lanes,
           "A blocked entry can be cancelled; the head does not change, and the dead entry never becomes the head.",
           lane_checks::cancel_in_the_middle},
    clause{"LANE-12", layer::examples, level::may, needs::lanes,
           "A lane belongs to its queue; other lanes, other queues and entries without a lane do not wait for it.",
           lane_checks::scope},
    clause{"LANE-13", layer::examples, level::may, needs::lanes,
           "The limit of a claim counts heads only; blocked entries do not use it up, however long they have been due.",
           lane_checks::limit_counts_heads},
    clause{"LANE-14", layer::examples, level::may, needs::lanes,
           "A lane whose entries have all ended starts again with its next entry.", lane_checks::begins_anew},
    clause{"LANE-15", layer::examples, level::may, needs::lanes,
           "An entry whose enqueue is rolled back blocks no lane.", lane_checks::rolled_back_head},
    clause{"LANE-16", layer::examples, level::may, needs::lanes,
           "The successor of a dead entry joins the end of its predecessor's lane.", lane_checks::successor_at_the_end},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch
