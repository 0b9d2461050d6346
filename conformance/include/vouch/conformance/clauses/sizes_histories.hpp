// SPDX-License-Identifier: MIT
// Sizes: long lanes, large groups, many generations and long histories of one entry.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <vouch/conformance/clause.hpp>
#include <vouch/conformance/clauses/sizes.hpp>
#include <vouch/conformance/clauses/sizes_reads.hpp>
#include <vouch/conformance/detail/steps.hpp>
#include <vouch/conformance/detail/trial.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace sizes_checks {

inline constexpr std::uint64_t related_many = 300; ///< members of a lane or a group; more than eight bits

/// Calls `step(tx, n)` for every n from 1 to `count`, a few in each transaction: a store that may throw a conflict in any
/// call has to get through.
template <class Step>
void in_few(any_store& store, std::uint64_t count, const Step& step) {
    constexpr std::uint64_t few = 10;
    for (std::uint64_t first = 1; first <= count; first += few) {
        transact(store, [&](auto& tx) {
            for (auto n = first; n <= std::min(count, first + few - 1); ++n) {
                step(tx, n);
            }
        });
    }
}

inline void long_lane(trial& t) {
    auto store = t.open();
    std::vector<draft> drafts{draft_of(1'001, {.lane = "other"})};
    for (std::uint64_t n = 1; n <= related_many; ++n) {
        // The due times descend, so only the lane keeps the order.
        drafts.push_back(draft_of(n, {.lane = "lane", .due_at = at(-static_cast<std::int64_t>(n))}));
    }
    drafts.push_back(draft_of(1'002, {.lane = "other"}));
    vouch::enqueue(store, drafts, at(0));
    t.equal(numbers(take(store, at(0), {.limit = 1'000})), list_of{1, 1'001}, "claimed of two lanes");
    t.equal(take(store, at(0), {.limit = 1'000}).size(), 0, "claimed while both heads are held");
    settle(store, {id_of(1'001), 1}, succeed{});
    t.equal(numbers(take(store, at(0), {.limit = 1'000})), list_of{1'002}, "the next of a lane, far behind its head");
    in_few(store, related_many, [&](auto& tx, std::uint64_t n) {
        const auto ends = n % 3 == 0 ? outcome{bury{"e", {}}} : outcome{succeed{}};
        t.equal(settle_in(tx, {id_of(n), 1}, ends, at(1)).verdict, verdict::applied, "the end of a head");
        t.equal(numbers(tx.claim(request(at(1), {.limit = 1'000}))), n < related_many ? list_of{n + 1} : list_of{},
                "claimed of a long lane after entry " + show(n));
    });
}

inline void large_group(trial& t) {
    auto store = t.open();
    const auto entries = claimed(t, store, numbered(related_many, draft_of(1, {.group = "g"})));
    std::vector<vouch::settle> batch;
    for (const auto& e : entries) {
        batch.push_back({ticket_of(e), succeed{}});
    }
    const auto last = batch.back();
    batch.pop_back();
    t.equal(transact(store, [&](auto& tx) { return tx.settle(batch, at(1)); }),
            std::vector(batch.size(), settlement{verdict::applied, false}), "all members of a group but one");
    t.equal(settle(store, last.ticket, last.outcome), settlement{verdict::applied, true}, "the last member");
    t.equal(all_of(t, store, query::members("g")).size(), related_many, "listed members");
}

inline void completes_within_a_batch(trial& t) {
    auto store = t.open();
    std::vector<draft> drafts;
    for (std::uint64_t n = 1; n <= 60; ++n) {
        drafts.push_back(draft_of(n, {.group = "group " + show(n % 7)}));
    }
    const auto entries = claimed(t, store, drafts);
    std::vector<vouch::settle> batch;
    std::vector<settlement> expected;
    for (const auto& e : entries) {
        batch.push_back({ticket_of(e), succeed{}});
        expected.push_back({verdict::applied, e.id.low + 7 > entries.size()}); // the last of its group
    }
    t.equal(transact(store, [&](auto& tx) { return tx.settle(batch, at(1)); }), expected,
            "the completion of several groups in one batch");
}

inline void many_generations(trial& t) {
    constexpr std::uint64_t count = 20;
    auto store = t.open();
    in_few(store, count, [&](auto& tx, std::uint64_t n) {
        const std::array next{n == 1 ? draft_of(n, {.key = "key"}) : draft_of(n, {.predecessor = id_of(n - 1)})};
        t.equal(tx.enqueue(next, at(0)), receipts{inserted(n)}, "the next generation");
        const std::array again{draft_of(1'000 + n, {.key = "key"})};
        t.equal(tx.enqueue(again, at(0)), receipts{duplicate(n)}, "the key of the newest generation");
        t.equal(tx.cancel(id_of(n), "cancelled", at(0)), verdict::applied, "the end of a generation");
    });
    for (std::uint64_t n = 1; n <= count; ++n) {
        t.equal(get(store, n).generation, n, "the generation");
        t.equal(get(store, n).key, "key", "the key of a generation");
    }
    t.equal(numbers(store.list(query::keyed("q", "key"))), numbers_from(1, count), "all generations of a key");
    t.equal(purge(store, {.queue = "q", .before = at(1), .limit = 3}), 3, "purged of a long family");
    t.equal(numbers(store.list(query::keyed("q", "key"))), numbers_from(4, count), "the oldest are purged first");
    t.equal(purge(store, {.queue = "q", .before = at(1)}), count - 3, "the whole family is purged");
    t.equal(put(store, draft_of(1'000, {.key = "key"})), inserted(1'000), "the key when no generation is left");
}

/// How often an entry is claimed: beyond sixteen bits, but not in the quick profile of a store with a slow commit.
[[nodiscard]] inline std::uint64_t long_history(trial& t) {
    return t.can().durable && t.options().profile == profile::quick ? 300 : 66'000;
}

/// Destroys the only handle and opens another one.
[[nodiscard]] inline any_store reopened(trial& t, any_store store) {
    { const auto gone = std::move(store); }
    return t.open();
}

inline void many_lapses(trial& t) {
    auto store = t.open();
    put(store, draft_of(1));
    const auto claims = long_history(t);
    in_few(store, claims, [&](auto& tx, std::uint64_t n) {
        const auto taken = tx.claim(request(at(100 * static_cast<std::int64_t>(n))));
        t.equal(taken.size(), 1, "taken over when the lease has ended");
        t.equal(taken.front().epoch, n, "the epoch, which counts every claim");
        t.equal(taken.front().lapses, n - 1, "the lapses");
        t.equal(taken.front().attempts, n == 1 ? 1 : n - 1, "the attempts, without the first takeover");
    });
    if (t.can().durable) {
        store = reopened(t, std::move(store));
    }
    const auto before = get(store, 1);
    t.equal(before.epoch, claims, "the epoch that is stored");
    t.equal(before.lapses, claims - 1, "the lapses that are stored");
    t.equal(settle(store, {id_of(1), claims - 256}, succeed{}).verdict, verdict::stale, "an epoch 256 claims ago");
    if (claims > 65'536) {
        t.equal(settle(store, {id_of(1), claims - 65'536}, succeed{}).verdict, verdict::stale,
                "an epoch 65,536 claims ago");
    }
    t.equal(settle(store, {id_of(1), claims}, succeed{}).verdict, verdict::applied, "the epoch of the last claim");
}

inline void rolls_back_many(trial& t) {
    auto store = t.open();
    vouch::enqueue(store, numbered(many, draft_of(1)), at(0));
    from_begin(store, [&](auto& tx) {
        const auto taken = tx.claim(request(at(0), {.limit = t.can().limits.batch_max}));
        tx.enqueue(numbered(many, draft_of(5'001, {.queue = "r"})), at(0));
        auto q = query::all("r");
        q.limit = t.can().limits.batch_max;
        t.equal(tx.list(q).size(), many, "its own entries, listed in a transaction");
        t.equal(tx.counts("r")[state::pending], many, "its own entries, counted in a transaction");
        q.queue = "q";
        const auto own = tx.list(q);
        t.equal(own.size(), taken.size(), "the entries of an earlier transaction");
        t.equal(own.back().state, state::claimed, "the last of its own claims");
    });
    t.equal(store.counts("q"), state_counts{{many, 0, 0, 0, 0}}, "the counts after a large rollback");
    t.equal(store.counts("r"), state_counts{}, "the counts of the other queue after a large rollback");
    t.equal(take(store, at(0), {.limit = t.can().limits.batch_max}).size(), many, "claimed after a large rollback");
}

inline void many_survive(trial& t) {
    std::vector<entry> before;
    {
        auto store = t.open();
        const auto entries = claimed(t, store, numbered(many, draft_of(1, {.payload = "payload"})));
        std::vector<vouch::settle> batch;
        for (const auto& e : entries) {
            batch.push_back({ticket_of(e), outcome_of(e.id.low % 6, e.id.low)});
        }
        transact(store, [&](auto& tx) { return tx.settle(std::span(batch).first(many / 2), at(1)); });
        before = all_of(t, store, query::all("q"));
    }
    auto store = t.open();
    const auto after = all_of(t, store, query::all("q"));
    t.equal(after.size(), before.size(), "the number of entries after a reopen");
    for (std::size_t i = 0; i < after.size(); ++i) {
        t.equal(after[i], before[i], "entry " + show(i) + " of many after a reopen");
    }
    const auto taken = take(store, at(100'000), {.limit = many}).size();
    t.equal(taken, store.counts("q")[state::claimed], "all live entries are claimed after a reopen");
    t.equal(store.list(query::live("q")).front().state, state::claimed, "the first live entry is claimed");
}

/// Requires that the dead entry 1 is kept while the entries from 2 on are live, and no longer.
inline void needed_by_many(trial& t, const draft& needed, const draft& needing) {
    constexpr std::uint64_t live = 256;
    auto store = t.open(t.fresh_location());
    put_dead(store, needed);
    vouch::enqueue(store, numbered(live, needing), at(0));
    t.equal(purge(store, {.queue = "q", .before = at(1)}), 0, "purged of an entry that 256 live entries need");
    in_few(store, live, [&](auto& tx, std::uint64_t n) { std::ignore = tx.cancel(id_of(n + 1), "cancelled", at(5)); });
    t.equal(purge(store, {.queue = "q", .before = at(1)}), 1, "purged when no live entry needs it");
}

inline void keeps_what_many_need(trial& t) {
    needed_by_many(t, draft_of(1), draft_of(2, {.parent = id_of(1)}));
    if (t.can().groups) {
        needed_by_many(t, draft_of(1, {.group = "g"}), draft_of(2, {.group = "g"}));
    }
}

inline void many_failures(trial& t) {
    auto store = t.open();
    put(store, draft_of(1));
    const auto claims = long_history(t);
    in_few(store, claims, [&](auto& tx, std::uint64_t n) {
        const auto taken = tx.claim(request(at(0)));
        t.equal(taken.size(), 1, "claimed again");
        t.equal(settle_in(tx, ticket_of(taken.front()), retry{"e", at(0)}, at(0)).verdict, verdict::applied, "retried");
        t.equal(taken.front().failures, n - 1, "the failures of an entry that is claimed again");
    });
    t.equal(get(store, 1).failures, claims, "the failures that are stored");
    t.equal(get(store, 1).attempts, claims, "the attempts that are stored");
}

} // namespace sizes_checks

inline constexpr std::array sizes_of_histories{
    clause{"SIZE-13", layer::examples, level::may, needs::lanes,
           "A lane of hundreds of entries is claimed one at a time, in the order of its sequences, to the last.",
           sizes_checks::long_lane},
    clause{"SIZE-14", layer::examples, level::may, needs::groups,
           "A group of hundreds of entries is completed by the success of its last member, and by no other.",
           sizes_checks::large_group},
    clause{"SIZE-15", layer::examples, level::may, needs::groups,
           "In a batch that completes several groups, the settlement of the last member of each says so.",
           sizes_checks::completes_within_a_batch},
    clause{"SIZE-16", layer::examples, level::must, needs::nothing,
           "An entry that is requeued many times keeps its key and counts its generations; they are listed together "
           "and purged as one family, the oldest first.",
           sizes_checks::many_generations},
    clause{"SIZE-17", layer::examples, level::must, needs::nothing,
           "attempts, lapses and epoch count a long history of lapsed claims; earlier epochs stay stale.",
           sizes_checks::many_lapses},
    clause{"SIZE-18", layer::examples, level::must, needs::nothing,
           "attempts and failures count a long history of retries.", sizes_checks::many_failures},
    clause{"SIZE-19", layer::examples, level::must, needs::nothing,
           "A large transaction reads its own writes, and leaves nothing when it is rolled back.",
           sizes_checks::rolls_back_many},
    clause{"SIZE-20", layer::examples, level::may, needs::durable, "A large number of entries survives a reopen.",
           sizes_checks::many_survive},
    clause{"SIZE-21", layer::examples, level::must, needs::nothing,
           "A purge keeps an entry that hundreds of live entries need, as their parent or as a member of their group.",
           sizes_checks::keeps_what_many_need},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch
