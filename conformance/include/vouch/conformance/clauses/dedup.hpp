// SPDX-License-Identifier: MIT
// Dedup: a draft is compared with all stored entries, first by id, then by key within its queue.
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

namespace dedup_checks {

using namespace enqueue_checks;

inline void id_is_taken(trial& t) {
    auto store = t.open();
    put(store, draft_of(1, {.payload = "first"}));
    const auto before = snapshot_of(store);
    t.equal(put(store, draft_of(1, {.queue = "r", .topic = "other", .payload = "second", .key = "k"}), at(5)),
            duplicate(1), "another draft with a stored id");
    unchanged(store, before, "a duplicate by id writes nothing");
    t.equal(put(store, draft_of(2, {.queue = "r", .key = "k"})), inserted(2), "the key of the duplicate draft");
}

inline void id_is_taken_in_every_state(trial& t) {
    auto store = t.open();
    for (std::uint64_t n = 1; n <= all_states.size(); ++n) {
        put_as(store, draft_of(n), all_states[n - 1]);
        const auto before = snapshot_of(store);
        t.equal(put(store, draft_of(n), at(5)), duplicate(n), "enqueued again while " + show(all_states[n - 1]));
        unchanged(store, before, "a duplicate by id writes nothing");
    }
}

inline void key_is_taken_in_every_state(trial& t) {
    for (const auto s : all_states) {
        auto store = t.open(t.fresh_location());
        put_as(store, draft_of(1, {.key = "k"}), s);
        put(store, draft_of(2, {.key = "l"}));
        const auto before = snapshot_of(store);
        t.equal(put(store, draft_of(3, {.key = "k"}), at(5)), duplicate(1), "the key of an entry that is " + show(s));
        unchanged(store, before, "a duplicate by key writes nothing");
    }
}

inline void other_keys_are_free(trial& t) {
    auto store = t.open();
    put(store, draft_of(1, {.key = "k"}));
    t.equal(put(store, draft_of(2, {.queue = "r", .key = "k"})), inserted(2), "the same key in another queue");
    t.equal(put(store, draft_of(3, {.key = "l"})), inserted(3), "another key in the same queue");
    t.equal(put(store, draft_of(4, {.queue = "r", .key = "k"})), duplicate(2), "the other queue's key again");
    t.equal(put(store, draft_of(5)), inserted(5), "a draft without a key");
    t.equal(put(store, draft_of(6)), inserted(6), "another draft without a key");
}

inline void keys_are_bytes(trial& t) {
    auto store = t.open();
    std::uint64_t n = 0;
    for (const std::string key :
         {"k", "K", "k ", " k", "kk", "\xc3\xa9", "e\xcc\x81", "\xf0\x9f\x93\xa6", "1", "01", "1.0"}) {
        ++n;
        t.equal(put(store, draft_of(n, {.key = key})), inserted(n), "a key that differs from another one");
        t.equal(put(store, draft_of(20, {.key = key})), duplicate(n), "the same key again");
    }
}

inline void id_before_key(trial& t) {
    auto store = t.open();
    put(store, draft_of(1, {.key = "k"}));
    put(store, draft_of(2, {.key = "l"}));
    t.equal(put(store, draft_of(2, {.key = "k"})), duplicate(2), "a stored id with the key of another entry");
}

inline void newest_generation(trial& t) {
    auto store = t.open();
    put_dead(store, draft_of(1, {.key = "k"}));
    t.equal(put(store, draft_of(9, {.key = "k"})), duplicate(1), "the key of a dead entry");
    for (const std::uint64_t n : {2U, 3U}) {
        put(store, draft_of(n, {.predecessor = id_of(n - 1)}));
        t.equal(put(store, draft_of(9, {.key = "k"})), duplicate(n), "the key when the newest generation is live");
        cancel(store, id_of(n));
        t.equal(put(store, draft_of(9, {.key = "k"})), duplicate(n), "the key when the newest generation is dead");
    }
    t.equal(numbers(store.list(query::keyed("q", "k"))), list_of{1, 2, 3}, "stored with that key");
}

inline void purge_frees(trial& t) {
    auto store = t.open();
    put_dead(store, draft_of(1, {.key = "k"}));
    purge(store, {.queue = "q", .before = at(1)});
    t.equal(put(store, draft_of(2, {.key = "k"})), inserted(2), "the key of a purged entry");
    t.equal(put(store, draft_of(1)), inserted(1), "the id of a purged entry");
    t.equal(get(store, 1).state, state::pending, "the state of the new entry with that id");
    put_dead(store, draft_of(3, {.key = "l"}));
    auto tx = store.begin();
    tx.purge({.queue = "q", .before = at(1)});
    const std::array drafts{draft_of(3, {.key = "l"})};
    t.equal(tx.enqueue(drafts, at(2)), receipts{inserted(3)}, "id and key in the transaction that purged them");
}

inline void elder_purge_frees_nothing(trial& t) {
    auto store = t.open();
    put_dead(store, draft_of(1, {.key = "k"}));
    put(store, draft_of(2, {.predecessor = id_of(1)}));
    cancel(store, id_of(2));
    t.equal(purge(store, {.queue = "q", .before = at(1), .limit = 1}), 1, "purged of two generations");
    t.equal(put(store, draft_of(9, {.key = "k"})), duplicate(2), "the key while a generation is still stored");
}

inline void repeated_batch(trial& t) {
    auto store = t.open();
    const std::vector batch{draft_of(1, {.key = "k"}), draft_of(2), draft_of(3, {.result = "r"})};
    vouch::enqueue(store, batch, at(0));
    const auto before = snapshot_of(store);
    t.equal(vouch::enqueue(store, batch, at(5)), receipts{duplicate(1), duplicate(2), duplicate(3)},
            "the same batch again");
    unchanged(store, before, "repeating a committed batch changes nothing");
}

} // namespace dedup_checks

inline constexpr std::array dedup{
    clause{
        "DEDUP-01", layer::examples, level::must, needs::nothing,
        "A draft whose id is stored is a duplicate of that entry; nothing of the draft is written, not even its key.",
        dedup_checks::id_is_taken},
    clause{"DEDUP-02", layer::examples, level::must, needs::nothing,
           "A stored id stays taken in every state of its entry.", dedup_checks::id_is_taken_in_every_state},
    clause{"DEDUP-03", layer::examples, level::must, needs::nothing,
           "A draft whose key is stored in its queue is a duplicate of the entry with that key, in any state.",
           dedup_checks::key_is_taken_in_every_state},
    clause{"DEDUP-04", layer::examples, level::must, needs::nothing,
           "Keys are unique per queue: the same key is free in other queues, and drafts without a key are never "
           "duplicates by key.",
           dedup_checks::other_keys_are_free},
    clause{"DEDUP-05", layer::examples, level::must, needs::nothing,
           "Two keys are equal only if all their bytes are equal.", dedup_checks::keys_are_bytes},
    clause{"DEDUP-06", layer::examples, level::must, needs::nothing, "The id is checked before the key.",
           dedup_checks::id_before_key},
    clause{"DEDUP-07", layer::examples, level::must, needs::nothing,
           "A draft whose key is stored in several generations is a duplicate of the newest one, live or dead.",
           dedup_checks::newest_generation},
    clause{"DEDUP-08", layer::examples, level::must, needs::nothing,
           "A purge frees the id and the key, within its own transaction too.", dedup_checks::purge_frees},
    clause{"DEDUP-09", layer::examples, level::must, needs::nothing,
           "A key stays taken until its newest generation is purged.", dedup_checks::elder_purge_frees_nothing},
    clause{"DEDUP-10", layer::examples, level::must, needs::nothing,
           "A batch that is repeated with the same ids returns duplicates and changes nothing.",
           dedup_checks::repeated_batch},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch
