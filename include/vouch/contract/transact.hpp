// SPDX-License-Identifier: MIT
// Helpers over a store: `transact`, the bounded loop that repeats a transaction on `conflict`; and `enqueue` and `claim` in
// a transaction of their own.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <vouch/contract/draft.hpp>
#include <vouch/contract/entry.hpp>
#include <vouch/contract/error.hpp>
#include <vouch/contract/explain.hpp>
#include <vouch/contract/request.hpp>
#include <vouch/contract/store.hpp>
#include <vouch/contract/verdict.hpp>

namespace vouch {
inline namespace v0 {

inline constexpr int transact_tries = 16;

namespace detail {

/// Returns what `whole()` returns, which is a whole transaction. It is repeated on `conflict`.
template <class Whole>
auto repeat_on_conflict(const Whole& whole) {
    for (int left = transact_tries - 1;; --left) {
        try {
            return whole();
        } catch (const error& e) {
            if (e.kind() != error_kind::conflict || e.is_in_doubt() || left == 0) {
                throw;
            }
        }
    }
}

/// Runs `work(tx)`, which commits, and returns what it returns. On `conflict` it is repeated from `begin`.
template <class Store, class Work>
auto repeat_on_conflict(Store& store, const Work& work) {
    static_assert(explain_store<Store>());
    return repeat_on_conflict([&] {
        typename Store::transaction tx = store.begin();
        return work(tx);
    });
}

} // namespace detail

/// Runs `work(tx)` in a transaction of its own, commits, and returns what `work` returned. On `conflict` everything is
/// repeated from `begin`, at most `transact_tries` times in all; any other error goes through, and so does an exception
/// of `work`, which leaves nothing behind. Because of the repeats `work` should touch nothing but the transaction.
template <class Store, class Work>
auto transact(Store& store, Work&& work) {
    return detail::repeat_on_conflict(store, [&](auto& tx) {
        if constexpr (std::is_void_v<std::invoke_result_t<Work&, decltype(tx)>>) {
            work(tx);
            tx.commit();
        } else {
            auto result = work(tx);
            tx.commit();
            return result;
        }
    });
}

namespace detail {

/// Calls `whole()`, which is a whole transaction, and which can be repeated after a commit in doubt because it uses the
/// same ids again. Returns its result and whether an earlier commit was in doubt. If a repeat fails, its error is in doubt.
template <class Whole>
auto repeat_in_doubt(const Whole& whole) {
    bool in_doubt = false;
    for (int left = transact_tries - 1;; --left) {
        try {
            auto result = repeat_on_conflict(whole);
            return std::pair(std::move(result), in_doubt);
        } catch (const error& e) {
            if (in_doubt && !e.is_in_doubt()) {
                // The repeat says nothing about the commit that it was to resolve.
                throw error(e.kind(), e.what(), {.in_doubt = true, .code = e.code(), .text_code = e.text_code()});
            }
            if (!e.is_in_doubt() || left == 0) {
                throw;
            }
            in_doubt = true;
        }
    }
}

/// The same for `work(tx)` that does not commit.
template <class Store, class Work>
auto transact_in_doubt(Store& store, const Work& work) {
    static_assert(explain_store<Store>());
    return repeat_in_doubt([&] {
        typename Store::transaction tx = store.begin();
        auto result = work(tx);
        tx.commit();
        return result;
    });
}

/// The last operation of a transaction, and its commit.
template <class Transaction>
[[nodiscard]] std::vector<receipt> enqueue_and_commit(Transaction& tx, std::span<const draft> drafts, time_point now) {
    if constexpr (committing_transaction<Transaction>) {
        return tx.enqueue_and_commit(drafts, now);
    } else {
        auto receipts = tx.enqueue(drafts, now);
        tx.commit();
        return receipts;
    }
}

/// In a transaction of its own, in as few steps as the store can.
template <class Store>
[[nodiscard]] std::vector<receipt> enqueue_alone(Store& store, std::span<const draft> drafts, time_point now) {
    if constexpr (enqueuing_store<Store>) {
        return store.enqueue(drafts, now);
    } else {
        typename Store::transaction tx = store.begin();
        return detail::enqueue_and_commit(tx, drafts, now);
    }
}

/// Claims in a transaction of its own and in one step, if the store can. Nothing: it cannot, and nothing was claimed.
template <class Store>
[[nodiscard]] std::optional<std::vector<entry>> claim_at_once(Store& store, const claim_request& request) {
    if constexpr (committing_transaction<typename Store::transaction>) {
        return repeat_on_conflict(store, [&](auto& tx) { return tx.claim_and_commit(request); });
    } else {
        return std::nullopt;
    }
}

/// The receipt of a repeated insert: a duplicate of the very id that was to be inserted means that it was inserted.
[[nodiscard]] inline receipt resolved(receipt r, const id& inserted) noexcept {
    r.what = r.id == inserted ? receipt::kind::inserted : r.what;
    return r;
}

} // namespace detail

/// Enqueues in a transaction of its own. A commit in doubt is repeated with the same ids, so the drafts are stored
/// once; a draft that turns out to be stored by then counts as inserted. If the repeat fails, its error is in doubt.
template <class Store>
std::vector<receipt> enqueue(Store& store, std::span<const draft> drafts, time_point now) {
    static_assert(explain_store<Store>());
    auto [receipts, in_doubt] = detail::repeat_in_doubt([&] { return detail::enqueue_alone(store, drafts, now); });
    for (std::size_t i = 0; in_doubt && i < receipts.size(); ++i) {
        receipts[i] = detail::resolved(receipts[i], drafts[i].id);
    }
    return receipts;
}

template <class Store>
std::vector<entry> claim(Store& store, const claim_request& request) {
    if (auto claimed = detail::claim_at_once(store, request)) {
        return std::move(*claimed);
    }
    return transact(store, [&](auto& tx) { return tx.claim(request); });
}

} // namespace v0
} // namespace vouch
