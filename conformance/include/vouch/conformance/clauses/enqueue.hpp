// SPDX-License-Identifier: MIT
// Enqueue: the entry that a draft becomes, the receipts, and the order of sequences.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <tuple>
#include <vector>

#include <vouch/conformance/clause.hpp>
#include <vouch/conformance/detail/model/model.hpp>
#include <vouch/conformance/detail/steps.hpp>
#include <vouch/conformance/detail/trial.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace enqueue_checks {

using receipts = std::vector<receipt>;

[[nodiscard]] constexpr receipt inserted(std::uint64_t n) noexcept { return {receipt::kind::inserted, id_of(n)}; }
[[nodiscard]] constexpr receipt duplicate(std::uint64_t n) noexcept { return {receipt::kind::duplicate, id_of(n)}; }
inline constexpr receipt refused{receipt::kind::refused, {}};

/// Enqueues a draft and brings it into a state: claimed until at(100), retrying from at(10).
inline void put_as(any_store& store, const draft& d, state wanted) {
    put(store, d);
    if (wanted == state::dead) {
        cancel(store, d.id);
    }
    if (wanted == state::pending || wanted == state::dead) {
        return;
    }
    const auto held = take_one(store, at(0), {.queue = d.queue, .only = d.id});
    if (wanted == state::retrying) {
        settle(store, held, retry{"e", at(10)});
    } else if (wanted == state::succeeded) {
        settle(store, held, succeed{"result"});
    }
}

/// Requires that the draft is stored as the model says. The store chooses the sequence.
inline void stored_as_drafted(const any_store& store, const draft& d, time_point now, std::string_view what) {
    model m;
    std::ignore = m.enqueue(d, now);
    auto expected = *m.find(d.id);
    const auto stored = store.find(d.id);
    expected.sequence = stored ? stored->sequence : 0;
    trial::equal(stored, std::optional{expected}, what);
}

inline void one_receipt_each(trial& t) {
    auto store = t.open();
    const std::vector batch{draft_of(3), draft_of(1), draft_of(2, {.queue = "r"})};
    t.equal(vouch::enqueue(store, batch, at(0)), receipts{inserted(3), inserted(1), inserted(2)}, "the receipts");
    t.equal(numbers(store.list(query::all("q"))), list_of{3, 1}, "stored in the queue \"q\"");
    t.equal(numbers(store.list(query::all("r"))), list_of{2}, "stored in the queue \"r\"");
}

inline void defaults(trial& t) {
    auto store = t.open();
    put(store, draft_of(1), at(-7));
    put(store, draft_of(2), at(7));
    stored_as_drafted(store, draft_of(1), at(-7),
                      "a plain draft is pending, created, updated and due at the given now");
    stored_as_drafted(store, draft_of(2), at(7), "the now of a later enqueue is its own");
    t.equal(get(store, 1).generation, 1, "the generation of an entry without predecessor");
}

inline void due_as_drafted(trial& t) {
    auto store = t.open();
    put(store, draft_of(1, {.due_at = at(50)}), at(0));
    put(store, draft_of(2, {.due_at = at(-50)}), at(0));
    stored_as_drafted(store, draft_of(1, {.due_at = at(50)}), at(0), "a draft due later");
    stored_as_drafted(store, draft_of(2, {.due_at = at(-50)}), at(0), "a draft due before now");
    t.equal(numbers(take(store, at(49))), list_of{2}, "claimed before the draft's due_at");
    t.equal(numbers(take(store, at(50), {.only = id_of(1)})), list_of{1}, "claimed at the draft's due_at");
}

inline void born_succeeded(trial& t) {
    auto store = t.open();
    for (const std::uint64_t n : {1U, 2U}) {
        const auto d = draft_of(n, {.result = n == 1 ? "" : "reply"});
        t.equal(put(store, d, at(5)), inserted(n), "a draft with a result");
        stored_as_drafted(store, d, at(5), "a draft with a result is succeeded from the beginning");
    }
    t.equal(store.counts("q")[state::succeeded], 2, "counted as succeeded");
    t.equal(store.next_due("q"), std::optional<time_point>{}, "next_due with an entry that was stored as succeeded");
    t.equal(take(store, at(100)).size(), 0, "claimed of entries that were stored as succeeded");
    t.equal(settle(store, {id_of(1), 0}, succeed{"other"}).verdict, verdict::repeated, "settled with epoch 0");
}

inline void batch_sees_itself(trial& t) {
    auto store = t.open();
    const std::vector batch{draft_of(1, {.key = "k"}), draft_of(2, {.key = "k"}), draft_of(1),
                            draft_of(3, {.key = "l", .result = ""}), draft_of(4, {.key = "l"})};
    t.equal(vouch::enqueue(store, batch, at(0)),
            receipts{inserted(1), duplicate(1), duplicate(1), inserted(3), duplicate(3)},
            "a later draft of a batch sees the earlier ones");
    t.equal(numbers(store.list(query::all("q"))), list_of{1, 3}, "stored of that batch");
    auto tx = store.begin();
    const std::array first{draft_of(5, {.queue = "r", .key = "k"})};
    const std::array second{draft_of(5), draft_of(6, {.queue = "r", .key = "k"})};
    t.equal(tx.enqueue(first, at(0)), receipts{inserted(5)}, "the first enqueue of a transaction");
    t.equal(tx.enqueue(second, at(0)), receipts{duplicate(5), duplicate(5)}, "the second enqueue of it");
}

inline void sequences_grow(trial& t) {
    auto store = t.open();
    const std::vector batch{draft_of(3), draft_of(2, {.queue = "r"}), draft_of(1)};
    vouch::enqueue(store, batch, at(9));
    put(store, draft_of(4), at(0));
    const std::vector seen{std::uint64_t{0}, get(store, 3).sequence, get(store, 2).sequence, get(store, 1).sequence,
                           get(store, 4).sequence};
    for (std::size_t i = 1; i < seen.size(); ++i) {
        if (seen[i - 1] >= seen[i]) {
            t.fail("sequences are greater than zero and increase with every draft, in all queues and at all times",
                   show(seen));
        }
    }
}

inline void sequences_not_reused(trial& t) {
    auto store = t.open();
    put(store, draft_of(1));
    for (const std::uint64_t n : {2U, 3U, 4U}) {
        put_dead(store, draft_of(n));
        const auto used = get(store, n).sequence;
        t.equal(purge(store, {.queue = "q", .before = at(1)}), 1, "purged of the newest");
        put(store, draft_of(n + 10));
        t.expect(get(store, n + 10).sequence > used, "the sequence is greater than that of a purged entry");
        cancel(store, id_of(n + 10), at(2));
        purge(store, {.queue = "q", .before = at(3)});
    }
    put_dead(store, draft_of(5));
    const auto used = get(store, 5).sequence;
    auto tx = store.begin();
    t.equal(tx.purge({.queue = "q", .before = at(1)}), 1, "purged of the newest, in a transaction");
    const std::array drafts{draft_of(6)};
    tx.enqueue(drafts, at(0));
    t.expect(get(tx, 6).sequence > used,
             "the sequence is greater than that of an entry purged in the same transaction");
}

inline void sequences_not_reused_after_reopen(trial& t) {
    std::uint64_t used = 0;
    {
        auto store = t.open();
        put_dead(store, draft_of(1));
        put_dead(store, draft_of(2));
        used = get(store, 2).sequence;
        t.equal(purge(store, {.queue = "q", .before = at(1)}), 2, "purged");
    }
    auto again = t.open();
    put(again, draft_of(3));
    t.expect(get(again, 3).sequence > used, "after a reopen the sequence is greater than all earlier ones");
}

} // namespace enqueue_checks

inline constexpr std::array enqueues{
    clause{"ENQUEUE-01", layer::examples, level::must, needs::nothing,
           "Enqueue returns one receipt per draft, in order; an inserted receipt has the draft's own id.",
           enqueue_checks::one_receipt_each},
    clause{"ENQUEUE-02", layer::examples, level::must, needs::nothing,
           "Fields that a draft leaves out get their defaults: pending, due now, created and updated now, generation "
           "1, everything else empty or zero.",
           enqueue_checks::defaults},
    clause{"ENQUEUE-03", layer::examples, level::must, needs::nothing,
           "A draft's due_at is kept as given, before or after now, and the entry can be claimed from that time on.",
           enqueue_checks::due_as_drafted},
    clause{"ENQUEUE-04", layer::examples, level::must, needs::nothing,
           "A draft with a result, even an empty one, is stored as succeeded and is never claimed.",
           enqueue_checks::born_succeeded},
    clause{"ENQUEUE-05", layer::examples, level::must, needs::nothing,
           "A draft sees the ids and keys of earlier drafts of its batch and its transaction.",
           enqueue_checks::batch_sees_itself},
    clause{"ENQUEUE-06", layer::examples, level::must, needs::nothing,
           "Sequences are greater than zero and increase with every draft, across all queues and whatever times are "
           "passed.",
           enqueue_checks::sequences_grow},
    clause{"ENQUEUE-07", layer::examples, level::must, needs::nothing,
           "A sequence is never reused, even after the newest entry was purged, in the same transaction or earlier.",
           enqueue_checks::sequences_not_reused},
    clause{"ENQUEUE-08", layer::examples, level::may, needs::durable,
           "A sequence is never reused after the store was closed and opened again.",
           enqueue_checks::sequences_not_reused_after_reopen},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch
