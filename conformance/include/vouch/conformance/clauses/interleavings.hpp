// SPDX-License-Identifier: MIT
// Interleavings: pairs and triples of short transactions on the same entries, with their steps in every order. A
// transaction may wait for another one.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include <vouch/conformance/clause.hpp>
#include <vouch/conformance/clauses/histories.hpp>
#include <vouch/conformance/detail/model/model.hpp>
#include <vouch/conformance/detail/schedule/alternation.hpp>
#include <vouch/conformance/detail/schedule/history.hpp>
#include <vouch/conformance/detail/schedule/operation.hpp>
#include <vouch/conformance/detail/schedule/scripts.hpp>
#include <vouch/conformance/detail/schedule/step_order.hpp>
#include <vouch/conformance/detail/steps.hpp>
#include <vouch/conformance/detail/store_pool.hpp>
#include <vouch/conformance/detail/trial.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace interleaving_checks {

/// Performs operations, all in one transaction, on an empty store. Returns its model. Every interleaving begins with this,
/// so there are few calls: to a server they are most of the work.
[[nodiscard]] inline model prepare(any_store& store, const std::vector<operation>& setup) {
    const auto answers = transact(store, [&](auto& tx) {
        std::vector<answer> out;
        for (const auto& o : setup) {
            out.push_back(perform(tx, o));
        }
        return out;
    });
    model m;
    for (std::size_t i = 0; i < setup.size(); ++i) {
        const auto& seen = answers[i];
        const auto expected = perform(m, setup[i]);
        trial::expect(seen.receipts == expected.receipts && seen.claimed.size() == expected.claimed.size() &&
                          seen.settlements == expected.settlements && seen.verdicts == expected.verdicts,
                      "the setup of an interleaving");
    }
    const auto stored = store.list({.queue = "q", .limit = 1000});
    for (auto& r : m.records) {
        const auto found =
            std::find_if(stored.begin(), stored.end(), [&](const entry& e) { return e.id == r.entry.id; });
        trial::expect(found != stored.end(), "the setup of an interleaving is listed");
        r.entry.sequence = found->sequence;
    }
    return m;
}

inline constexpr std::size_t none = ~std::size_t{0};

/// Runs each script on a thread of its own in the order that `choose` says, and judges the history. Returns what has
/// happened.
inline std::vector<transaction_run> play(trial& t, store_pool& pool, const std::vector<operation>& setup,
                                         const std::vector<script>& parts, std::size_t rolls_back,
                                         const scheduler::choice& choose) {
    auto& handles = pool.acquire();
    std::vector<transaction_run> runs;
    {
        auto& store = handles.front();
        const auto before = prepare(store, setup);
        for (std::size_t i = 0; i < parts.size(); ++i) {
            for (auto run : parts[i]) {
                run.thread = i;
                run.commits = i != rolls_back;
                runs.push_back(std::move(run));
            }
        }
        event_log log;
        run_history(t, handles, runs, log, choose);
        t.tally().interleavings += 1;
        history_checks::require_linearization(before, runs, store, log, parts.size(), pool.queues());
    }
    pool.clear();
    return runs;
}

/// Runs at most `schedules` random orders for every pair; all orders if there are not more. Steps are split where the
/// store pauses.
inline void pairs(trial& t) {
    store_pool pool(t, 2, {"q"});
    const auto setup = common_setup(t.can());
    const auto all = common_scripts();
    const auto merged = all_orders({3, 3});
    for (std::size_t i = 0; i < all.size(); ++i) {
        for (std::size_t j = 0; j <= i; ++j) {
            const auto wanted = t.budget().schedules;
            for (std::size_t n = 0; n < std::min(wanted, 2 * merged.size()); ++n) {
                const bool every = wanted >= 2 * merged.size();
                const auto pick = every ? n : t.random().below(2 * merged.size());
                play(t, pool, setup, {all[i], all[j]}, pick < merged.size() ? none : pick % 2,
                     step_order(merged[pick % merged.size()], true, t.random().roll()));
            }
        }
    }
}

inline void triples(trial& t) {
    store_pool pool(t, 3, {"q"});
    const auto setup = common_setup(t.can());
    const auto all = common_scripts();
    const auto merged = all_orders({3, 3, 3});
    for (std::size_t n = 0; n < 10 * t.budget().schedules; ++n) {
        std::vector<script> parts;
        while (parts.size() < 3) {
            parts.push_back(all[t.random().below(all.size())]);
        }
        play(t, pool, setup, parts, t.random().below(5),
             step_order(merged[t.random().below(merged.size())], true, t.random().roll()));
    }
}

/// Interrupts each of two scripts at the pauses that it has inside the store.
inline void interrupt(trial& t, store_pool& pool, const std::vector<operation>& setup, const std::vector<script>& two) {
    for (std::size_t who = 0; who < two.size(); ++who) {
        const auto first = 1 + t.random().below(t.budget().point_stride);
        auto pauses = first;
        for (auto n = first; n <= pauses; n += t.budget().point_stride) {
            interruption order(who, n);
            play(t, pool, setup, two, none, std::ref(order));
            pauses = std::max(pauses, order.pauses());
        }
    }
}

/// Runs up to three quarters of `schedules` orders of whole steps for every pair of a contest, and a quarter in which one
/// of the transactions is rolled back; `schedules` counts as six if it is less. Orders in which the transactions do not
/// overlap are left out. Then interrupts each of the pair inside its steps.
inline void compete(trial& t, const contest& what) {
    store_pool pool(t, 2, {"q"});
    constexpr std::size_t schedules_min = 6;
    const auto wanted = std::max(t.budget().schedules, schedules_min);
    for (const auto& one : what.some) {
        for (const auto& other : what.others) {
            auto orders = overlapping_orders(steps_of(one), steps_of(other));
            const auto committed = std::min(orders.size(), wanted - wanted / 4);
            for (std::size_t n = 0; n < committed + wanted / 4; ++n) {
                const bool commits = n < committed;
                const auto from = commits ? n : 0;
                std::swap(orders[from], orders[from + t.random().below(orders.size() - from)]);
                play(t, pool, what.setup, {one, other}, commits ? none : t.random().below(2),
                     step_order(orders[from], false, 0));
            }
            if (t.hooks().seam) {
                interrupt(t, pool, what.setup, {one, other});
            }
        }
    }
}

inline void lanes_compete(trial& t) { compete(t, lane_contest()); }
inline void parents_compete(trial& t) { compete(t, parent_contest()); }
inline void keys_compete(trial& t) { compete(t, key_contest()); }
inline void purges_compete(trial& t) { compete(t, purge_contest(t.can())); }

/// Two transactions alternate on two threads, and then on one if none of the steps had to wait.
inline void alternate(trial& t) {
    store_pool pool(t, 2, {"q"});
    const auto setup = common_setup(t.can());
    for (const auto& [one, other] : separate_scripts()) {
        for (const auto& order : all_orders({2, 2})) {
            if (!has_kept_order(play(t, pool, setup, {one, other}, none, step_order(order, false, 0)), order)) {
                continue;
            }
            auto& handles = pool.acquire();
            const auto before = prepare(handles.front(), setup);
            std::vector<transaction_run> runs{one.front(), other.front()};
            runs[1].thread = 1;
            event_log log;
            run_alternating(handles, runs, order, log);
            history_checks::require_linearization(before, runs, handles.front(), log, 2, pool.queues());
            pool.clear();
        }
    }
}

} // namespace interleaving_checks

inline constexpr std::array interleavings{
    clause{"ORDER-01", layer::interleavings, level::must, needs::nothing,
           "Two transactions whose steps interleave in any order answer as if they had run one after the other.",
           interleaving_checks::pairs},
    clause{"ORDER-02", layer::interleavings, level::must, needs::nothing,
           "Three transactions whose steps interleave in any order answer as if they had run one after the other.",
           interleaving_checks::triples},
    clause{"ORDER-03", layer::interleavings, level::may, needs::lanes,
           "An entry that is stored in a lane while another one of the lane ends is blocked or gets a gate.",
           interleaving_checks::lanes_compete},
    clause{"ORDER-04", layer::interleavings, level::must, needs::nothing,
           "The end of a child wakes its parent, even while another transaction claims, settles or nudges the parent.",
           interleaving_checks::parents_compete},
    clause{"ORDER-05", layer::interleavings, level::must, needs::nothing,
           "Of concurrent enqueues that requeue the same entry or have the same key, one is stored.",
           interleaving_checks::keys_compete},
    clause{"ORDER-06", layer::interleavings, level::must, needs::nothing,
           "A purge beside an enqueue removes whole families, and none that a committed live entry needs.",
           interleaving_checks::purges_compete},
    clause{"ORDER-07", layer::interleavings, level::must, needs::nothing,
           "If a store lets two transactions be open at a time, one thread may have both open.",
           interleaving_checks::alternate},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch
