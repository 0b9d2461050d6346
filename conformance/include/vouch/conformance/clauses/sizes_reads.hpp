// SPDX-License-Identifier: MIT
// Sizes: lists, counts, next_due and purges of many entries, and many queues in one store.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <vouch/conformance/clause.hpp>
#include <vouch/conformance/clauses/sizes.hpp>
#include <vouch/conformance/detail/steps.hpp>
#include <vouch/conformance/detail/trial.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace sizes_checks {

inline constexpr std::uint64_t parent_of_all = 9'999;
inline constexpr std::uint64_t queues_many = 300;

/// `many` entries of "q" that share a parent and, if the store has them, a group. The topic of the last 90 is "rare".
[[nodiscard]] inline std::vector<draft> related_drafts(const capabilities& can) {
    std::vector<draft> out;
    for (std::uint64_t n = 1; n <= many; ++n) {
        out.push_back(draft_of(n, {.topic = n + 90 > many ? "rare" : "usual",
                                   .group = can.groups ? "g" : "",
                                   .parent = id_of(parent_of_all)}));
    }
    return out;
}

[[nodiscard]] inline list_of numbers_from(std::uint64_t first, std::uint64_t last) {
    list_of out;
    for (auto n = first; n <= last; ++n) {
        out.push_back(n);
    }
    return out;
}

/// Requires every page of a path on which the entries 1 to `many` are, for limits around those that stores choose.
inline void lists_in_pages(trial& t, const any_store& store, query q) {
    for (const std::uint64_t limit : {255U, 256U, 257U, 999U, 1'000U, 1'001U, 1'100U, 1'101U}) {
        q.limit = limit;
        q.after = 0;
        std::uint64_t first = 1;
        while (first <= many) {
            const auto page = store.list(q);
            const auto last = std::min(many, first + limit - 1);
            t.equal(numbers(page), numbers_from(first, last),
                    "a page of " + show(limit) + " from entry " + show(first));
            q.after = page.back().sequence;
            first = last + 1;
        }
        t.equal(store.list(q).size(), 0, "listed after the last page of " + show(limit));
    }
    q.limit = 100;
    q.after = 0;
    q.topic = "rare";
    t.equal(numbers(store.list(q)), numbers_from(many - 89, many), "the entries of a rare topic behind many others");
}

inline void long_lists(trial& t) {
    auto store = t.open();
    const auto entries = claimed(t, store, related_drafts(t.can()));
    std::vector<query> paths{query::all("q"), query::live("q"), query::children(id_of(parent_of_all))};
    if (t.can().groups) {
        paths.push_back(query::members("g"));
    }
    for (const auto& q : paths) {
        lists_in_pages(t, store, q);
    }
    std::vector<vouch::settle> batch;
    for (const auto& e : entries) {
        batch.push_back({ticket_of(e), bury{"e", {}}});
    }
    transact(store, [&](auto& tx) { return tx.settle(batch, at(1)); });
    lists_in_pages(t, store, query::dead("q"));
    auto by_state = query::all("q");
    by_state.state = state::dead;
    lists_in_pages(t, store, by_state);
}

inline void large_counts(trial& t) {
    auto store = t.open();
    const auto entries = claimed(t, store, numbered(5 * many, draft_of(1)));
    std::vector<vouch::settle> batch;
    for (std::size_t i = 0; i < 4 * many; ++i) {
        // 1,100 pending, 1,100 retrying, 1,100 succeeded, 1,100 dead; the others stay claimed
        const std::array outcomes{outcome{release{}}, outcome{retry{"e", at(0)}}, outcome{succeed{}},
                                  outcome{bury{"e", {}}}};
        batch.push_back({ticket_of(entries[i]), outcomes[i / many]});
    }
    transact(store, [&](auto& tx) { return tx.settle(batch, at(1)); });
    t.equal(store.counts("q"), state_counts{{many, many, many, many, many}}, "the counts of a large queue");
    t.equal(store.counts("q").total(), 5 * many, "the total of a large queue");
}

inline void due_of_many(trial& t) {
    auto store = t.open();
    std::vector<draft> drafts;
    for (std::uint64_t n = 1; n <= many; ++n) {
        drafts.push_back(draft_of(n, {.due_at = at(10'000 - static_cast<std::int64_t>(n))}));
    }
    vouch::enqueue(store, drafts, at(0));
    for (const std::int64_t n : {1'100, 1'099, 1'098}) {
        t.equal(store.next_due("q"), at(10'000 - n), "next_due when the last of many is due first");
        cancel(store, id_of(static_cast<std::uint64_t>(n)));
    }
    t.equal(numbers(take(store, at(10'000), {.limit = 2})), list_of{1'097, 1'096}, "the first two of many");
}

inline void large_purges(trial& t) {
    auto store = t.open();
    std::vector<draft> drafts;
    for (std::uint64_t n = 1; n <= 2 * many; ++n) {
        drafts.push_back(draft_of(n, {.result = show(n)}));
    }
    vouch::enqueue(store, drafts, at(0));
    t.equal(purge(store, {.queue = "q", .before = at(1), .limit = 1'050}), 1'050, "purged with a large limit");
    t.equal(all_of(t, store, query::all("q")).front().id, id_of(1'051), "the oldest after a large purge");
    t.equal(purge(store, {.queue = "q", .before = at(1), .limit = t.can().limits.batch_max}), 2 * many - 1'050,
            "purged with the largest limit");
    t.equal(store.counts("q").total(), 0, "left by the second purge");
}

[[nodiscard]] inline std::string queue_name(std::uint64_t n) { return "queue " + show(n); }

inline void many_queues(trial& t) {
    auto store = t.open();
    std::vector<draft> drafts;
    for (std::uint64_t n = 1; n <= queues_many; ++n) {
        const auto due = at(static_cast<std::int64_t>(n));
        drafts.push_back(draft_of(n, {.queue = queue_name(n), .key = "key", .due_at = due}));
        drafts.push_back(draft_of(1'000 + n, {.queue = queue_name(n), .result = ""}));
    }
    vouch::enqueue(store, drafts, at(0));
    for (std::uint64_t n = 1; n <= queues_many; ++n) {
        const auto name = queue_name(n);
        const auto due = at(static_cast<std::int64_t>(n));
        t.equal(store.counts(name), state_counts{{1, 0, 0, 1, 0}}, "the counts of one queue of many");
        t.equal(store.next_due(name), due, "next_due of one queue of many");
        t.equal(numbers(store.list(query::all(name))), list_of{n, 1'000 + n}, "listed of one queue of many");
        t.equal(numbers(store.list(query::keyed(name, "key"))), list_of{n}, "a key in one queue of many");
    }
    for (std::uint64_t n = 1; n <= queues_many; n += 7) {
        const auto name = queue_name(n);
        const auto taken = transact(store, [&](auto& tx) {
            t.equal(tx.purge({.queue = name, .before = at(1)}), 1, "purged of one queue of many");
            return tx.claim(request(at(1'000), {.queue = name, .lease = duration{static_cast<std::int64_t>(n)}}));
        });
        t.equal(numbers(taken), list_of{n}, "claimed of one queue of many");
        t.equal(store.next_due(name), at(1'000 + static_cast<std::int64_t>(n)), "next_due of that queue");
    }
    for (std::uint64_t n = 1; n <= queues_many; ++n) {
        const bool is_changed = n % 7 == 1;
        t.equal(store.counts(queue_name(n)), is_changed ? state_counts{{0, 0, 1, 0, 0}} : state_counts{{1, 0, 0, 1, 0}},
                "the counts of one queue of many, when some were claimed and purged");
    }
}

inline void wakes_of_many_queues(trial& t) {
    auto store = t.open();
    std::vector<std::uint64_t> seen;
    std::vector<draft> drafts;
    for (std::uint64_t n = 1; n <= queues_many; ++n) {
        seen.push_back(store.wakes(queue_name(n)));
        drafts.push_back(draft_of(n, {.queue = queue_name(n)}));
    }
    vouch::enqueue(store, drafts, at(0));
    for (std::uint64_t n = 1; n <= queues_many; ++n) {
        t.expect(wakes_change(store, queue_name(n), seen[n - 1]), "the number of each of many queues changes");
    }
}

} // namespace sizes_checks

inline constexpr std::array sizes_of_reads{
    clause{"SIZE-07", layer::examples, level::must, needs::nothing,
           "Long lists are complete on every path and with every filter: no page ends early, repeats or skips.",
           sizes_checks::long_lists},
    clause{"SIZE-08", layer::examples, level::must, needs::nothing,
           "counts is exact for thousands of entries in every state.", sizes_checks::large_counts},
    clause{"SIZE-09", layer::examples, level::must, needs::nothing,
           "next_due and claim find the earliest of many entries, wherever it is in the queue.",
           sizes_checks::due_of_many},
    clause{"SIZE-10", layer::examples, level::must, needs::nothing,
           "One purge removes as many entries as its limit allows, oldest first.", sizes_checks::large_purges},
    clause{"SIZE-11", layer::examples, level::must, needs::nothing,
           "In a store with hundreds of queues, each queue has its own entries, keys, counts, next_due, claims and "
           "purges.",
           sizes_checks::many_queues},
    clause{"SIZE-12", layer::examples, level::may, needs::wakes,
           "In a store with hundreds of queues, the number of each one changes with a commit of its work.",
           sizes_checks::wakes_of_many_queues},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch
