// SPDX-License-Identifier: MIT
// Purge: removes terminal entries that ended before a time, oldest first, and none that a live entry needs.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include <vouch/conformance/clause.hpp>
#include <vouch/conformance/clauses/enqueue.hpp>
#include <vouch/conformance/detail/steps.hpp>
#include <vouch/conformance/detail/trial.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace purge_checks {

using namespace enqueue_checks;

[[nodiscard]] inline purge_request before(time_point when, std::size_t limit = 1000) {
    return {.queue = "q", .before = when, .limit = limit};
}

[[nodiscard]] inline list_of left(const any_store& store) { return numbers(store.list(query::all("q"))); }

/// Entries 1, 2 and 3 are generations of one entry; the last ended at(30).
inline void put_three_generations(any_store& store) {
    put_dead(store, draft_of(1, {.key = "k"}), at(10));
    put(store, draft_of(2, {.predecessor = id_of(1)}), at(10));
    cancel(store, id_of(2), at(20));
    put(store, draft_of(3, {.predecessor = id_of(2)}), at(20));
    cancel(store, id_of(3), at(30));
}

inline void removes_and_counts(trial& t) {
    auto store = t.open();
    put_as(store, draft_of(1, {.key = "k", .parent = id_of(20)}), state::dead);
    put_as(store, draft_of(2), state::succeeded);
    put(store, draft_of(3));
    t.equal(purge(store, before(at(1))), 2, "purged");
    t.expect(!store.find(id_of(1)) && !store.find(id_of(2)), "a purged entry is not found");
    t.equal(left(store), list_of{3}, "listed after the purge");
    t.equal(store.list(query::keyed("q", "k")).size() + store.list(query::children(id_of(20))).size() +
                store.list(query::dead("q")).size(),
            0, "listed of the purged by key, parent and as dead");
    t.equal(store.counts("q"), state_counts{{1, 0, 0, 0, 0}}, "the counts after the purge");
    t.equal(purge(store, before(at(1))), 0, "purged by a second purge");
    t.equal(cancel(store, id_of(1)), verdict::unknown, "cancelled after the purge");
}

inline void never_live(trial& t) {
    auto store = t.open();
    put_as(store, draft_of(1), state::pending);
    put_as(store, draft_of(2), state::retrying);
    put_as(store, draft_of(3), state::claimed);
    const auto seen = snapshot_of(store);
    t.equal(purge(store, before(at(1'000'000))), 0, "purged of what is live");
    unchanged(store, seen, "live entries are not purged, however old");
}

inline void boundary(trial& t) {
    auto store = t.open();
    put_dead(store, draft_of(1), at(-1));
    put_dead(store, draft_of(2), at(0));
    put(store, draft_of(3, {.result = ""}), at(-1));
    put(store, draft_of(4, {.result = ""}), at(0));
    t.equal(purge(store, before(at(0))), 2, "purged of what ended one microsecond before");
    t.equal(left(store), list_of{2, 4}, "left: what ended exactly at `before`");
    t.equal(purge(store, before(at(1))), 2, "purged one microsecond later");
}

inline void goes_by_the_end(trial& t) {
    auto store = t.open();
    put(store, draft_of(1, {.due_at = at(-900)}), at(-900));
    cancel(store, id_of(1), at(0));
    put(store, draft_of(2, {.due_at = at(900)}), at(900));
    cancel(store, id_of(2), at(-1));
    t.equal(purge(store, before(at(0))), 1, "purged");
    t.equal(left(store), list_of{1}, "left: what ended later, although it was created and due earlier");
}

inline void oldest_first(trial& t) {
    auto store = t.open();
    const std::array ended{30, 10, 20, 10, 0};
    for (std::uint64_t n = 1; n <= ended.size(); ++n) {
        put_dead(store, draft_of(n), at(ended[n - 1]));
    }
    t.equal(purge(store, before(at(100), 1)), 1, "purged with limit 1");
    t.equal(left(store), list_of{1, 2, 3, 4}, "left after the purge of the entry that ended first");
    t.equal(purge(store, before(at(100), 1)), 1, "purged with limit 1");
    t.equal(left(store), list_of{1, 3, 4}, "left after the first of two that ended together");
    t.equal(purge(store, before(at(100), 2)), 2, "purged with limit 2");
    t.equal(left(store), list_of{1}, "left in the end");
}

inline void limit_is_exact(trial& t) {
    auto store = t.open();
    for (std::uint64_t n = 1; n <= 4; ++n) {
        put_dead(store, draft_of(n));
    }
    const auto seen = snapshot_of(store);
    t.equal(purge(store, before(at(1), 0)), 0, "purged with limit 0");
    unchanged(store, seen, "a purge with limit 0 changes nothing");
    t.equal(purge(store, before(at(1), 3)), 3, "purged with limit 3");
    t.equal(left(store), list_of{4}, "left after limit 3");
    t.equal(purge(store, before(at(1), t.can().limits.batch_max)), 1, "purged with the largest limit");
}

inline void own_queue(trial& t) {
    auto store = t.open();
    put_dead(store, draft_of(1));
    put_dead(store, draft_of(2, {.queue = "r"}));
    t.equal(purge(store, before(at(1))), 1, "purged of \"q\"");
    t.expect(store.find(id_of(2)).has_value(), "the entry of the other queue is still stored");
    t.equal(purge(store, {.queue = "unused", .before = at(1)}), 0, "purged of an unused queue");
}

inline void only_one_state(trial& t) {
    for (const auto s : {state::succeeded, state::dead}) {
        auto store = t.open(t.fresh_location());
        put_as(store, draft_of(1), state::dead);
        put_as(store, draft_of(2), state::succeeded);
        put(store, draft_of(3, {.result = ""}));
        t.equal(purge(store, {.queue = "q", .before = at(1), .state = s}), s == state::dead ? 1 : 2,
                "purged of what is " + show(s));
        t.equal(left(store), s == state::dead ? list_of{2, 3} : list_of{1}, "left is the other state");
    }
}

inline void kept_for_the_group(trial& t) {
    auto store = t.open();
    put_dead(store, draft_of(1, {.group = "g"}));
    put_as(store, draft_of(2, {.group = "g"}), state::succeeded);
    put(store, draft_of(3, {.queue = "r", .group = "g"}));
    put_dead(store, draft_of(4, {.group = "h"}));
    t.equal(purge(store, before(at(1))), 1, "purged while the group has a live member in another queue");
    t.equal(left(store), list_of{1, 2}, "left: the members of that group");
    cancel(store, id_of(3));
    t.equal(purge(store, before(at(1))), 2, "purged when the group has no live member");
}

inline void kept_for_the_child(trial& t) {
    auto store = t.open();
    put_dead(store, draft_of(1));
    put(store, draft_of(2, {.queue = "r", .parent = id_of(1)}));
    put_as(store, draft_of(3), state::succeeded);
    put(store, draft_of(4, {.parent = id_of(3), .due_at = at(900)}));
    t.equal(purge(store, before(at(1))), 0, "purged while their children are live");
    cancel(store, id_of(2));
    t.equal(purge(store, before(at(1))), 1, "purged when one of the children has ended");
    t.equal(left(store), list_of{3, 4}, "left are the other parent and its child");
}

inline void not_kept_for_the_parent(trial& t) {
    auto store = t.open();
    put(store, draft_of(1, {.due_at = at(0)}));
    put_dead(store, draft_of(2, {.parent = id_of(1)}));
    put_dead(store, draft_of(3, {.parent = id_of(3)}));
    t.equal(purge(store, before(at(1))), 2, "purged: entries with a live parent, and one that is its own parent");
    t.equal(left(store), list_of{1}, "left is the parent");
}

inline void not_kept_for_the_lane(trial& t) {
    auto store = t.open();
    put_dead(store, draft_of(1, {.lane = "lane"}));
    put(store, draft_of(2, {.lane = "lane"}));
    put(store, draft_of(3, {.lane = "lane"}));
    t.equal(purge(store, before(at(1))), 1, "purged of a lane");
    t.equal(numbers(take(store, at(1))), list_of{2}, "claimed from the lane after the purge");
}

inline void kept_for_the_successor(trial& t) {
    auto store = t.open();
    put_dead(store, draft_of(1), at(0));
    put(store, draft_of(2, {.predecessor = id_of(1)}), at(0));
    t.equal(purge(store, before(at(900))), 0, "purged while the successor is live");
    cancel(store, id_of(2), at(50));
    t.equal(purge(store, before(at(50))), 0, "purged before the successor's end is long enough ago");
    t.equal(left(store), list_of{1, 2}, "left until then");
    t.equal(purge(store, before(at(51))), 2, "purged together");
}

inline void eldest_generation_first(trial& t) {
    auto store = t.open();
    put_three_generations(store);
    t.equal(purge(store, before(at(100), 1)), 1, "purged with limit 1");
    t.equal(left(store), list_of{2, 3}, "left after the eldest");
    t.equal(get(store, 2).predecessor, id_of(1), "the predecessor of an entry whose predecessor is purged");
    t.equal(purge(store, before(at(100), 1)), 1, "purged with limit 1 again");
    t.equal(left(store), list_of{3}, "left is the newest");
    t.equal(purge(store, before(at(100))), 1, "purged in the end");
}

inline void needed_generations_stay_together(trial& t) {
    auto store = t.open();
    put_three_generations(store);
    put(store, draft_of(4, {.queue = "r", .parent = id_of(2)}));
    t.equal(purge(store, before(at(100))), 0, "purged while one generation has a live child");
    t.equal(left(store), list_of{1, 2, 3}, "left of the generations");
    cancel(store, id_of(4));
    t.equal(purge(store, before(at(100))), 3, "purged when the child has ended");
}

inline void state_of_the_newest(trial& t) {
    auto store = t.open();
    put_dead(store, draft_of(1));
    put(store, draft_of(2, {.predecessor = id_of(1)}));
    settle(store, take_one(store, at(0)), succeed{});
    t.equal(purge(store, {.queue = "q", .before = at(1), .state = state::dead}), 0,
            "purged of the dead: the predecessor of a succeeded entry is kept");
    t.equal(purge(store, {.queue = "q", .before = at(1), .state = state::succeeded}), 2,
            "purged: the succeeded entry and its dead predecessor");
}

inline void needed_do_not_use_the_limit(trial& t) {
    auto store = t.open();
    put_dead(store, draft_of(1), at(0));
    put(store, draft_of(2, {.queue = "r", .parent = id_of(1)}), at(0));
    put_dead(store, draft_of(3), at(10));
    t.equal(purge(store, before(at(20), 1)), 1, "purged with limit 1 when the oldest is still needed");
    t.equal(left(store), list_of{1}, "left: the entry that a live entry needs");
}

inline void id_that_comes_again(trial& t) {
    auto store = t.open();
    put_three_generations(store);
    t.equal(purge(store, before(at(100), 2)), 2, "purged of the generations");
    t.equal(put(store, draft_of(2), at(40)), inserted(2), "a new entry with the id of the purged predecessor");
    t.equal(numbers(store.list(query::keyed("q", "k"))), list_of{3}, "the generations of the key");
    t.equal(purge(store, before(at(100))), 1, "purged: the new entry is not a predecessor");
    t.equal(left(store), list_of{2}, "left is the new entry");
}

inline void no_smaller_limit(trial& t) {
    constexpr std::uint64_t many = 1'100;
    auto store = t.open();
    std::vector<draft> drafts;
    for (std::uint64_t n = 1; n <= many; ++n) {
        drafts.push_back(draft_of(n, {.result = "done"}));
    }
    vouch::enqueue(store, drafts, at(0));
    t.equal(purge(store, before(at(1), many - 1)), many - 1, "purged with a limit one below the number of entries");
    t.equal(left(store), list_of{many}, "left is the newest");
}

} // namespace purge_checks

inline constexpr std::array purges{
    clause{"PURGE-01", layer::examples, level::must, needs::nothing,
           "Purge removes succeeded and dead entries from all reads and returns their number.",
           purge_checks::removes_and_counts},
    clause{"PURGE-02", layer::examples, level::must, needs::nothing,
           "Purge never removes a live entry, however old, not even a claimed one whose lease is over.",
           purge_checks::never_live},
    clause{"PURGE-03", layer::examples, level::must, needs::nothing,
           "Purge removes what ended before `before`, not what ended exactly at it.", purge_checks::boundary},
    clause{"PURGE-04", layer::examples, level::must, needs::nothing,
           "Purge depends on when an entry ended, not on when it was created or due.", purge_checks::goes_by_the_end},
    clause{"PURGE-05", layer::examples, level::must, needs::nothing,
           "Purge removes the oldest entries first: by end, then by sequence.", purge_checks::oldest_first},
    clause{"PURGE-06", layer::examples, level::must, needs::nothing,
           "Purge removes at most `limit` entries; 0 removes none.", purge_checks::limit_is_exact},
    clause{"PURGE-07", layer::examples, level::must, needs::nothing, "Purge removes only entries of its queue.",
           purge_checks::own_queue},
    clause{"PURGE-08", layer::examples, level::must, needs::nothing,
           "Purge with a state removes only entries that ended in that state.", purge_checks::only_one_state},
    clause{"PURGE-09", layer::examples, level::may, needs::groups,
           "Purge keeps the members of a group that has a live member, in any queue.",
           purge_checks::kept_for_the_group},
    clause{"PURGE-10", layer::examples, level::must, needs::nothing,
           "Purge keeps an entry that has a live child, in any queue.", purge_checks::kept_for_the_child},
    clause{"PURGE-11", layer::examples, level::must, needs::nothing,
           "A live parent does not keep its children from being purged.", purge_checks::not_kept_for_the_parent},
    clause{"PURGE-12", layer::examples, level::may, needs::lanes,
           "Live entries of a lane do not keep other entries of the lane from being purged.",
           purge_checks::not_kept_for_the_lane},
    clause{
        "PURGE-13", layer::examples, level::must, needs::nothing,
        "Purge keeps a dead predecessor while its successor is live, and removes it only together with the successor.",
        purge_checks::kept_for_the_successor},
    clause{"PURGE-14", layer::examples, level::must, needs::nothing,
           "If the limit cuts through generations, the oldest are removed first.",
           purge_checks::eldest_generation_first},
    clause{"PURGE-15", layer::examples, level::must, needs::nothing,
           "If a live entry needs one generation, all generations are kept.",
           purge_checks::needed_generations_stay_together},
    clause{"PURGE-16", layer::examples, level::must, needs::nothing,
           "A state in the request is compared with that of the newest generation.", purge_checks::state_of_the_newest},
    clause{"PURGE-17", layer::examples, level::must, needs::nothing, "Entries that are kept do not use up the limit.",
           purge_checks::needed_do_not_use_the_limit},
    clause{"PURGE-18", layer::examples, level::must, needs::nothing,
           "A new entry with the id of a purged predecessor is not that predecessor.",
           purge_checks::id_that_comes_again},
    clause{"PURGE-19", layer::examples, level::must, needs::nothing,
           "Purge removes as many entries as its limit allows; the store has no lower limit of its own.",
           purge_checks::no_smaller_limit},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch
