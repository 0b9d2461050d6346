// SPDX-License-Identifier: MIT
// Interleavings: pairs and triples of short transactions on the same entries, with their steps in every order. A
// transaction may wait for another one.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <vouch/conformance/clause.hpp>
#include <vouch/conformance/clauses/histories.hpp>
#include <vouch/conformance/detail/model/model.hpp>
#include <vouch/conformance/detail/schedule/history.hpp>
#include <vouch/conformance/detail/schedule/operation.hpp>
#include <vouch/conformance/detail/steps.hpp>
#include <vouch/conformance/detail/store_pool.hpp>
#include <vouch/conformance/detail/trial.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace interleaving_checks {

inline constexpr time_point now = at(50);

/// Fills a store with entries for the transactions to compete for. Returns its model.
[[nodiscard]] inline model prepare(trial& t, any_store& store) {
    model m;
    const auto both = [&](const operation& o) {
        const auto seen = transact(store, [&](auto& tx) { return perform(tx, o); });
        const auto expected = perform(m, o);
        trial::expect(seen.receipts == expected.receipts && seen.claimed.size() == expected.claimed.size() &&
                          seen.settlements == expected.settlements && seen.verdicts == expected.verdicts,
                      "the setup of an interleaving");
        for (auto& r : m.records) {
            r.entry.sequence = get(store, r.entry.id.low).sequence;
        }
    };
    const std::string lane = t.can().lanes ? "x" : "";
    const std::string group = t.can().groups ? "g" : "";
    using kind = operation::kind;
    // 4 stays claimed, the lease of 5 is over at `now`, 6 is dead, 7 and 8 are the last members of a group.
    both({.what = kind::enqueue,
          .now = at(0),
          .drafts = {draft_of(4), draft_of(5), draft_of(6), draft_of(7, {.group = group}),
                     draft_of(8, {.group = group})}});
    both({.what = kind::claim, .now = at(1), .claim = request(at(1), {.lease = duration{1000}, .only = id_of(4)})});
    both({.what = kind::claim, .now = at(1), .claim = request(at(1), {.lease = duration{10}, .only = id_of(5)})});
    both({.what = kind::claim, .now = at(1), .claim = request(at(1), {.lease = duration{1000}, .only = id_of(7)})});
    both({.what = kind::claim, .now = at(1), .claim = request(at(1), {.lease = duration{1000}, .only = id_of(8)})});
    both({.what = kind::cancel, .now = at(2), .wanted = id_of(6)});
    both({.what = kind::enqueue,
          .now = at(3),
          .drafts = {draft_of(1), draft_of(2, {.lane = lane}), draft_of(3, {.lane = lane})}});
    return m;
}

/// The transactions, each of one or two operations.
[[nodiscard]] inline std::vector<std::vector<operation>> transactions() {
    using kind = operation::kind;
    const auto claim = [](std::size_t limit, id only = {}) {
        return operation{.what = kind::claim, .now = now, .claim = request(now, {.limit = limit, .only = only})};
    };
    const auto settle = [](std::uint64_t n, outcome o) {
        return operation{.what = kind::settle, .now = now, .settles = {{{id_of(n), 1}, std::move(o)}}};
    };
    const auto enqueue = [](draft d) { return operation{.what = kind::enqueue, .now = now, .drafts = {std::move(d)}}; };
    const auto on_id = [](kind k, std::uint64_t n) { return operation{.what = k, .now = now, .wanted = id_of(n)}; };
    return {
        {claim(1)},
        {claim(3)},
        {claim(1, id_of(1))},
        {settle(4, succeed{})},
        {settle(4, retry{"e", now})},
        {settle(5, succeed{})},
        {settle(7, succeed{})},
        {settle(8, succeed{})},
        {enqueue(draft_of(9, {.key = "k"}))},
        {enqueue(draft_of(10, {.key = "k"}))},
        {enqueue(draft_of(9))},
        {enqueue(draft_of(11, {.predecessor = id_of(6)}))},
        {enqueue(draft_of(12, {.predecessor = id_of(6)}))},
        {on_id(kind::cancel, 1)},
        {on_id(kind::cancel, 2)},
        {on_id(kind::cancel, 5)},
        {on_id(kind::nudge, 4)},
        {{.what = kind::extend, .now = now, .tickets = {{id_of(5), 1}}, .lease = duration{100}}},
        {{.what = kind::purge, .now = now, .purge = {.queue = "q", .before = now}}},
        {settle(4, succeed{}), claim(2)},
    };
}

/// All orders of `each` steps of every thread, in lexicographic order.
[[nodiscard]] inline std::vector<std::vector<std::size_t>> orders(std::size_t threads, std::size_t each) {
    std::vector<std::size_t> order;
    for (std::size_t p = 0; p < threads; ++p) {
        order.insert(order.end(), each, p);
    }
    std::vector<std::vector<std::size_t>> all;
    do {
        all.push_back(order);
    } while (std::next_permutation(order.begin(), order.end()));
    return all;
}

inline void play(trial& t, store_pool& pool, const std::vector<const std::vector<operation>*>& parts,
                 std::size_t rolls_back, const std::vector<std::size_t>& order) {
    auto& handles = pool.acquire();
    {
        auto& store = handles.front();
        const auto before = prepare(t, store);
        std::vector<transaction_run> runs;
        for (std::size_t i = 0; i < parts.size(); ++i) {
            runs.push_back({.thread = i, .operations = *parts[i], .commits = i != rolls_back});
        }
        event_log log;
        std::size_t step = 0;
        run_history(t, handles, runs, log, [&](const std::vector<std::size_t>& ready) {
            while (step < order.size()) {
                const auto wanted = order[step++];
                if (std::find(ready.begin(), ready.end(), wanted) != ready.end()) {
                    return wanted;
                }
            }
            return ready.front();
        });
        t.tally().interleavings += 1;
        history_checks::require_linearization(before, runs, store, log, parts.size());
    }
    pool.clear();
}

/// Runs at most `schedules` random orders for every pair; all orders if there are not more.
inline void pairs(trial& t) {
    store_pool pool(t, 2);
    const auto all = transactions();
    const auto merged = orders(2, 3);
    for (std::size_t i = 0; i < all.size(); ++i) {
        for (std::size_t j = 0; j <= i; ++j) {
            const auto wanted = t.budget().schedules;
            for (std::size_t n = 0; n < std::min(wanted, 2 * merged.size()); ++n) {
                const bool every = wanted >= 2 * merged.size();
                const auto pick = every ? n : t.random().below(2 * merged.size());
                constexpr std::size_t none = 2;
                play(t, pool, {&all[i], &all[j]}, pick < merged.size() ? none : pick % 2, merged[pick % merged.size()]);
            }
        }
    }
}

inline void triples(trial& t) {
    store_pool pool(t, 3);
    const auto all = transactions();
    const auto merged = orders(3, 3);
    for (std::size_t n = 0; n < 10 * t.budget().schedules; ++n) {
        const auto some = [&] { return &all[t.random().below(all.size())]; };
        const auto first = some();
        const auto second = some();
        play(t, pool, {first, second, some()}, t.random().below(5), merged[t.random().below(merged.size())]);
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
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch
