// SPDX-License-Identifier: MIT
// Parents: when an entry ends, its parent is nudged.
#pragma once

#include <array>
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

namespace parent_checks {

/// Enqueues entry 1 in the queue "r", due at 900, and its child, entry 2, in the queue "q".
inline void put_family(any_store& store) {
    put(store, draft_of(1, {.queue = "r", .payload = "p", .due_at = at(900), .progress = "begun"}));
    put(store, draft_of(2, {.parent = id_of(1)}));
}

/// Claims entry 2 at 0 until 100.
[[nodiscard]] inline ticket take_child(any_store& store) { return take_one(store, at(0), {.only = id_of(2)}); }

/// Ends entry 2 at 50.
inline void end_child(any_store& store) {
    trial::equal(settle(store, take_child(store), succeed{}, at(50)), settlement{verdict::applied}, "the child's end");
}

/// A way to end entry 2 at 50.
struct way {
    std::string_view name;
    void (*end)(any_store& store);
};

[[nodiscard]] inline ticket take_briefly(any_store& store) {
    return take_one(store, at(0), {.lease = duration{10}, .only = id_of(2)});
}

inline constexpr std::array ways{
    way{"succeed", [](any_store& s) { std::ignore = settle(s, take_child(s), succeed{}, at(50)); }},
    way{"bury",
        [](any_store& s) {
            std::ignore = settle(s, take_child(s), bury{"e", {}}, at(50));
        }},
    way{"succeed after its lease", [](any_store& s) { std::ignore = settle(s, take_briefly(s), succeed{}, at(50)); }},
    way{"cancel while pending", [](any_store& s) { cancel(s, id_of(2), at(50)); }},
    way{"cancel while retrying",
        [](any_store& s) {
            std::ignore = settle(s, take_child(s), retry{"e", at(700)}, at(5));
            cancel(s, id_of(2), at(50));
        }},
    way{"cancel after its lease",
        [](any_store& s) {
            std::ignore = take_briefly(s);
            cancel(s, id_of(2), at(50));
        }},
};

inline void every_end_wakes(trial& t) {
    for (const auto& w : ways) {
        auto store = t.open(t.fresh_location());
        put_family(store);
        auto expected = get(store, 1);
        w.end(store);
        expected.due_at = expected.updated_at = at(50);
        t.equal(get(store, 1), expected, "the parent when its child has ended by " + std::string(w.name));
        t.equal(store.next_due("r"), std::optional{at(50)}, "next_due of the parent's queue");
    }
}

inline void nothing_else_wakes(trial& t) {
    auto store = t.open();
    put_family(store);
    const auto before = get(store, 1);
    for (const outcome& o : {outcome{retry{"e", at(0)}}, outcome{release{at(0)}}, outcome{advance{"p", at(0)}}}) {
        const auto ticket = take_child(store);
        std::ignore = extend(store, ticket, at(5), duration{200});
        std::ignore = nudge(store, id_of(2), at(5));
        std::ignore = settle(store, ticket, o, at(10));
    }
    t.equal(get(store, 1), before, "the parent of a child that was claimed, retried, released, advanced and nudged");
}

inline void refused_ends_do_not_wake(trial& t) {
    auto store = t.open();
    put_family(store);
    end_child(store);
    const auto parent = take_one(store, at(60), {.queue = "r"});
    std::ignore = settle(store, parent, release{at(900)}, at(60));
    const auto before = snapshot_of(store);
    t.equal(settle(store, {id_of(2), 1}, succeed{}, at(70)), settlement{verdict::repeated}, "the second settle");
    t.equal(settle(store, {id_of(2), 9}, bury{}, at(70)), settlement{verdict::stale}, "the settle with another epoch");
    t.equal(cancel(store, id_of(2), at(70)), verdict::stale, "the cancel");
    unchanged(store, before, "a settle or cancel that is not applied does not nudge the parent");
}

inline void retrying_parent(trial& t) {
    auto store = t.open();
    put(store, draft_of(1, {.queue = "r"}));
    put(store, draft_of(2, {.parent = id_of(1)}));
    std::ignore = settle(store, take_one(store, at(0), {.queue = "r"}), retry{"e", at(900)}, at(0));
    auto expected = get(store, 1);
    end_child(store);
    expected.due_at = expected.updated_at = at(50);
    t.equal(get(store, 1), expected, "the retrying parent when its child has ended");
}

inline void claimed_parent(trial& t) {
    for (const auto& w : ways) {
        auto store = t.open(t.fresh_location());
        put_family(store);
        const auto parent = take_one(store, at(900), {.queue = "r"});
        auto expected = get(store, 1);
        w.end(store);
        expected.woken = true;
        expected.updated_at = at(50);
        t.equal(get(store, 1), expected, "the claimed parent when its child has ended by " + std::string(w.name));
        std::ignore = settle(store, parent, release{at(2000)}, at(950));
        t.equal(get(store, 1).due_at, at(950), "due_at of the parent when its claim has ended");
    }
}

inline void due_parent(trial& t) {
    for (const auto due : {at(49), at(50)}) {
        auto store = t.open(t.fresh_location());
        put(store, draft_of(1, {.queue = "r", .due_at = due}));
        put(store, draft_of(2, {.parent = id_of(1)}));
        const auto before = get(store, 1);
        end_child(store);
        t.equal(get(store, 1), before, "the parent that is due already");
    }
}

inline void terminal_parent(trial& t) {
    for (const outcome& o : {outcome{succeed{"r"}}, outcome{bury{"e", "r"}}}) {
        auto store = t.open(t.fresh_location());
        put_family(store);
        std::ignore = settle(store, take_one(store, at(900), {.queue = "r"}), o, at(901));
        const auto before = get(store, 1);
        end_child(store);
        t.equal(get(store, 1), before, "the parent that ended before its child");
    }
}

inline void absent_parent(trial& t) {
    for (const auto& w : ways) {
        auto store = t.open(t.fresh_location());
        put(store, draft_of(2, {.parent = id_of(9)}));
        put(store, draft_of(3, {.due_at = at(900)}));
        const auto other = get(store, 3);
        w.end(store);
        t.expect(is_terminal(get(store, 2).state), "a child without a parent ends by " + std::string(w.name));
        t.expect(!store.find(id_of(9)), "the parent is still absent");
        t.equal(get(store, 3), other, "an entry that is not the parent");
    }
}

inline void parent_put_later(trial& t) {
    auto store = t.open();
    put(store, draft_of(2, {.parent = id_of(1)}));
    put(store, draft_of(1, {.queue = "r", .due_at = at(900)}));
    end_child(store);
    t.equal(get(store, 1).due_at, at(50), "due_at of the parent that was enqueued after its child");
}

inline void own_parent(trial& t) {
    auto store = t.open();
    put(store, draft_of(2, {.parent = id_of(2)}));
    const auto ticket = take_child(store);
    auto expected = get(store, 2);
    expected.state = state::succeeded;
    expected.result = "r";
    expected.lease_until.reset();
    expected.updated_at = at(50);
    t.equal(settle(store, ticket, succeed{"r"}, at(50)), settlement{verdict::applied}, "the settle");
    t.equal(get(store, 2), expected, "the entry that is its own parent");
}

inline void only_the_parent(trial& t) {
    auto store = t.open();
    put(store, draft_of(3, {.queue = "r", .due_at = at(900)}));
    put(store, draft_of(1, {.queue = "r", .parent = id_of(3), .due_at = at(900)}));
    put(store, draft_of(2, {.parent = id_of(1)}));
    put(store, draft_of(4, {.parent = id_of(1), .due_at = at(900)}));
    auto expected = snapshot_of(store).found; // 1, 2, 3, 4
    end_child(store);
    expected[0].due_at = expected[0].updated_at = at(50);
    expected[1] = get(store, 2);
    t.equal(snapshot_of(store).found, expected, "the parent, and neither its own parent nor its other child");
}

inline void every_child_wakes(trial& t) {
    auto store = t.open();
    put_family(store);
    put(store, draft_of(3, {.parent = id_of(1)}));
    end_child(store);
    const auto parent = take_one(store, at(60), {.queue = "r"});
    std::ignore = settle(store, parent, release{at(900)}, at(60));
    cancel(store, id_of(3), at(70));
    t.equal(get(store, 1).due_at, at(70), "due_at of the parent when the second child has ended");
}

inline void in_the_same_transaction(trial& t) {
    auto store = t.open();
    put_family(store);
    const auto ticket = take_child(store);
    const auto before = snapshot_of(store);
    {
        auto tx = store.begin();
        std::ignore = settle_in(tx, ticket, succeed{}, at(50));
        t.equal(get(tx, 1).due_at, at(50), "due_at of the parent in the transaction that ended the child");
        t.equal(numbers(tx.claim(request(at(50), {.queue = "r"}))), list_of{1}, "claimed in that transaction");
    }
    unchanged(store, before, "rolled back, neither child nor parent has changed");
}

} // namespace parent_checks

inline constexpr std::array parents{
    clause{"PARENT-01", layer::examples, level::must, needs::nothing,
           "When an entry ends by succeed, bury or cancel, its parent becomes due now, in whatever queue it is.",
           parent_checks::every_end_wakes},
    clause{"PARENT-02", layer::examples, level::must, needs::nothing,
           "A claim, extend, nudge, retry, release or advance of an entry does not nudge its parent.",
           parent_checks::nothing_else_wakes},
    clause{"PARENT-03", layer::examples, level::must, needs::nothing,
           "A settle or cancel that is not applied does not nudge the parent.",
           parent_checks::refused_ends_do_not_wake},
    clause{"PARENT-04", layer::examples, level::must, needs::nothing, "A retrying parent is nudged like a pending one.",
           parent_checks::retrying_parent},
    clause{"PARENT-05", layer::examples, level::must, needs::nothing,
           "A parent that is claimed when its child ends gets a wake mark, and is due when its claim ends.",
           parent_checks::claimed_parent},
    clause{"PARENT-06", layer::examples, level::must, needs::nothing,
           "A parent that is already due does not change, updated_at included.", parent_checks::due_parent},
    clause{"PARENT-07", layer::examples, level::must, needs::nothing,
           "A parent that ended before its child does not change.", parent_checks::terminal_parent},
    clause{"PARENT-08", layer::examples, level::must, needs::nothing,
           "An entry whose parent is absent ends like any other entry.", parent_checks::absent_parent},
    clause{"PARENT-09", layer::examples, level::must, needs::nothing,
           "A parent that is enqueued after its child is nudged all the same.", parent_checks::parent_put_later},
    clause{"PARENT-10", layer::examples, level::must, needs::nothing,
           "An entry that is its own parent ends like any other entry.", parent_checks::own_parent},
    clause{"PARENT-11", layer::examples, level::must, needs::nothing,
           "Only the parent is nudged, not the parent's parent or another child.", parent_checks::only_the_parent},
    clause{"PARENT-12", layer::examples, level::must, needs::nothing,
           "Every child that ends nudges the parent, not only the first or the last.",
           parent_checks::every_child_wakes},
    clause{"PARENT-13", layer::examples, level::must, needs::nothing,
           "The parent is nudged in the transaction that ends its child; a rollback undoes both.",
           parent_checks::in_the_same_transaction},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch
