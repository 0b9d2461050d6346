// SPDX-License-Identifier: MIT
// The contract a store fulfils, as four concepts: `reader`, `writer`, `transaction`, `store`; and `waking_store` for
// the capability `wakes`. The smallest model is the memory store (`backends/memory`); `explain.hpp` tells in plain
// words what a type lacks; the conformance suite checks what no concept can say.
//
// For all operations:
//  1. Time and ids are arguments. No store reads a clock or makes an id.
//  2. No write without a condition and a verdict. Never read a set, decide, then write by id.
//  3. Batches answer per item, in order. An invalid item rejects its whole batch before anything is written.
//  4. Facts of the domain are values; faults throw `vouch::error`.
//  5. After any error but `invalid_argument` the transaction is closed, as after commit and when moved from. Using a
//     closed one throws `misuse`.
//  6. Any operation or commit of a transaction may throw `conflict`: it is rolled back, its verdicts are void, and it
//  is
//     to be repeated from `begin` (`transact` does). Of the parties to a conflict one gets through.
//  7. An error that `is_in_doubt` comes from commit only: claims of that transaction are forgotten (never run, settled,
//     extended or released), settles are repeated whole under the same tickets (`repeated` or `unknown`: it had landed;
//     `stale`: lost), enqueues are repeated whole with the same ids (duplicate of the same id: it had landed).
//
// Not required: priorities, fairness between lanes, gapless sequences, atomicity across stores.
#pragma once

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stop_token>
#include <string_view>
#include <vector>

#include <vouch/contract/capability.hpp>
#include <vouch/contract/draft.hpp>
#include <vouch/contract/entry.hpp>
#include <vouch/contract/outcome.hpp>
#include <vouch/contract/query.hpp>
#include <vouch/contract/request.hpp>
#include <vouch/contract/verdict.hpp>

namespace vouch {
inline namespace v0 {

/// Looks without changing.
///  1. `find` gives the entry with its payload, or nothing.
///  2. `list` gives what the query says, by ascending sequence.
///  3. `counts` has every state, zero-filled. It may cost the queue's rows; nothing on the way of emit, claim or settle
///     calls it.
///  4. `next_due` is the smallest gate of the queue: lease end if claimed, none if terminal or blocked in its lane,
///  else
///     due_at. It may be in the past.
template <class R>
concept reader = requires(const R& r, const id& an_id, const query& q, std::string_view queue) {
    { r.find(an_id) } -> std::same_as<std::optional<entry>>;
    { r.list(q) } -> std::same_as<std::vector<entry>>;
    { r.counts(queue) } -> std::same_as<state_counts>;
    { r.next_due(queue) } -> std::same_as<std::optional<time_point>>;
};

/// Changes, within a transaction. Its reads see its own writes.
///  1. `enqueue`: an id that is stored is a duplicate of itself; a (queue, key) that is stored, in any generation, is a
///     duplicate of the newest; a successor is inserted once per dead predecessor. A later draft of the same batch sees
///     the earlier ones.
///  2. `claim`: eligible is exactly `gate <= now`; takes the first `limit` by (gate, sequence); returns them by
///     (due_at, sequence), as they are after the claim. It may pass over entries another open transaction has touched,
///     and only those. It is an attempt, unless it takes over after the first lapse in a row. Its cost does not grow
///     with future, blocked, claimed or terminal entries.
///  3. `settle`: by ticket alone, never by time. When an entry becomes terminal, by any verb, its parent is nudged and
///  the
///     next entry of its lane gets its gate, in the same transaction.
///  4. `extend`: lease_until = max(lease_until, now + lease).
///  5. `nudge`, `cancel`: as `lifecycle.hpp` says.
///  6. `purge`: removes terminal entries that no live entry needs, as `purge_request` says. Returns how many. It
///     may look at a bounded number of entries, and then goes on where it stopped when it is called again.
template <class W>
concept writer = reader<W> &&
    requires(W& tx, std::span<const draft> drafts, const claim_request& claim, std::span<const settle> settles,
             std::span<const ticket> tickets, const id& an_id, std::string_view error, const purge_request& purge,
             time_point now, duration lease) {
    { tx.enqueue(drafts, now) } -> std::same_as<std::vector<receipt>>;
    { tx.claim(claim) } -> std::same_as<std::vector<entry>>;
    { tx.settle(settles, now) } -> std::same_as<std::vector<settlement>>;
    { tx.extend(tickets, now, lease) } -> std::same_as<std::vector<verdict>>;
    { tx.nudge(an_id, now) } -> std::same_as<verdict>;
    { tx.cancel(an_id, error, now) } -> std::same_as<verdict>;
    { tx.purge(purge) } -> std::same_as<std::size_t>;
};

/// A writer of its own: nothing of it is seen before `commit`, all of it after; destruction without commit leaves
/// nothing, dedup keys included. It may move between threads and is used by one at a time.
template <class T>
concept transaction = writer<T> && std::movable<T> && requires(T& tx) {
    { tx.commit() } -> std::same_as<void>;
};

/// Holds the work. Safe for concurrent `begin` and reads. Reads on the store see what is committed and never wait for
/// writers; `begin` may wait for another transaction to end.
template <class S>
concept store = reader<S> && transaction<typename S::transaction> && requires(S& s, const S& looked_at) {
    { s.begin() } -> std::same_as<typename S::transaction>;
    { looked_at.capabilities() } -> std::same_as<capabilities>;
    { S::contract_level } -> std::convertible_to<int>;
};

/// Capability `wakes`: a number per queue that changes with every commit that may have brought work nearer, and a wait
/// for it to differ from the one seen. Only ever a hint: dropping every wake-up loses nothing.
template <class S>
concept waking_store = store<S> &&
    requires(S& s, std::string_view queue, std::uint64_t seen, std::chrono::nanoseconds at_most, std::stop_token stop) {
    { s.wakes(queue) } -> std::same_as<std::uint64_t>;
    { s.wait(queue, seen, at_most, stop) } -> std::same_as<std::uint64_t>;
};

} // namespace v0
} // namespace vouch
