// SPDX-License-Identifier: MIT
// Groups: the settle that reduces the number of members not yet succeeded from one to zero reports the group complete.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include <vouch/conformance/clause.hpp>
#include <vouch/conformance/clauses/enqueue.hpp>
#include <vouch/conformance/detail/steps.hpp>
#include <vouch/conformance/detail/trial.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace groups_checks {

using namespace enqueue_checks;

inline constexpr settlement plain{verdict::applied, false};
inline constexpr settlement completes{verdict::applied, true};

[[nodiscard]] inline any_store group_of(trial& t, std::uint64_t members) {
    auto store = t.open(t.fresh_location());
    for (std::uint64_t n = 1; n <= members; ++n) {
        put(store, draft_of(n, {.group = "g"}));
    }
    return store;
}

/// Claims the entry and settles it.
inline settlement end(any_store& store, std::uint64_t n, const outcome& o, const std::string& queue = "q") {
    return settle(store, take_one(store, at(0), {.queue = queue, .only = id_of(n)}), o);
}

inline void last_success_completes(trial& t) {
    auto store = group_of(t, 3);
    t.equal(end(store, 2, succeed{}), plain, "the first success of three");
    t.equal(end(store, 1, succeed{}), plain, "the second success of three");
    t.equal(end(store, 3, succeed{}), completes, "the last success of three");
    auto alone = group_of(t, 1);
    t.equal(end(alone, 1, succeed{}), completes, "the success of a group's only member");
    put(alone, draft_of(9));
    t.equal(end(alone, 9, succeed{}), plain, "the success of an entry without a group");
}

inline void only_success_completes(trial& t) {
    const outcome others[] = {retry{"e", at(0)}, release{}, advance{"p", at(0)}, bury{"e", {}}, bury{"e", "reply"}};
    for (const auto& o : others) {
        auto other = group_of(t, 2);
        t.equal(end(other, 1, succeed{}), plain, "the success of the first");
        t.equal(end(other, 2, o), plain, "another outcome of the last");
    }
    auto store = group_of(t, 2);
    t.equal(cancel(store, id_of(1)), verdict::applied, "cancelled");
    t.equal(end(store, 2, succeed{}), plain, "the success of the last live member beside a cancelled one");
}

inline void across_queues(trial& t) {
    auto store = t.open();
    put(store, draft_of(1, {.group = "g"}));
    put(store, draft_of(2, {.queue = "r", .group = "g"}));
    put(store, draft_of(3, {.group = "G"}));
    t.equal(end(store, 1, succeed{}), plain, "a success while a member in another queue is live");
    t.equal(end(store, 2, succeed{}, "r"), completes, "the success of that member, with other groups still open");
    t.equal(end(store, 3, succeed{}), completes, "the success in the other group");
}

inline void once_per_fall(trial& t) {
    auto store = group_of(t, 2);
    t.equal(take(store, at(0)).size(), 2, "claimed");
    const std::array settles{vouch::settle{{id_of(2), 1}, succeed{}}, vouch::settle{{id_of(1), 1}, succeed{}},
                             vouch::settle{{id_of(1), 1}, succeed{}}, vouch::settle{{id_of(2), 7}, succeed{}}};
    t.equal(transact(store, [&](auto& tx) { return tx.settle(settles, at(0)); }),
            std::vector<settlement>{plain, completes, {verdict::repeated, false}, {verdict::stale, false}},
            "the last two settles in one batch, and settles after them");
    t.equal(settle(store, {id_of(1), 1}, succeed{}), settlement{verdict::repeated, false}, "the settle repeated");
}

inline void dead_holds_open(trial& t) {
    auto store = group_of(t, 2);
    end(store, 1, bury{"e", {}});
    t.equal(end(store, 2, succeed{}), plain, "a success beside a dead member");
    put(store, draft_of(3, {.predecessor = id_of(1)}));
    t.equal(end(store, 3, succeed{}), completes, "the success of the dead member's successor");
}

inline void successor_takes_the_place(trial& t) {
    auto store = group_of(t, 2);
    end(store, 1, bury{"e", {}});
    put(store, draft_of(3, {.predecessor = id_of(1)}));
    end(store, 3, bury{"e", {}});
    put(store, draft_of(4, {.predecessor = id_of(3)}));
    t.equal(end(store, 4, succeed{}), plain, "the success of the third generation while another member is live");
    t.equal(end(store, 2, succeed{}), completes, "the success of that other member");
}

inline void later_member_reopens(trial& t) {
    auto store = group_of(t, 1);
    t.equal(end(store, 1, succeed{}), completes, "the only member");
    put(store, draft_of(2, {.group = "g"}));
    put(store, draft_of(3, {.group = "g"}));
    t.equal(end(store, 2, succeed{}), plain, "the first of two later members");
    t.equal(end(store, 3, succeed{}), completes, "the last of two later members");
}

inline void member_of_same_transaction(trial& t) {
    auto store = group_of(t, 1);
    const auto held = take_one(store, at(0));
    auto tx = store.begin();
    const std::array drafts{draft_of(2, {.group = "g"})};
    tx.enqueue(drafts, at(0));
    t.equal(settle_in(tx, held, succeed{}, at(0)), plain, "a success after a member was added in its transaction");
    tx.commit();
    t.equal(end(store, 2, succeed{}), completes, "the success of the member that was added");
}

inline void duplicates_do_not_count(trial& t) {
    auto store = group_of(t, 1);
    put(store, draft_of(1, {.group = "g"}));
    put(store, draft_of(3, {.queue = "r", .key = "k"}));
    put(store, draft_of(4, {.queue = "r", .key = "k", .group = "g"}));
    put(store, draft_of(5, {.predecessor = id_of(1)}));
    t.equal(end(store, 1, succeed{}), completes, "the success of the only member beside duplicates and refusals");
}

inline void purged_do_not_count(trial& t) {
    auto store = group_of(t, 2);
    end(store, 1, bury{"e", {}});
    end(store, 2, succeed{});
    t.equal(purge(store, {.queue = "q", .before = at(1), .state = state::dead}), 1, "purged of the dead");
    put(store, draft_of(3, {.group = "g"}));
    t.equal(end(store, 3, succeed{}), completes, "the success of a member after the dead one was purged");
    t.equal(purge(store, {.queue = "q", .before = at(1)}), 2, "purged of the rest");
    put(store, draft_of(4, {.group = "g"}));
    t.equal(end(store, 4, succeed{}), completes, "the success of the only member after all others were purged");
}

} // namespace groups_checks

inline constexpr std::array groups{
    clause{"GROUP-01", layer::examples, level::may, needs::groups,
           "The settle that reduces the number of group members not yet succeeded from one to zero reports the group "
           "complete, and no other settle does.",
           groups_checks::last_success_completes},
    clause{"GROUP-02", layer::examples, level::may, needs::groups,
           "A retry, release, advance, bury or cancel never completes a group.", groups_checks::only_success_completes},
    clause{"GROUP-03", layer::examples, level::may, needs::groups,
           "A group spans queues; two groups are the same only if all bytes of their names are equal.",
           groups_checks::across_queues},
    clause{"GROUP-04", layer::examples, level::may, needs::groups,
           "A group is reported complete once: not twice in a batch, and not by a settle that is repeated or stale.",
           groups_checks::once_per_fall},
    clause{"GROUP-05", layer::examples, level::may, needs::groups,
           "A dead member keeps its group open until its successor has succeeded.", groups_checks::dead_holds_open},
    clause{"GROUP-06", layer::examples, level::may, needs::groups,
           "A successor counts instead of its predecessor, through any number of generations.",
           groups_checks::successor_takes_the_place},
    clause{"GROUP-07", layer::examples, level::may, needs::groups,
           "A later member opens a complete group again, which then completes again.",
           groups_checks::later_member_reopens},
    clause{"GROUP-08", layer::examples, level::may, needs::groups,
           "A member enqueued in the settling transaction counts.", groups_checks::member_of_same_transaction},
    clause{"GROUP-09", layer::examples, level::may, needs::groups,
           "Drafts that are duplicates or refused do not count as members.", groups_checks::duplicates_do_not_count},
    clause{"GROUP-10", layer::examples, level::may, needs::groups, "Purged members no longer count.",
           groups_checks::purged_do_not_count},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch
