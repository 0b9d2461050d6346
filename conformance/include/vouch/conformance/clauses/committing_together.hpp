// SPDX-License-Identifier: MIT
// `enqueue_and_commit`, `claim_and_commit` and `settle_claim_and_commit` together with wakes, lanes, groups and other
// threads.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <vouch/conformance/clause.hpp>
#include <vouch/conformance/clauses/committing_claims.hpp>
#include <vouch/conformance/clauses/threads.hpp>
#include <vouch/conformance/clauses/wakes.hpp>
#include <vouch/conformance/detail/steps.hpp>
#include <vouch/conformance/detail/threads/free_threads.hpp>
#include <vouch/conformance/detail/trial.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace committing_together_checks {

using namespace committing_claim_checks;

/// Claims with the last operation of a transaction that settles `held` before.
[[nodiscard]] inline vector<entry> settle_and_claim(any_store& store, const ticket& held) {
    auto claimed = repeatedly(store, [&](auto& tx) {
        settle_in(tx, held, succeed{}, at(0));
        return tx.claim_last(request(at(0)));
    });
    return claimed ? std::move(*claimed) : take(store, at(0));
}

inline void changes_wakes(trial& t) {
    if (!t.can().wakes) {
        return;
    }
    auto store = furnished(t);
    auto seen = wakes_checks::settled(store, "q");
    enqueue_last(store, {draft_of(7)});
    t.expect(wakes_change(store, "q", seen), "the number changes with enqueue_and_commit");
    seen = wakes_checks::settled(store, "q");
    repeatedly(store, [&](auto& tx) {
        return tx.settle_last(std::array{vouch::settle{{id_of(3), 1}, release{}}}, at(20),
                              request(at(0), {.queue = "z"}));
    });
    t.expect(wakes_change(store, "q", seen), "the number changes with a release by settle_claim_and_commit");
    for (const auto& [name, change] : wakes_checks::nearer) {
        const auto& in = change;
        auto other = furnished(t);
        seen = wakes_checks::settled(other, "q");
        repeatedly(other, [&](auto& tx) {
            in(tx);
            return tx.claim_last(request(at(0), {.queue = "z"}));
        });
        t.expect(wakes_change(other, "q", seen), "the number changes with claim_and_commit after " + string(name));
    }
}

inline void lanes_hold(trial& t) {
    if (!t.can().lanes) {
        return;
    }
    auto store = t.open();
    enqueue_last(store, {draft_of(1, {.lane = "lane"}), draft_of(2, {.lane = "lane"})});
    enqueue_last(store, {draft_of(3, {.lane = "lane"})});
    const auto head = take_one(store, at(0));
    t.equal(head, ticket{id_of(1), 1}, "claimed from a lane");
    t.equal(numbers(take(store, at(0))), list_of{}, "claimed behind a head that is held");
    t.equal(numbers(settle_and_claim(store, head)), list_of{2}, "claimed in the transaction that ended the head");
    repeatedly(store, [&](auto& tx) {
        settle_in(tx, {id_of(2), 1}, succeed{}, at(0));
        return tx.enqueue_last(std::array{draft_of(4, {.lane = "lane"})}, at(0));
    });
    t.equal(numbers(take(store, at(0))), list_of{3}, "claimed after the head ended in a transaction that enqueues");
    t.equal(numbers(settle_and_claim(store, {id_of(3), 1})), list_of{4}, "claimed last");
}

inline void groups_hold(trial& t) {
    if (!t.can().groups) {
        return;
    }
    auto store = t.open();
    enqueue_last(store, {draft_of(1, {.group = "g"}), draft_of(2, {.group = "g"})});
    t.equal(take(store, at(0)).size(), 2, "claimed");
    t.equal(settle(store, {id_of(1), 1}, succeed{}).group_completed, false, "the first of two members succeeds");
    const auto completes = [&](std::uint64_t n, std::uint64_t next) {
        bool is_completed = false;
        repeatedly(store, [&](auto& tx) {
            is_completed = settle_in(tx, {id_of(n), 1}, succeed{}, at(0)).group_completed;
            return tx.enqueue_last(std::array{draft_of(next, {.group = "g"})}, at(0));
        });
        return is_completed;
    };
    t.equal(completes(2, 3), true, "the last member succeeds, before another one is enqueued");
    t.equal(take(store, at(0)).size(), 1, "claimed");
    t.equal(completes(3, 4), true, "the member that opened the group again succeeds");
    t.equal(numbers(store.list(query::members("g"))), list_of{1, 2, 3, 4}, "the members");
}

inline void keys_once(trial& t) {
    using namespace threads_checks;
    std::array<receipt, threads_count> said{};
    in_rounds(
        t, [](std::size_t, any_store&) {},
        [&](std::size_t n, std::size_t i, any_store& store) {
            const std::array drafts{draft_of(1 + i * threads_count + n, {.key = "k" + std::to_string(i)})};
            repeat_after_conflict([&] { said[n] = store.begin().enqueue_last(drafts, at(0)).front(); });
        },
        [&](std::size_t i, any_store& store) {
            const auto stored = store.list(query::keyed("q", "k" + std::to_string(i)));
            trial::equal(stored.size(), std::size_t{1},
                         "entries with a key that all threads enqueued at the same time");
            std::size_t inserted = 0;
            for (const auto& r : said) {
                trial::equal(r.id, stored.front().id, "the entry that each thread was told of");
                inserted += r.what == receipt::kind::inserted ? 1U : 0U;
            }
            trial::equal(inserted, std::size_t{1}, "threads that were told that their draft was inserted");
        });
}

inline void claims_once(trial& t) {
    using namespace threads_checks;
    constexpr std::size_t due = 2 * threads_count;
    std::array<vector<entry>, threads_count> claimed;
    in_rounds(
        t,
        [&](std::size_t i, any_store& store) {
            commit_freely(store, [&](auto& tx) { tx.enqueue(numbered(due, draft_of(1 + i * due)), at(0)); });
        },
        [&](std::size_t n, std::size_t, any_store& store) {
            claimed[n].clear();
            repeat_after_conflict(
                [&] { claimed[n] = store.begin().claim_last(request(at(0), {.limit = 3})).value_or(vector<entry>{}); });
        },
        [&](std::size_t, any_store& store) {
            std::set<id> held;
            vector<vouch::settle> settles;
            for (const auto& some : claimed) {
                for (const auto& e : some) {
                    trial::expect(held.insert(e.id).second, "no entry is claimed by two threads");
                    trial::equal(get(store, e.id.low).epoch, 1U, "the epoch of an entry that was claimed once");
                    settles.push_back({ticket_of(e), succeed{}});
                }
            }
            trial::equal(store.counts("q")[state::claimed], held.size(),
                         "entries claimed, of those that were returned");
            commit_freely(store, [&](auto& tx) {
                std::ignore = tx.settle(settles, at(0));
                for (const auto& e : tx.claim(request(at(0)))) {
                    settle_in(tx, ticket_of(e), succeed{}, at(0));
                }
            });
        });
}

} // namespace committing_together_checks

inline constexpr std::array committing_relations{
    clause{"COMMIT-08", layer::examples, level::may, needs::committing,
           "In a store with wakes, a queue's number changes with enqueue_and_commit, claim_and_commit and "
           "settle_claim_and_commit as it does with commit.",
           committing_together_checks::changes_wakes},
    clause{"COMMIT-09", layer::examples, level::may, needs::committing,
           "In a store with lanes, entries of a lane stay in order with enqueue_and_commit and claim_and_commit.",
           committing_together_checks::lanes_hold},
    clause{"COMMIT-10", layer::examples, level::may, needs::committing,
           "In a store with groups, entries that enqueue_and_commit stores are members of their groups.",
           committing_together_checks::groups_hold},
};

inline constexpr std::array committing_together{
    clause{
        "COMMIT-11", layer::threads, level::may, needs::committing,
        "A key that several threads enqueue at the same time with enqueue_and_commit is stored once, and all are told "
        "of the same entry.",
        committing_together_checks::keys_once},
    clause{"COMMIT-12", layer::threads, level::may, needs::committing,
           "Of threads that call claim_and_commit at the same time, no two claim the same entry.",
           committing_together_checks::claims_once},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch
