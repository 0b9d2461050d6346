// SPDX-License-Identifier: MIT
// Sizes: batches with many items. Every item gets its own answer, in order, and its own values.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <vouch/conformance/clause.hpp>
#include <vouch/conformance/clauses/enqueue.hpp>
#include <vouch/conformance/detail/model/model.hpp>
#include <vouch/conformance/detail/steps.hpp>
#include <vouch/conformance/detail/trial.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace sizes_checks {

using namespace enqueue_checks;

/// More than any of the small numbers at which stores divide their work: 100, 256, 999, 1000, 1024.
inline constexpr std::uint64_t many = 1'100;

/// All entries of a path, with payloads.
[[nodiscard]] inline std::vector<entry> all_of(trial& t, const any_store& store, query q) {
    q.limit = t.can().limits.batch_max;
    q.payloads = true;
    return store.list(q);
}

/// Requires that the queue contains what the model contains. The store chooses the sequences.
inline void stored_as_modelled(trial& t, const any_store& store, model& m, const std::string& what) {
    const auto stored = all_of(t, store, query::all("q"));
    t.equal(stored.size(), m.records.size(), "the number of entries " + what);
    for (std::size_t i = 0; i < stored.size(); ++i) {
        m.records[i].entry.sequence = stored[i].sequence;
        t.equal(stored[i], m.records[i].entry, "entry " + show(i) + " of those " + what);
    }
}

/// Enqueues the drafts, and claims all of them at 0 until 100.
[[nodiscard]] inline std::vector<entry> claimed(trial& t, any_store& store, const std::vector<draft>& drafts) {
    return transact(store, [&](auto& tx) {
        tx.enqueue(drafts, at(0));
        auto taken = tx.claim(request(at(0), {.limit = t.can().limits.batch_max}));
        t.equal(taken.size(), drafts.size(), "claimed of a large batch");
        return taken;
    });
}

/// The draft of a large batch with the number n: some have headers and a trail, a few the key or the id of another.
[[nodiscard]] inline draft mixed_draft(std::uint64_t n) {
    auto d = draft_of(n, {.payload = "payload " + show(n), .attempts_max = static_cast<std::uint32_t>(n)});
    if (n % 3 == 0) {
        d.headers = {{"name", "value " + show(n)}};
        d.trail = {id_of(n)};
    }
    if (n % 4 == 1) {
        d.key = "key " + show(n);
    } else if (n % 4 == 2 && n > 400) {
        d.id = id_of(n - 400); // far back in the same batch
    } else if (n % 4 == 3) {
        d.key = "key " + show(n / 8 * 4 + 1); // in the first half of those before it
    }
    return d;
}

inline void receipts_in_order(trial& t) {
    auto store = t.open();
    std::vector<draft> stored;
    std::vector<draft> batch;
    for (std::uint64_t n = 1; n <= many; ++n) {
        if (n % 11 == 0) {
            stored.push_back(draft_of(n, {.key = "key " + show(n)}));
        }
        batch.push_back(mixed_draft(n));
    }
    model m;
    receipts expected;
    for (const auto& d : stored) {
        std::ignore = m.enqueue(d, at(0));
    }
    for (const auto& d : batch) {
        expected.push_back(m.enqueue(d, at(1)));
    }
    vouch::enqueue(store, stored, at(0));
    const auto seen = vouch::enqueue(store, batch, at(1));
    t.equal(seen.size(), expected.size(), "the number of receipts for a large batch");
    for (std::size_t i = 0; i < seen.size(); ++i) {
        t.equal(seen[i], expected[i], "receipt " + show(i) + " of a large batch with duplicates");
    }
    stored_as_modelled(t, store, m, "stored by a large batch with duplicates");
}

inline void claims_in_order(trial& t) {
    auto store = t.open();
    std::vector<draft> drafts;
    for (std::uint64_t n = 1; n <= many; ++n) {
        auto d = mixed_draft(n);
        d.id = id_of(n);
        d.key.clear();
        d.due_at = at(-static_cast<std::int64_t>(n * 7 % 500));
        drafts.push_back(std::move(d));
    }
    model m;
    for (const auto& d : drafts) {
        std::ignore = m.enqueue(d, at(0));
    }
    vouch::enqueue(store, drafts, at(0));
    stored_as_modelled(t, store, m, "before a large claim");
    for (const std::size_t limit : {std::size_t{1'030}, t.can().limits.batch_max}) {
        const auto how = request(at(limit == 1'030 ? 0 : 200), {.limit = limit});
        const auto expected = m.claim(how);
        const auto seen = claim(store, how);
        t.equal(seen.size(), expected.size(), "the size of a large claim");
        for (std::size_t i = 0; i < seen.size(); ++i) {
            t.equal(seen[i], expected[i], "entry " + show(i) + " of a large claim");
        }
        stored_as_modelled(t, store, m, "after a large claim");
    }
}

/// What a settle does to one entry, as the model says.
[[nodiscard]] inline std::pair<verdict, entry> settled(const entry& e, const vouch::settle& s, time_point now) {
    model m;
    m.records.push_back({e});
    const auto answer = m.settle(s, now).verdict;
    return {answer, m.records.front().entry};
}

/// An outcome whose values belong to the number n. `kind` is 0 to 4.
[[nodiscard]] inline outcome outcome_of(std::uint64_t kind, std::uint64_t n) {
    const auto text = show(n);
    const auto later = at(1'000 + static_cast<std::int64_t>(n));
    switch (kind) {
    case 0: return succeed{"result " + text};
    case 1: return retry{"error " + text, later};
    case 2: return bury{"error " + text, "result " + text};
    case 3: return advance{"progress " + text, later};
    default: return release{later};
    }
}

/// Settles the batch, and requires the answers and the entries that the model gives for each item alone.
inline void settles_each(trial& t, any_store& store, std::vector<entry> entries,
                         const std::vector<vouch::settle>& batch) {
    const auto seen = transact(store, [&](auto& tx) { return tx.settle(batch, at(50)); });
    t.equal(seen.size(), batch.size(), "the number of answers to a large batch of settles");
    for (std::size_t i = 0; i < batch.size(); ++i) {
        auto expected = verdict::unknown;
        if (const auto n = batch[i].ticket.id.low; n <= entries.size()) {
            std::tie(expected, entries[n - 1]) = settled(entries[n - 1], batch[i], at(50));
        }
        t.equal(seen[i], settlement{expected, false}, "the answer to settle " + show(i) + " of a batch");
    }
    const auto stored = all_of(t, store, query::all("q"));
    t.equal(stored.size(), entries.size(), "the number of entries after a large batch of settles");
    for (std::size_t i = 0; i < stored.size(); ++i) {
        t.equal(stored[i], entries[i], "the entry " + show(i + 1) + " after a batch of settles");
    }
}

inline void settles_in_order(trial& t) {
    auto store = t.open();
    const auto entries = claimed(t, store, numbered(many, draft_of(1)));
    std::vector<vouch::settle> batch;
    for (std::uint64_t n = 1; n <= many; ++n) {
        const auto kind = n % 9;
        const auto wrong = kind == 5 ? 7U : 1U;                                      // stale
        const auto far = kind == 6 && n > 300 ? n - 300 : kind == 7 ? 9'000 + n : n; // used up, unknown
        batch.push_back({{id_of(far), wrong}, outcome_of(kind, n)});
    }
    settles_each(t, store, entries, batch);
}

inline void runs_of_settles(trial& t) {
    for (std::uint64_t kind = 0; kind <= 4; ++kind) {
        auto store = t.open(t.fresh_location());
        const auto entries = claimed(t, store, numbered(20, draft_of(1)));
        std::vector<vouch::settle> batch;
        for (std::uint64_t n = 1; n <= entries.size(); ++n) {
            // Neighbours with equal values, and with different ones.
            batch.push_back({ticket_of(entries[n - 1]), outcome_of(kind, n % 5 == 0 ? n - 1 : n)});
        }
        settles_each(t, store, entries, batch);
    }
}

inline void all_succeed(trial& t) {
    auto store = t.open();
    const auto entries = claimed(t, store, numbered(many, draft_of(1)));
    std::vector<vouch::settle> batch;
    for (const auto& e : entries) {
        batch.push_back({ticket_of(e), succeed{"result " + show(e.id.low)}});
    }
    settles_each(t, store, entries, batch);
}

inline void extends_in_order(trial& t) {
    auto store = t.open();
    auto entries = claimed(t, store, numbered(many, draft_of(1)));
    std::vector<ticket> batch;
    std::vector<verdict> expected;
    for (std::uint64_t n = 1; n <= many; ++n) {
        const auto kind = n % 5;
        batch.push_back({id_of(kind == 1 ? 9'000 + n : n), kind == 2 ? 2U : 1U});
        expected.push_back(kind == 1 ? verdict::unknown : kind == 2 ? verdict::stale : verdict::applied);
        if (expected.back() == verdict::applied) {
            entries[n - 1].lease_until = at(90 + 200);
            entries[n - 1].updated_at = at(90);
        }
    }
    const auto seen = transact(store, [&](auto& tx) { return tx.extend(batch, at(90), duration{200}); });
    t.equal(seen.size(), batch.size(), "the number of answers to a large batch of tickets");
    for (std::size_t i = 0; i < batch.size(); ++i) {
        t.equal(seen[i], expected[i], "the answer to ticket " + show(i) + " of a large extend");
    }
    const auto stored = all_of(t, store, query::all("q"));
    for (std::size_t i = 0; i < many; ++i) {
        t.equal(stored[i], entries[i], "the entry " + show(i + 1) + " after a large extend");
    }
}

inline void largest_batches(trial& t) {
    const auto most = t.can().limits.batch_max;
    auto store = t.open();
    const auto receipts = vouch::enqueue(store, numbered(most, draft_of(1)), at(0));
    t.equal(receipts.back(), inserted(most), "the last receipt of the largest batch");
    t.equal(store.counts("q")[state::pending], most, "counted after the largest batch");
    const auto taken = take(store, at(0), {.limit = most});
    t.equal(taken.size(), most, "claimed with the largest limit");
    t.equal(take(store, at(99), {.limit = most}).size(), 0, "claimed again while all leases run");
    std::vector<vouch::settle> batch;
    for (const auto& e : taken) {
        batch.push_back({ticket_of(e), succeed{show(e.id.low)}});
    }
    const auto answers = transact(store, [&](auto& tx) {
        const auto extended = tx.extend(tickets_of(taken), at(1), duration{100});
        t.equal(extended, std::vector(most, verdict::applied), "the answers to the largest extend");
        return tx.settle(batch, at(2));
    });
    t.equal(answers, std::vector(most, settlement{verdict::applied, false}), "the answers to the largest settle");
    const auto listed = all_of(t, store, query::all("q"));
    t.equal(listed.size(), most, "listed with the largest limit");
    for (const auto& e : listed) {
        t.equal(e.result, show(e.id.low), "the result of an entry in the largest batch");
    }
    t.equal(store.counts("q")[state::succeeded], most, "counted after the largest settle");
    t.equal(purge(store, {.queue = "q", .before = at(3), .limit = most}), most, "purged with the largest limit");
    t.equal(store.counts("q").total(), 0, "left by the largest purge");
}

} // namespace sizes_checks

inline constexpr std::array sizes{
    clause{"SIZE-01", layer::examples, level::must, needs::nothing,
           "A large batch of drafts returns one receipt per draft, in order, whichever of them are duplicates by id or "
           "key of stored drafts or of earlier ones of the batch; each entry has its own draft's fields.",
           sizes_checks::receipts_in_order},
    clause{"SIZE-02", layer::examples, level::must, needs::nothing,
           "A large claim takes the first `limit` entries and returns each of them once, in order and with its own "
           "fields.",
           sizes_checks::claims_in_order},
    clause{"SIZE-03", layer::examples, level::must, needs::nothing,
           "Neighbours in a batch of settles with the same kind of outcome each get their own result, error, progress "
           "and time.",
           sizes_checks::runs_of_settles},
    clause{"SIZE-04", layer::examples, level::must, needs::nothing,
           "A large batch of settles returns one settlement per item, in order, and applies each outcome to its own "
           "entry.",
           sizes_checks::settles_in_order},
    clause{"SIZE-05", layer::examples, level::must, needs::nothing,
           "In a large batch of successes each entry gets its own result.", sizes_checks::all_succeed},
    clause{"SIZE-06", layer::examples, level::must, needs::nothing,
           "A large batch of tickets returns one verdict per ticket, in order, and extends exactly the valid ones.",
           sizes_checks::extends_in_order},
};

/// These take the most time, so they come last.
inline constexpr std::array largest_sizes{
    clause{"SIZE-26", layer::examples, level::must, needs::nothing,
           "enqueue, claim, extend, settle, list and purge handle batch_max entries in one call.",
           sizes_checks::largest_batches},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch
