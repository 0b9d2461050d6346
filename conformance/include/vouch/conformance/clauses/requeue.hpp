// SPDX-License-Identifier: MIT
// Requeue: a dead entry gets at most one successor, which is an entry of its own.
#pragma once

#include <array>
#include <cstdint>
#include <tuple>
#include <vector>

#include <vouch/conformance/clause.hpp>
#include <vouch/conformance/clauses/enqueue.hpp>
#include <vouch/conformance/detail/model/model.hpp>
#include <vouch/conformance/detail/steps.hpp>
#include <vouch/conformance/detail/trial.hpp>
#include <vouch/contract/requeue.hpp>
#include <vouch/contract/transact.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace requeue_checks {

using namespace enqueue_checks;

/// A draft with a value in every field that a successor might copy.
[[nodiscard]] inline draft rich(std::uint64_t n, const capabilities& can) {
    return draft_of(n, {.topic = "topic",
                        .payload = "payload",
                        .key = "k",
                        .group = can.groups ? "g" : "",
                        .lane = can.lanes ? "lane" : "",
                        .due_at = at(-5),
                        .expires_at = at(1000),
                        .attempts_max = 4,
                        .trail = {id_of(50), id_of(51)},
                        .headers = {{"a", "1"}, {"a", "2"}},
                        .progress = "first step"});
}

/// Stores such an entry, which dies after two failures with more progress than its draft had.
inline void put_buried(any_store& store, const capabilities& can) {
    put(store, rich(1, can));
    settle(store, take_one(store, at(0)), retry{"once", at(0)});
    settle(store, take_one(store, at(0)), advance{"second step", at(0)});
    settle(store, take_one(store, at(0)), bury{"twice", "reply"});
}

/// The successor that this draft must give.
inline void succeeds_rich(trial& t, const any_store& store, draft drafted, time_point now) {
    const auto seen = get(store, drafted.id.low);
    const auto dead = get(store, 1);
    model m;
    auto before = drafted;
    before.predecessor = {};
    std::ignore = m.enqueue(before, now);
    auto expected = *m.find(drafted.id);
    expected.predecessor = id_of(1);
    expected.key = dead.key;
    expected.group = dead.group;
    expected.lane = dead.lane;
    expected.generation = 2;
    expected.sequence = seen.sequence;
    t.equal(seen, expected, "the successor");
    t.expect(seen.sequence > dead.sequence, "the successor has a new sequence");
}

inline void takes_over(trial& t) {
    auto store = t.open();
    put_buried(store, t.can());
    const auto d = draft_of(2, {.topic = "other", .payload = "new", .predecessor = id_of(1), .progress = "own"});
    t.equal(put(store, d, at(60)), inserted(2), "the successor of a dead entry");
    succeeds_rich(t, store, d, at(60));
    t.equal(get(store, 2).key, "k", "the key that is taken over");
}

inline void dead_unchanged(trial& t) {
    auto store = t.open();
    put_buried(store, t.can());
    const auto before = get(store, 1);
    put(store, draft_of(2, {.predecessor = id_of(1)}), at(60));
    t.equal(get(store, 1), before, "the dead entry after it got a successor");
    settle(store, take_one(store, at(60)), succeed{}, at(60));
    t.equal(get(store, 1), before, "the dead entry after its successor succeeded");
}

inline void one_successor(trial& t) {
    auto store = t.open();
    put_dead(store, draft_of(1));
    const std::vector batch{draft_of(2, {.predecessor = id_of(1)}), draft_of(3, {.predecessor = id_of(1)})};
    t.equal(vouch::enqueue(store, batch, at(0)), receipts{inserted(2), duplicate(2)}, "two successors in a batch");
    const auto before = snapshot_of(store);
    t.equal(put(store, draft_of(3, {.predecessor = id_of(1)}), at(5)), duplicate(2), "a second successor");
    unchanged(store, before, "a second successor writes nothing");
    cancel(store, id_of(2));
    t.equal(put(store, draft_of(3, {.predecessor = id_of(1)})), duplicate(2),
            "a second successor when the first is dead");
}

inline void refused_unless_dead(trial& t) {
    for (const auto s : {state::pending, state::retrying, state::claimed, state::succeeded}) {
        auto store = t.open(t.fresh_location());
        put_as(store, draft_of(1, {.key = "k"}), s);
        const auto before = snapshot_of(store);
        t.equal(put(store, draft_of(2, {.predecessor = id_of(1)}), at(5)), refused,
                "a successor of an entry that is " + show(s));
        unchanged(store, before, "a refused successor writes nothing");
    }
}

inline void refused_if_absent(trial& t) {
    auto store = t.open();
    put_dead(store, draft_of(1));
    const auto before = snapshot_of(store);
    t.equal(put(store, draft_of(2, {.queue = "r", .predecessor = id_of(1)})), refused, "a successor in another queue");
    t.equal(put(store, draft_of(2, {.predecessor = id_of(9)})), refused, "a successor of an absent entry");
    t.equal(put(store, draft_of(2, {.predecessor = id_of(2)})), refused, "a successor of itself");
    unchanged(store, before, "a refused successor writes nothing");
    t.equal(put(store, draft_of(2, {.predecessor = id_of(1)})), inserted(2), "a successor in the same queue");
}

inline void refusal_stops_nothing(trial& t) {
    auto store = t.open();
    put_dead(store, draft_of(1));
    const std::vector batch{draft_of(2, {.predecessor = id_of(9)}), draft_of(3), draft_of(4, {.predecessor = id_of(3)}),
                            draft_of(5, {.predecessor = id_of(1)})};
    t.equal(vouch::enqueue(store, batch, at(0)), receipts{refused, inserted(3), refused, inserted(5)},
            "a batch with refusals");
    t.equal(numbers(store.list(query::all("q"))), list_of{1, 3, 5}, "stored after that");
}

inline void generations_count(trial& t) {
    auto store = t.open();
    put_dead(store, draft_of(1, {.key = "k"}));
    for (const std::uint64_t n : {2U, 3U, 4U}) {
        t.equal(put(store, draft_of(n, {.predecessor = id_of(n - 1)})), inserted(n), "the next generation");
        t.equal(get(store, n).generation, n, "its generation");
        cancel(store, id_of(n));
    }
    t.equal(numbers(store.list(query::keyed("q", "k"))), list_of{1, 2, 3, 4}, "all generations of the key");
    t.equal(put(store, draft_of(9, {.predecessor = id_of(1)})), duplicate(2), "another successor of the first");
}

inline void stored_id_comes_first(trial& t) {
    auto store = t.open();
    put_dead(store, draft_of(1));
    put(store, draft_of(5));
    const auto before = snapshot_of(store);
    t.equal(put(store, draft_of(5, {.predecessor = id_of(1)})), duplicate(5), "a stored id as successor");
    t.equal(put(store, draft_of(1, {.predecessor = id_of(1)})), duplicate(1), "the dead entry's own id as successor");
    t.equal(put(store, draft_of(5, {.predecessor = id_of(9)})), duplicate(5), "a stored id for an absent predecessor");
    unchanged(store, before, "these write nothing");
    t.equal(put(store, draft_of(2, {.predecessor = id_of(1)})), inserted(2), "a successor after all");
}

inline void dies_and_is_replaced_at_once(trial& t) {
    auto store = t.open();
    put(store, draft_of(1, {.key = "k"}));
    auto tx = store.begin();
    t.equal(tx.cancel(id_of(1), "e", at(0)), verdict::applied, "cancelled");
    const std::array drafts{draft_of(2, {.predecessor = id_of(1)})};
    t.equal(tx.enqueue(drafts, at(0)), receipts{inserted(2)},
            "the successor of an entry that died in this transaction");
    tx.commit();
    t.equal(numbers(store.list(query::keyed("q", "k"))), list_of{1, 2}, "both generations");
}

inline void requeue_starts_afresh(trial& t) {
    auto store = t.open();
    put_buried(store, t.can());
    t.equal(
        transact(store,
                 [](auto& tx) { return vouch::requeue(tx, {.dead = id_of(1), .successor = id_of(2), .now = at(60)}); }),
        inserted(2), "requeued");
    auto d = rich(2, t.can());
    d.due_at.reset();
    d.expires_at.reset();
    d.progress.clear();
    succeeds_rich(t, store, d, at(60));
}

inline void resume_goes_on(trial& t) {
    auto store = t.open();
    put_buried(store, t.can());
    t.equal(
        transact(store,
                 [](auto& tx) { return vouch::resume(tx, {.dead = id_of(1), .successor = id_of(2), .now = at(60)}); }),
        inserted(2), "resumed");
    auto d = rich(2, t.can());
    d.due_at.reset();
    d.expires_at.reset();
    d.progress = "second step";
    succeeds_rich(t, store, d, at(60));
}

inline void parented_is_refused(trial& t) {
    auto store = t.open();
    put(store, draft_of(1, {.due_at = at(50)}));
    put_dead(store, draft_of(2, {.parent = id_of(1)}));
    const auto before = snapshot_of(store);
    t.equal(
        transact(store,
                 [](auto& tx) { return vouch::requeue(tx, {.dead = id_of(2), .successor = id_of(3), .now = at(60)}); }),
        refused, "requeue of an entry with a parent");
    t.equal(
        transact(store,
                 [](auto& tx) { return vouch::resume(tx, {.dead = id_of(2), .successor = id_of(3), .now = at(60)}); }),
        refused, "resume of an entry with a parent");
    unchanged(store, before, "a refused requeue writes nothing");
}

inline void behind_in_its_lane(trial& t) {
    auto store = t.open();
    put(store, draft_of(1, {.lane = "lane"}));
    put(store, draft_of(2, {.lane = "lane", .due_at = at(50)}));
    cancel(store, id_of(1));
    put(store, draft_of(3, {.predecessor = id_of(1)}), at(0));
    t.equal(store.next_due("q"), at(50), "next_due while the successor is behind the head of its lane");
    t.equal(numbers(take(store, at(50))), list_of{2}, "claimed from the lane");
    cancel(store, id_of(2), at(1000));
    t.equal(numbers(take(store, at(1000))), list_of{3}, "claimed once the head has ended");
}

inline void lapses_end_with_the_dead(trial& t) {
    auto store = t.open();
    put(store, draft_of(1));
    std::ignore = take_lapsed(store, 1, 2);
    cancel(store, id_of(1), at(300));
    put(store, draft_of(2, {.predecessor = id_of(1)}), at(300));
    t.equal(get(store, 2).lapses, 0U, "lapses of the successor");
    std::ignore = take_one(store, at(300));
    std::ignore = take_one(store, at(400));
    t.equal(get(store, 2).attempts, 1U, "attempts after its first lapse");
}

} // namespace requeue_checks

inline constexpr std::array requeues{
    clause{"REQUEUE-01", layer::examples, level::must, needs::nothing,
           "The successor of a dead entry takes over its key, group and lane, has the next generation, a new sequence "
           "and no attempts, and is due now; its other fields come from its draft.",
           requeue_checks::takes_over},
    clause{"REQUEUE-02", layer::examples, level::must, needs::nothing,
           "A dead entry does not change when it gets a successor, nor when the successor ends.",
           requeue_checks::dead_unchanged},
    clause{
        "REQUEUE-03", layer::examples, level::must, needs::nothing,
        "A dead entry has at most one successor; a second draft is a duplicate of the first successor, live or dead.",
        requeue_checks::one_successor},
    clause{"REQUEUE-04", layer::examples, level::must, needs::nothing,
           "A successor is refused if its predecessor is not dead.", requeue_checks::refused_unless_dead},
    clause{"REQUEUE-05", layer::examples, level::must, needs::nothing,
           "A successor is refused if its predecessor is not stored or belongs to another queue.",
           requeue_checks::refused_if_absent},
    clause{"REQUEUE-06", layer::examples, level::must, needs::nothing,
           "A refused draft affects neither the other drafts of its batch nor the transaction.",
           requeue_checks::refusal_stops_nothing},
    clause{"REQUEUE-07", layer::examples, level::must, needs::nothing,
           "Every successor increases the generation by one, and all generations share the key.",
           requeue_checks::generations_count},
    clause{"REQUEUE-08", layer::examples, level::must, needs::nothing,
           "A successor whose id is stored is a duplicate of that entry; its predecessor stays without a successor.",
           requeue_checks::stored_id_comes_first},
    clause{"REQUEUE-09", layer::examples, level::must, needs::nothing,
           "An entry can die and be replaced in one transaction.", requeue_checks::dies_and_is_replaced_at_once},
    clause{"REQUEUE-10", layer::examples, level::must, needs::nothing,
           "Requeue creates a successor with the dead entry's content, but without its progress and expiry.",
           requeue_checks::requeue_starts_afresh},
    clause{"REQUEUE-11", layer::examples, level::must, needs::nothing,
           "Resume creates a successor that continues from the dead entry's last checkpoint.",
           requeue_checks::resume_goes_on},
    clause{"REQUEUE-12", layer::examples, level::must, needs::nothing,
           "Requeue and resume refuse an entry that has a parent.", requeue_checks::parented_is_refused},
    clause{"REQUEUE-13", layer::examples, level::may, needs::lanes,
           "A successor joins the end of its lane, by its new sequence.", requeue_checks::behind_in_its_lane},
    clause{"REQUEUE-14", layer::examples, level::must, needs::nothing,
           "A successor starts with lapses 0, whatever the dead entry had.", requeue_checks::lapses_end_with_the_dead},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch
