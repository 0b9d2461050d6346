// SPDX-License-Identifier: MIT
// `enqueue_and_commit` and `claim_and_commit` together with wakes, lanes, groups, other threads, faults and crashes.
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
#include <vouch/conformance/clauses/crashes.hpp>
#include <vouch/conformance/clauses/fault_ends.hpp>
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

/// A transaction that enqueues 7 and ends with `end`, in which faults occur. `ends` are the snapshots that it may lead to,
/// and `end` returns the number of the one that it has led to.
struct faulty_end {
    string what{};
    std::size_t (*end)(any_transaction&) = nullptr;
    vector<snapshot> ends{};
};

inline void prepare_faults(any_store& store) {
    put_expiring(store);
    put(store, draft_of(4, {.queue = "r"}));
}

inline std::size_t enqueue_end(any_transaction& tx) {
    tx.enqueue_last(std::array{draft_of(8, {.key = "k"}), draft_of(9)}, at(1));
    return 0;
}
inline std::size_t claim_end(any_transaction& tx) {
    return tx.claim_last(request(at(1), {.queue = "r"})).has_value() ? 0 : 1;
}
inline std::size_t left_end(any_transaction& tx) {
    std::ignore = tx.claim_last(request(at(100)));
    return 0;
}

/// The snapshot after a transaction with these calls.
template <class Work>
[[nodiscard]] snapshot after(trial& t, const Work& work) {
    auto store = t.open(t.fresh_location());
    prepare_faults(store);
    transact(store, work);
    return ranked_snapshot_of(store);
}

[[nodiscard]] inline vector<faulty_end> faulty_ends(trial& t) {
    const auto put_seventh = [](any_transaction& tx) { put_in(tx, draft_of(7)); };
    const auto alone = after(t, put_seventh);
    const auto with_drafts = after(t, [&](auto& tx) {
        put_seventh(tx);
        tx.enqueue(std::array{draft_of(8, {.key = "k"}), draft_of(9)}, at(1));
    });
    const auto with_claim = after(t, [&](auto& tx) {
        put_seventh(tx);
        std::ignore = tx.claim(request(at(1), {.queue = "r"}));
    });
    return {{"enqueue_and_commit", enqueue_end, {with_drafts}},
            {"claim_and_commit", claim_end, {with_claim, alone}},
            {"claim_and_commit beside an expired lease", left_end, {alone}}};
}

/// Fails the n-th step of the last operation. Returns false if it has no such step.
inline bool fail_end(trial& t, const faulty_end& e, std::size_t n) {
    const auto& fail_at = fault_end_checks::hook_of(t);
    const fault_end_checks::faults_end off{fail_at};
    auto store = t.open(t.fresh_location());
    prepare_faults(store);
    const auto before = ranked_snapshot_of(store);
    optional<std::size_t> returned;
    bool in_doubt = false;
    {
        auto tx = store.begin();
        put_in(tx, draft_of(7));
        fail_at(n);
        try {
            returned = e.end(tx);
        } catch (const error& thrown) {
            if (thrown.kind() == error_kind::conflict) {
                throw;
            }
            in_doubt = thrown.is_in_doubt();
        }
        const bool has_fired = fail_at(0);
        t.tally().faults += has_fired ? 1U : 0U;
        if (!has_fired) {
            return false;
        }
        all_misuse_at_last(t, tx);
    }
    const auto now = ranked_snapshot_of(store);
    const bool is_whole = in_doubt && (now == e.ends.front() || now == e.ends.back());
    if (const auto& wanted = returned ? e.ends[*returned] : before; now != wanted && !is_whole) {
        auto [seen, expected] = show_difference(now, wanted);
        t.fail(e.what + (returned   ? ", after it has returned"
                         : in_doubt ? ", after an error in doubt"
                                    : ", after an error that is not in doubt"),
               std::move(seen), std::move(expected));
    }
    t.equal(put(store, draft_of(20, {.key = "k"})).what == receipt::kind::duplicate,
            now != before && e.end == enqueue_end, "the key of the last draft is taken");
    return true;
}

inline void faults_leave_nothing(trial& t) {
    std::ignore = fault_end_checks::hook_of(t);
    for (const auto& e : faulty_ends(t)) {
        for (std::size_t n = 1; fail_end(t, e, n); ++n) {
        }
    }
}

inline void survives_crashes(trial& t) {
    if (!t.can().durable) {
        return;
    }
    crash_checks::require_files(t);
    const auto p = t.fresh_location();
    constexpr std::uint64_t rounds = 3;
    for (std::uint64_t n = 1; n <= rounds; ++n) {
        for (const bool claims : {false, true}) {
            optional<any_store> store(t.context().open(p));
            repeatedly(*store, [&](auto& tx) {
                put_in(tx, draft_of(100 * n + (claims ? 50 : 0)));
                if (claims) {
                    return tx.claim_last(request(at(0), {.lease = duration{1'000}})).has_value();
                }
                return !tx.enqueue_last(std::array{draft_of(100 * n + 1, {.payload = "p"})}, at(0)).empty();
            });
            const auto before = crash_checks::stored_in(*store);
            optional<any_transaction> open(store->begin());
            put_in(*open, draft_of(1'000));
            crash_checks::end_process(t, p, [&] {
                open.reset();
                store.reset();
            });
            t.equal(crash_checks::stored_in(t.context().open(p)), before,
                    "the entries after the death of a process that had committed with its last operation");
        }
    }
    t.abandon(p);
}

} // namespace committing_together_checks

inline constexpr std::array committing_relations{
    clause{
        "COMMIT-08", layer::examples, level::may, needs::committing,
        "In a store with wakes, a queue's number changes with enqueue_and_commit and claim_and_commit as it does with "
        "commit.",
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
    clause{"COMMIT-13", layer::faults, level::may, needs::committing,
           "If a step of enqueue_and_commit or claim_and_commit fails, nothing of the transaction is stored, or all of "
           "it if the error is in doubt, and the transaction is closed.",
           committing_together_checks::faults_leave_nothing},
    clause{"COMMIT-14", layer::crashes, level::may, needs::committing,
           "In a durable store, what enqueue_and_commit and claim_and_commit have committed survives the death of the "
           "process.",
           committing_together_checks::survives_crashes},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch
