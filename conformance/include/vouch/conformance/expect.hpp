// SPDX-License-Identifier: MIT
// The expectations in the tests that the suite prints for a failure. Values are compared in their printed form, so that
// a person can read the test. An expectation that is not met throws `std::logic_error`.
#pragma once

#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <vouch/conformance/detail/show.hpp>
#include <vouch/conformance/values.hpp> // IWYU pragma: export
#include <vouch/contract/draft.hpp>
#include <vouch/contract/entry.hpp>
#include <vouch/contract/error.hpp>
#include <vouch/contract/outcome.hpp>
#include <vouch/contract/request.hpp>
#include <vouch/contract/store.hpp>
#include <vouch/contract/transact.hpp>
#include <vouch/contract/verdict.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance {

namespace detail {

inline void expect_text(const std::string& seen, std::string_view wanted) {
    if (seen != wanted) {
        throw std::logic_error("expected " + std::string(wanted) + ", seen " + seen);
    }
}

} // namespace detail

/// Requires that `seen` prints as `wanted`.
template <class T>
void expect(const T& seen, std::string_view wanted) {
    detail::expect_text(detail::show_briefly(seen), wanted);
}

/// Requires that `f` throws a `vouch::error` of this kind.
template <class F>
void expect_error(error_kind wanted, const F& f) {
    std::string seen = "no error";
    try {
        f();
    } catch (const error& e) {
        seen = detail::show(e.kind());
    }
    detail::expect_text(seen, detail::show(wanted));
}

/// Requires that `f` throws no `vouch::error`.
template <class F>
void expect_no_error(const F& f) {
    try {
        f();
    } catch (const error& e) {
        detail::expect_text(detail::show(e.kind()), "no error");
    }
}

/// Calls `f` and ignores a `vouch::error`.
template <class F>
void let_fail(const F& f) {
    try {
        f();
    } catch (const error&) { // NOLINT(bugprone-empty-catch): the printed test marks a call that may fail
    }
}

/// Enqueues and commits: in one call if the store has it, so that a test of such a store runs on any store.
template <class Transaction>
std::vector<receipt> enqueue_and_commit(Transaction& tx, std::span<const draft> drafts, time_point now) {
    if constexpr (requires { tx.enqueue_last(drafts, now); }) { // a transaction of `any_store`
        return tx.enqueue_last(drafts, now);
    } else {
        return vouch::detail::enqueue_and_commit(tx, drafts, now);
    }
}

/// The same for a claim. Nothing: the store has left the claim to another transaction.
template <class Transaction>
[[nodiscard]] std::optional<std::vector<entry>> claim_and_commit(Transaction& tx, const claim_request& request) {
    if constexpr (requires { tx.claim_last(request); }) {
        return tx.claim_last(request);
    } else if constexpr (committing_transaction<Transaction>) {
        return tx.claim_and_commit(request);
    } else {
        auto claimed = tx.claim(request);
        tx.commit();
        return claimed;
    }
}

/// The same for settles and a claim. If a settle is refused, nothing is committed.
template <class Transaction>
[[nodiscard]] settled_and_claimed settle_claim_and_commit(Transaction& tx, std::span<const settle> settles,
                                                          time_point now, const claim_request& request) {
    if constexpr (requires { tx.settle_last(settles, now, request); }) {
        return tx.settle_last(settles, now, request);
    } else if constexpr (committing_transaction<Transaction>) {
        return tx.settle_claim_and_commit(settles, now, request);
    } else {
        settled_and_claimed out{.settlements = tx.settle(settles, now)};
        if (all_applied(out.settlements)) {
            out.claimed = tx.claim(request);
            tx.commit();
        } else {
            const auto rolled_back = std::move(tx);
        }
        return out;
    }
}

/// Settles and commits, if no settle is refused. The store must leave the claim to another transaction, or has left it.
template <class Transaction>
[[nodiscard]] std::vector<settlement> settle_leave_claim_and_commit(Transaction& tx, std::span<const settle> settles,
                                                                    time_point now, const claim_request& request) {
    if constexpr (requires { tx.settle_last(settles, now, request); } || committing_transaction<Transaction>) {
        auto done = settle_claim_and_commit(tx, settles, now, request);
        expect(tickets_of(done.claimed), "none");
        return std::move(done.settlements);
    } else {
        auto settlements = tx.settle(settles, now);
        if (all_applied(settlements)) {
            tx.commit();
        } else {
            const auto rolled_back = std::move(tx);
        }
        return settlements;
    }
}

/// A claim that the store must leave to another transaction, or has left to it. A store that cannot claim and commit in
/// one call only commits.
template <class Transaction>
void leave_claim_and_commit(Transaction& tx, const claim_request& request) {
    if constexpr (requires { tx.claim_last(request); } || committing_transaction<Transaction>) {
        expect(tickets_of(claim_and_commit(tx, request)), "none");
    } else {
        tx.commit();
    }
}

} // namespace conformance
} // namespace v0
} // namespace vouch
