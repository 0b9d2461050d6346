// SPDX-License-Identifier: MIT
// Sizes: long lanes, large groups, many generations and long histories of one entry.
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
    clause{"SIZE-14", layer::examples, level::may, needs::lanes,
           "A lane of hundreds of entries is claimed one at a time, in the order of its sequences, to the last.",
           sizes_checks::long_lane},
    clause{"SIZE-15", layer::examples, level::may, needs::groups,
           "A group of hundreds of entries is completed by the success of its last member, and by no other.",
           sizes_checks::large_group},
    clause{"SIZE-16", layer::examples, level::may, needs::groups,
           "In a batch that completes several groups, the settlement of the last member of each says so.",
           sizes_checks::completes_within_a_batch},
    clause{"SIZE-17", layer::examples, level::must, needs::nothing,
           "An entry that is requeued many times keeps its key and counts its generations; they are listed together "
           "and purged as one family, the oldest first.",
           sizes_checks::many_generations},
    clause{"SIZE-18", layer::examples, level::must, needs::nothing,
           "attempts, lapses and epoch count a long history of lapsed claims; earlier epochs stay stale.",
           sizes_checks::many_lapses},
    clause{"SIZE-19", layer::examples, level::must, needs::nothing,
           "attempts and failures count a long history of retries.", sizes_checks::many_failures},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch
