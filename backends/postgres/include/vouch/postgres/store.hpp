// SPDX-License-Identifier: MIT
// The PostgreSQL store and its transaction.
//
// A store is a handle: copies share a pool of connections, which are closed with the last copy or transaction. Any number
// of transactions, of this process and of others, write at the same time: they run READ COMMITTED and lock the rows that
// their answers rest on. Reads on the store see the committed state and never wait for a writer.
//
// A store is safe for any number of threads; a transaction is used by one thread at a time. Neither may be used across a
// fork.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <libpq-fe.h>

#include <vouch/contract/capability.hpp>
#include <vouch/contract/draft.hpp>
#include <vouch/contract/entry.hpp>
#include <vouch/contract/error.hpp>
#include <vouch/contract/outcome.hpp>
#include <vouch/contract/request.hpp>
#include <vouch/contract/store.hpp>
#include <vouch/contract/validate.hpp>
#include <vouch/contract/validated_reader.hpp>
#include <vouch/contract/validated_writer.hpp>
#include <vouch/contract/verdict.hpp>
#include <vouch/postgres/detail/at_once.hpp>
#include <vouch/postgres/detail/database.hpp>
#include <vouch/postgres/detail/draft_inserter.hpp>
#include <vouch/postgres/detail/entry_reader.hpp>
#include <vouch/postgres/detail/entry_writer.hpp>
#include <vouch/postgres/detail/session.hpp>
#include <vouch/postgres/detail/sqlstate.hpp>
#include <vouch/postgres/detail/unchecked_writer.hpp>
#include <vouch/postgres/options.hpp>

namespace vouch {
inline namespace v0 {
namespace postgres {

class store;

/// A transaction, made by `store::begin`. The operations are those of the concept `transaction`.
class transaction : public validated_writer<transaction> {
  public:
    transaction(transaction&& other) noexcept
        : loan_(std::move(other.loan_)), session_(std::exchange(other.session_, {})) {
        forget_thread();
    }
    transaction& operator=(transaction&& other) noexcept {
        if (this != &other) {
            close();
            loan_ = std::move(other.loan_);
            session_ = std::exchange(other.session_, {});
            forget_thread();
        }
        return *this;
    }
    ~transaction() { close(); }

    /// If the connection is lost meanwhile, finds out whether the transaction has committed. Only if that is impossible,
    /// because the server has crashed or cannot be reached, the error `is_in_doubt`.
    void commit() {
        static_cast<void>(expect_open());
        const auto closing = std::move(loan_);
        detail::translate_bad_alloc([&] { closing->commit(session_); });
    }

    /// In one round trip, if nothing was done before, no draft is a duplicate, and it is one draft without a predecessor, or
    /// several that have neither predecessor nor group nor lane.
    std::vector<receipt> enqueue_and_commit(std::span<const draft> drafts, time_point now) {
        validate(drafts, expect_open());
        if (!loan_->has_begun() && is_one_statement(drafts)) {
            auto all_inserted = receipts_of(drafts); // first: after the commit nothing may fail
            if (commit_at_once([&](auto& lent) { return detail::enqueue_at_once(lent, session_, drafts, now); })) {
                return all_inserted;
            }
        }
        auto receipts = enqueue(drafts, now);
        commit();
        return receipts;
    }

    /// In one round trip, with what is left to be sent. A claim of one named entry is left to the caller.
    [[nodiscard]] std::optional<std::vector<entry>> claim_and_commit(const claim_request& request) {
        validate(request, expect_open().limits);
        std::optional<std::vector<entry>> claimed;
        if (request.limit == 0 || !request.only.is_nil()) {
            commit();
            return claimed;
        }
        static_cast<void>(commit_at_once([&](auto& lent) {
            claimed = detail::claim_at_once(lent, session_, request);
            return true;
        }));
        return claimed;
    }

    /// In one round trip, if nothing was done before and the settles are successes of entries without group, lane and
    /// parent. For a queue with others it takes the round trips of a settle and one more.
    [[nodiscard]] settled_and_claimed settle_claim_and_commit(std::span<const vouch::settle> settles, time_point now,
                                                              const claim_request& request) {
        validate(settles, expect_open().limits);
        validate(request, detail::supported.limits);
        if (settles.empty()) {
            return {.claimed = claim_and_commit(request)};
        }
        settled_and_claimed out;
        if (are_at_once(settles, request) && commit_at_once([&](auto& lent) {
                return detail::settle_at_once(lent, session_, {settles, now, request}, out);
            })) {
            return out;
        }
        out.settlements = settle(settles, now);
        if (!all_applied(out.settlements)) {
            close();
            return out;
        }
        close_after([&] {
            if (detail::entry_writer::are_successes(settles)) { // others say nothing about the entries of the queue
                loan_->in().plain().note(request.queue, session_.has_plain_settles);
            }
        });
        out.claimed = claim_and_commit(request);
        return out;
    }

    /// The connection of this transaction, which has begun on the server. Statements that the application runs on it are
    /// part of the transaction. Do not end the transaction through it. The pointer is good until the next operation of the
    /// transaction, which puts the connection into pipeline mode; then call this function again.
    [[nodiscard]] PGconn* connection() {
        static_cast<void>(expect_open());
        auto& on = use().on();
        on.set_doing("begin");
        on.exchange();
        on.leave_pipeline();
        if (session_.transaction_number == 0) { // the application may write; see `database::commit`
            detail::run_text(on.handle(), "SELECT txid_current()", "begin")[0].read(session_.transaction_number);
        }
        return on.handle();
    }

  private:
    friend class store;
    friend class validated_reader<transaction>;
    friend class validated_writer<transaction>;

    explicit transaction(std::unique_ptr<detail::loan> lent) noexcept : loan_(std::move(lent)) {}

    [[nodiscard]] const capabilities& expect_open() const {
        if (!loan_) {
            throw error(error_kind::misuse, "postgres: the transaction is closed; call begin() for a new one");
        }
        return detail::supported;
    }

    void close() const noexcept { loan_.reset(); }

    [[nodiscard]] detail::loan& use() const {
        loan_->in().pool().set_thread(&loan_->on(), std::this_thread::get_id());
        loan_->begin();
        return *loan_;
    }
    /// For statements that travel with the commit.
    [[nodiscard]] detail::loan& use_whole() const {
        loan_->in().pool().set_thread(&loan_->on(), std::this_thread::get_id());
        loan_->begin_whole();
        return *loan_;
    }

    template <class Operation>
    auto read(const Operation& operation) const {
        return detail::translate_bad_alloc([&] { return operation(detail::entry_reader(use().on())); });
    }
    template <class Operation>
    auto write(const Operation& operation) {
        return detail::translate_bad_alloc([&] {
            auto& lent = use();
            return operation(detail::unchecked_writer(lent.on(), session_, lent.in().positions(), &lent.in().heads()));
        });
    }

    [[nodiscard]] static bool is_one_statement(std::span<const draft> drafts) {
        return detail::translate_bad_alloc([&] { return detail::draft_inserter::is_one_statement(drafts); });
    }
    [[nodiscard]] static std::vector<receipt> receipts_of(std::span<const draft> drafts) {
        return detail::translate_bad_alloc([&] {
            std::vector<receipt> receipts;
            receipts.reserve(drafts.size());
            for (const auto& d : drafts) {
                receipts.push_back({receipt::kind::inserted, d.id});
            }
            return receipts;
        });
    }

    /// Whether the settles may be carried out in one round trip with the claim.
    [[nodiscard]] bool are_at_once(std::span<const vouch::settle> settles, const claim_request& request) {
        bool is_possible = false;
        close_after([&] {
            is_possible = !loan_->has_begun() && request.limit != 0 && request.only.is_nil() &&
                          loan_->in().plain().contains(request.queue) && detail::entry_writer::are_successes(settles);
        });
        return is_possible;
    }

    /// Returns what `operation(loan)` returns: whether it has committed. If not, nothing was written, and the transaction
    /// can begin again.
    template <class Operation>
    [[nodiscard]] bool commit_at_once(const Operation& operation) {
        bool has_committed = false;
        close_after([&] { has_committed = operation(use_whole()); });
        session_ = {};
        if (has_committed) {
            close();
        }
        return has_committed;
    }

    /// Closes the transaction if the operation throws.
    template <class Operation>
    void close_after(const Operation& operation) {
        try {
            detail::translate_bad_alloc(operation);
        } catch (...) {
            close();
            throw;
        }
    }

    /// After a move, the thread that uses the transaction next is its thread.
    void forget_thread() const noexcept {
        if (loan_) {
            loan_->in().pool().set_thread(&loan_->on(), std::nullopt);
        }
    }

    mutable std::unique_ptr<detail::loan> loan_; // null: closed; a read that fails closes, too
    detail::session session_{};
};

/// The store.
class store : public validated_reader<store> {
  public:
    using transaction = postgres::transaction;
    static constexpr int contract_level = vouch::contract_level;

    /// Connects, and by default creates the tables if they do not exist. `conninfo` is what libpq accepts: keywords and
    /// values, or a URI.
    explicit store(const std::string& conninfo, const options& how = {})
        : database_(detail::translate_bad_alloc([&] { return std::make_shared<detail::database>(conninfo, how); })) {}

    // Moving copies, so that a handle always has a store.
    store(const store&) = default;
    store& operator=(const store&) = default;
    ~store() = default;

    [[nodiscard]] vouch::capabilities capabilities() const noexcept { return detail::supported; }

    /// Takes a connection from the pool; the server hears of the transaction with its first operation. Throws `busy` if
    /// none is free within `options::busy_limit`, and `misuse` if this thread has all of them in use itself.
    [[nodiscard]] transaction begin() {
        return transaction(detail::translate_bad_alloc([&] {
            auto lent = std::make_unique<detail::loan>(database_, detail::pool::purpose::transaction);
            lent->watch_snapshots();
            return lent;
        }));
    }

    /// A number that changes with every commit that may have made work in the queue due sooner: of this process at once,
    /// of other processes a moment later. The first call begins to listen for the latter.
    [[nodiscard]] std::uint64_t wakes(std::string_view queue) const {
        validate_queue(queue, detail::supported.limits);
        return detail::translate_bad_alloc([&] {
            database_->listen(detail::supported.limits.lease_max, {});
            return database_->counts().of(queue);
        });
    }

    /// Waits until the queue's `wakes` differs from `seen`, `at_most` has passed, or a stop is requested. Returns
    /// `wakes`.
    std::uint64_t wait(std::string_view queue, std::uint64_t seen, std::chrono::nanoseconds at_most,
                       std::stop_token stop) const {
        validate_queue(queue, detail::supported.limits);
        // Extreme durations would overflow the clock.
        at_most = std::clamp<std::chrono::nanoseconds>(at_most, {}, detail::supported.limits.lease_max);
        return detail::translate_bad_alloc([&] {
            database_->listen(at_most, stop);
            return database_->counts().wait(queue, seen, at_most, std::move(stop));
        });
    }

  private:
    friend class validated_reader<store>;

    [[nodiscard]] const vouch::capabilities& expect_open() const noexcept { return detail::supported; }

    /// Lends a connection to the operation.
    template <class Operation>
    auto read(const Operation& operation) const {
        return detail::translate_bad_alloc([&] {
            detail::loan lent(database_, detail::pool::purpose::read);
            lent.configure();
            return operation(detail::entry_reader(lent.on(), &lent.in().heads()));
        });
    }

    std::shared_ptr<detail::database> database_;
};

} // namespace postgres
} // namespace v0
} // namespace vouch
