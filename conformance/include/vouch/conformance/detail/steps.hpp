// SPDX-License-Identifier: MIT
// Short functions for checks: numbered drafts, transactions of one call, and snapshots of everything that can be read.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include <vouch/conformance/any_store.hpp>
#include <vouch/conformance/detail/repeating_store.hpp>
#include <vouch/conformance/detail/show.hpp>
#include <vouch/conformance/detail/trial.hpp>
#include <vouch/contract/entry.hpp>
#include <vouch/contract/error.hpp>
#include <vouch/contract/outcome.hpp>
#include <vouch/contract/query.hpp>
#include <vouch/contract/transact.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

/// A draft with the number n in the queue "q". Other fields come from `more`.
[[nodiscard]] inline draft draft_of(std::uint64_t n, draft more = {}) {
    more.id = id_of(n);
    more.queue = more.queue.empty() ? "q" : more.queue;
    more.topic = more.topic.empty() ? "t" : more.topic;
    return more;
}

// Each of these is one transaction.

/// Runs `work(tx)`, which may commit. Repeats it from begin after a conflict.
template <class Store, class Work>
auto repeatedly(Store& store, Work&& work) {
    for (int left = conflicts_max;; --left) {
        try {
            auto tx = store.begin();
            return work(tx);
        } catch (const error& e) {
            if (e.kind() != error_kind::conflict || e.is_in_doubt()) {
                throw;
            }
            if (left == 0) {
                fail_endlessly();
            }
        }
    }
}

/// The same for work that keeps what it has read, such as sequences: it must be done again after every conflict.
template <class Store, class Work>
auto from_begin(Store& store, Work&& work) {
    const shown_conflicts raw;
    return repeatedly(store, work);
}

/// As `vouch::transact`, which it hides from checks, but with more tries: a store may have many conflicts.
template <class Work>
auto transact(any_store& store, Work&& work) {
    return repeatedly(store, [&](auto& tx) {
        if constexpr (std::is_void_v<decltype(work(tx))>) {
            work(tx);
            tx.commit();
        } else {
            auto result = work(tx);
            tx.commit();
            return result;
        }
    });
}

/// If the store commits with the last operation of a transaction, this is one operation, so that all checks use it.
inline receipt put(any_store& store, const draft& d, time_point now = at(0)) {
    const std::span<const draft> one(&d, 1);
    if (store.is_committing()) {
        return repeatedly(store, [&](auto& tx) { return tx.enqueue_last(one, now); }).front();
    }
    return transact(store, [&](auto& tx) { return tx.enqueue(one, now); }).front();
}

struct claim_options {
    std::size_t limit = 100;
    std::string queue = "q";
    duration lease{100};
    std::string worker = "w";
    id only{};
};

[[nodiscard]] inline claim_request request(time_point now, claim_options how = {}) {
    return {.queue = std::move(how.queue),
            .limit = how.limit,
            .now = now,
            .lease = how.lease,
            .worker = std::move(how.worker),
            .only = how.only};
}

/// As `vouch::claim`: in one operation, if the store has it and does not leave the claim to another transaction.
[[nodiscard]] inline std::vector<entry> take(any_store& store, time_point now, claim_options how = {}) {
    const auto wanted = request(now, std::move(how));
    if (store.is_committing()) {
        if (auto claimed = repeatedly(store, [&](auto& tx) { return tx.claim_last(wanted); })) {
            return std::move(*claimed);
        }
    }
    return transact(store, [&](auto& tx) { return tx.claim(wanted); });
}

/// Claims the only eligible entry and returns its ticket.
template <class Store>
[[nodiscard]] ticket take_one(Store& store, time_point now, claim_options how = {}) {
    const auto claimed = take(store, now, std::move(how));
    trial::equal(claimed.size(), std::size_t{1}, "entries claimed");
    return ticket_of(claimed.front());
}

/// Claims entry n, which is due at 0, and takes it over `lapses` times, each time exactly at the end of its lease of
/// 100 us. Returns the ticket of the last claim, which is at 100 us x `lapses`.
template <class Store>
ticket take_lapsed(Store& store, std::uint64_t n, std::uint32_t lapses) {
    auto mine = take_one(store, at(0), {.only = id_of(n)});
    for (std::uint32_t lapsed = 1; lapsed <= lapses; ++lapsed) {
        mine = take_one(store, at(100 * lapsed), {.only = id_of(n)});
    }
    return mine;
}

template <class Writer>
settlement settle_in(Writer& tx, const ticket& t, outcome o, time_point now) {
    const std::array settles{vouch::settle{t, std::move(o)}};
    return tx.settle(settles, now).front();
}

/// If the store settles, claims and commits in one operation, this is one, with a claim that finds nothing, so that all
/// checks use it.
inline settlement settle(any_store& store, const ticket& t, const outcome& o, time_point now = at(0)) {
    if (store.is_committing()) {
        const std::array settles{vouch::settle{t, o}};
        const auto nowhere = request(at(0), {.queue = "a queue without entries"});
        return repeatedly(store, [&](auto& tx) { return tx.settle_last(settles, now, nowhere); }).settlements.front();
    }
    return transact(store, [&](auto& tx) { return settle_in(tx, t, o, now); });
}

template <class Store>
verdict extend(Store& store, const ticket& t, time_point now, duration lease) {
    return transact(store, [&](auto& tx) { return tx.extend(std::span(&t, 1), now, lease).front(); });
}

template <class Store>
verdict nudge(Store& store, const id& wanted, time_point now = at(0)) {
    return transact(store, [&](auto& tx) { return tx.nudge(wanted, now); });
}

template <class Store>
verdict cancel(Store& store, const id& wanted, time_point now = at(0), std::string_view error = "cancelled") {
    return transact(store, [&](auto& tx) { return tx.cancel(wanted, error, now); });
}

template <class Store>
std::size_t purge(Store& store, const purge_request& r) {
    return transact(store, [&](auto& tx) { return tx.purge(r); });
}

/// Enqueues a draft and cancels it.
template <class Store>
void put_dead(Store& store, const draft& d, time_point now = at(0)) {
    trial::equal(put(store, d, now).what == receipt::kind::inserted, true, "enqueued");
    trial::equal(cancel(store, d.id, now), verdict::applied, "cancelled");
}

// Reads.

/// The entry with the number n, which must be stored.
template <class Reader>
[[nodiscard]] entry get(const Reader& reader, std::uint64_t n) {
    auto found = reader.find(id_of(n));
    if (!found) {
        trial::fail("entry " + std::to_string(n) + " is stored", "it is absent", "it is found");
    }
    return std::move(*found);
}

[[nodiscard]] inline std::vector<std::uint64_t> numbers(const std::vector<entry>& entries) {
    std::vector<std::uint64_t> out;
    out.reserve(entries.size());
    for (const auto& e : entries) {
        out.push_back(e.id.low);
    }
    return out;
}

/// For comparing with `numbers`.
using list_of = std::vector<std::uint64_t>;

/// What can be read with the names that checks use: the entries of queues "q" and "r", also by id and by parent; keys "k" and
/// "l"; groups "g" and "h"; and that other ids up to 10 are absent.
struct snapshot {
    std::vector<entry> found{};
    std::vector<std::vector<entry>> listed{};
    std::vector<state_counts> counts{};
    std::vector<std::optional<time_point>> due{};

    [[nodiscard]] friend bool operator==(const snapshot&, const snapshot&) = default;
};

template <class Reader>
[[nodiscard]] snapshot snapshot_of(const Reader& reader) {
    snapshot out;
    const auto add = [&](query q) {
        q.payloads = true;
        out.listed.push_back(reader.list(q));
    };
    for (const std::string queue : {"q", "r"}) {
        for (const auto& q : {query::all(queue), query::live(queue), query::dead(queue), query::keyed(queue, "k"),
                              query::keyed(queue, "l")}) {
            add(q);
        }
        out.counts.push_back(reader.counts(queue));
        out.due.push_back(reader.next_due(queue));
    }
    add(query::members("g"));
    add(query::members("h"));
    std::set<id> ids; // those of entries, and some that may be absent; each takes a call, so there are few
    std::set<id> parents{id_of(1)};
    for (std::uint64_t n = 1; n <= 10; ++n) {
        ids.insert(id_of(n));
    }
    for (const auto& list : out.listed) {
        for (const auto& e : list) {
            ids.insert(e.id);
            parents.insert(e.parent);
        }
    }
    for (const auto& one : ids) {
        if (auto e = reader.find(one)) {
            out.found.push_back(std::move(*e));
        }
    }
    for (const auto& one : parents) {
        if (!one.is_nil()) {
            add(query::children(one));
        }
    }
    return out;
}

/// Whether the wake number of a queue changes, at once or within a second.
[[nodiscard]] inline bool wakes_change(any_store& store, std::string_view queue, std::uint64_t seen) {
    using clock = std::chrono::steady_clock;
    for (const auto until = clock::now() + std::chrono::seconds{1}; store.wakes(queue) == seen;) {
        if (clock::now() > until) {
            return false;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds{1});
    }
    return true;
}

/// The parts that differ.
[[nodiscard]] inline std::pair<std::string, std::string> show_difference(const snapshot& seen,
                                                                         const snapshot& expected) {
    if (seen.found != expected.found) {
        return show_difference(seen.found, expected.found);
    }
    for (std::size_t i = 0; i < seen.listed.size(); ++i) {
        if (seen.listed[i] != expected.listed[i]) {
            return show_difference(seen.listed[i], expected.listed[i]);
        }
    }
    return seen.counts != expected.counts ? std::pair{show(seen.counts), show(expected.counts)}
                                          : std::pair{show(seen.due), show(expected.due)};
}

/// Requires that nothing has changed since `before`.
template <class Reader>
void unchanged(const Reader& reader, const snapshot& before, std::string_view what) {
    const auto now = snapshot_of(reader);
    if (!(now == before)) {
        auto [a, b] = show_difference(now, before);
        trial::fail(std::string(what), std::move(a), std::move(b));
    }
}

} // namespace conformance::detail
} // namespace v0
} // namespace vouch
