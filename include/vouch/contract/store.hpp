// SPDX-License-Identifier: MIT
// The contract between vouch and a store, as four concepts: `reader`, `writer`, `transaction` and `store`. Three
// more, `waking_store`, `enqueuing_store` and `committing_transaction`, are optional. The smallest example is `examples/log_store`; the store with
// every capability is that for PostgreSQL. If a type misses an operation, `explain.hpp` says which; the conformance suite
// checks the rules that a concept cannot express.
//
// Rules for all operations:
//  1. Time and ids are arguments. A store never reads a clock and never makes an id.
//  2. Every write is conditional and returns a verdict. What a verdict rests on, `repeated` included, is protected until
//     the transaction ends: a store with several writers locks the row that it reads, or finds out at commit that the
//     row has changed and throws `conflict`. To repeat the condition in the write is not enough, because a nudge changes
//     neither epoch nor state, and `repeated` writes nothing.
//  3. A batch returns one answer per item, in order. If one item is invalid, the whole batch throws before anything is
//     written.
//  4. Facts of the domain are return values. Faults throw `vouch::error`.
//  5. After any error except `invalid_argument` the transaction is closed, as it is after `commit` and when it has been
//     moved from. Using a closed transaction throws `misuse`.
//  6. Any operation of a transaction may throw `conflict`. The transaction is then rolled back and its verdicts are
//     void; the caller repeats it from `begin` (`transact` does). One of the conflicting transactions always succeeds.
//  7. Only `commit`, and an operation that includes it, throws an error that `is_in_doubt`: the commit may or may not have
//     taken effect. The caller then
//     - forgets the claims of the transaction: it does not run, settle, extend or release them, because another worker
//       may hold an equal ticket; the lease expires and the entries are claimed again;
//     - repeats its settles, all of them, with the same tickets: `repeated` or `unknown` means that the first commit
//       took effect, `stale` that another claim has taken over;
//     - repeats its enqueues, all of them, with the same ids: a duplicate of the same id means that it is stored.
//  8. Transactions are serializable in what they answer about stored entries that they name. Everything else is true at
//     the moment of the call, and other transactions may commit before this one does: that an entry, a key or an id is
//     absent (`unknown`, `refused`, `inserted`), which entries a purge leaves, lists, counts and `next_due`. A store may
//     be stricter.
//  9. An open transaction touches the entries that it names and those that its verbs reach: the parent and the next
//     entry of the lane of an entry that ends, and the entry of which a draft is a duplicate. If it ends with `conflict`,
//     it may have touched everything in the queue of its claim or purge.
// 10. Names (queue, topic, key, group, lane, worker, error code, header name) are valid UTF-8 without control
//     characters, and two names are equal only if their bytes are. Payload, progress, result and header values are bytes.
//
// Not required: priorities, fairness between lanes, sequences without gaps, transactions across stores.
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

/// Reads entries and changes nothing.
///  1. `find` returns the entry with its payload, or nothing.
///  2. `list` returns the entries that the query selects, by ascending sequence.
///  3. `counts` returns the number of entries of the queue in every state. It may read every row of the queue; vouch
///     never calls it while it emits, claims or settles.
///  4. `next_due` returns the smallest gate of the queue, which may be in the past, or nothing. The gate of an entry is
///     the time from which a claim may take it: the end of its lease if it is claimed, else its due time. An entry that
///     is terminal, or blocked in its lane, has no gate.
template <class R>
concept reader = requires(const R& r, const id& an_id, const query& q, std::string_view queue) {
    { r.find(an_id) } -> std::same_as<std::optional<entry>>;
    { r.list(q) } -> std::same_as<std::vector<entry>>;
    { r.counts(queue) } -> std::same_as<state_counts>;
    { r.next_due(queue) } -> std::same_as<std::optional<time_point>>;
};

/// Reads and writes within a transaction. Reads see the writes of the same transaction.
///  1. `enqueue` stores each draft once. A draft whose id is stored is a duplicate of that entry. A draft whose queue
///     and key are stored, in any generation, is a duplicate of the newest. A dead entry gets at most one successor.
///     Within a batch, later drafts see earlier ones.
///  2. `claim` takes the entries whose gate is at or before `now`, the first `limit` by (gate, sequence). It returns
///     them by (due_at, sequence), as they are after the claim. It may pass over an entry that another open transaction
///     touches, and over no other. A claim is an attempt, unless it takes over after the first lapse in a row. Its
///     cost must not grow with the number of future, blocked, claimed or terminal entries.
///  3. `settle` is decided by the ticket alone, never by the time. When an entry becomes terminal, by any verb, the
///     same transaction nudges its parent and gives the next entry of its lane a gate.
///  4. `extend` sets `lease_until` to the later of `lease_until` and `now + lease`.
///  5. `nudge` and `cancel` do what `lifecycle.hpp` says.
///  6. `purge` removes terminal entries that no live entry needs, as `purge_request` says, and returns their number. It
///     may read a bounded number of entries; the next call continues from there.
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

/// A writer that can be committed. Before `commit` no other reader sees any of its writes; after `commit` all readers
/// see all of them. If it is destroyed without `commit`, nothing of it remains, not even a dedup key. A transaction may
/// move between threads, but only one thread may use it at a time.
template <class T>
concept transaction = writer<T> && std::movable<T> && requires(T& tx) {
    { tx.commit() } -> std::same_as<void>;
};

/// What `settle_claim_and_commit` returns.
struct settled_and_claimed {
    std::vector<settlement> settlements{};       ///< what `settle` returns
    std::optional<std::vector<entry>> claimed{}; ///< what `claim_and_commit` returns; nothing if a settle was refused
    [[nodiscard]] friend bool operator==(const settled_and_claimed&, const settled_and_claimed&) = default;
};

/// A transaction whose last operations can travel with its commit. Optional: it saves a store behind a network round
/// trips. A store declares the capability `committing` exactly if its transactions model it. `vouch::enqueue`,
/// `vouch::claim`, runners and workers use it if there is one, and otherwise call the operations and then `commit`. After
/// each of the three the transaction is closed, whatever it returns or throws, except for `invalid_argument`. If it
/// throws, nothing of the transaction remains, unless the error `is_in_doubt`.
///  1. `enqueue_and_commit` does and returns what `enqueue` does, and commits.
///  2. `claim_and_commit` does and returns what `claim` does, and commits. Or it claims nothing, commits and returns
///     nothing; the caller then claims in another transaction. It must do so if an entry that it would claim would have
///     `lapses` above 0, now or from an earlier claim: the caller may have to hand such an entry back in the transaction
///     that claims it.
///  3. `settle_claim_and_commit` does what `settle` does and then, if every verdict is `applied`, what `claim_and_commit`
///     does; so it can claim what the settles have made due. If a verdict is not `applied`, it rolls back: nothing of the
///     transaction remains, earlier writes included, and nothing is claimed.
template <class T>
concept committing_transaction = transaction<T> &&
    requires(T& tx, std::span<const draft> drafts, std::span<const settle> settles, time_point now,
             const claim_request& claim) {
    { tx.enqueue_and_commit(drafts, now) } -> std::same_as<std::vector<receipt>>;
    { tx.claim_and_commit(claim) } -> std::same_as<std::optional<std::vector<entry>>>;
    { tx.settle_claim_and_commit(settles, now, claim) } -> std::same_as<settled_and_claimed>;
};

/// Holds the entries. Any number of threads may call `begin` and read at the same time. Reads on the store see
/// committed entries and never wait for a writer. `begin` may wait until another transaction ends.
template <class S>
concept store = reader<S> && transaction<typename S::transaction> && requires(S& s, const S& looked_at) {
    { s.begin() } -> std::same_as<typename S::transaction>;
    { looked_at.capabilities() } -> std::same_as<capabilities>;
    { S::contract_level } -> std::convertible_to<int>;
};

/// A store with the capability `wakes`. Each queue has a number that changes with every commit that may have made work
/// due sooner, at the commit or a moment later.
///  1. `wakes` returns the number.
///  2. `wait` returns it as soon as it differs from `seen`, after `at_most`, or when `stop` is requested.
/// A wake-up is only a hint: a store that drops every one loses no work, because workers poll as well.
template <class S>
concept waking_store = store<S> &&
    requires(S& s, std::string_view queue, std::uint64_t seen, std::chrono::nanoseconds at_most, std::stop_token stop) {
    { s.wakes(queue) } -> std::same_as<std::uint64_t>;
    { s.wait(queue, seen, at_most, stop) } -> std::same_as<std::uint64_t>;
};

/// A store that can enqueue without `begin`. Optional: it lets a store commit the drafts of several threads together, each
/// of which gets its own receipts or its own error. `vouch::enqueue` uses it if there is one.
///  1. `enqueue` does and returns what `begin`, `enqueue` and `commit` do in a transaction of its own, and throws what
///     they throw.
template <class S>
concept enqueuing_store = store<S> && requires(S& s, std::span<const draft> drafts, time_point now) {
    { s.enqueue(drafts, now) } -> std::same_as<std::vector<receipt>>;
};

} // namespace v0
} // namespace vouch
