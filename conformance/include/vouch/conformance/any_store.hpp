// SPDX-License-Identifier: MIT
// A type-erased store, so that the suite is compiled once and not for every store type. `any_store` is itself a store.
// Copies share one handle. Errors of the wrapped store are passed on.
//
// `enqueue_and_commit`, `claim_and_commit` and `settle_claim_and_commit` are called `enqueue_last`, `claim_last` and
// `settle_last` here. With their own names `any_transaction` would model `committing_transaction`, whatever it wraps, and
// `vouch::claim` and runners would call them on stores that do not have them.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <vouch/contract/error.hpp>
#include <vouch/contract/explain.hpp>
#include <vouch/contract/store.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance {

/// The reads of a store or a transaction.
class reader_interface {
  public:
    virtual ~reader_interface() = default;
    [[nodiscard]] virtual std::optional<entry> find(const id& wanted) const = 0;
    [[nodiscard]] virtual std::vector<entry> list(const query& q) const = 0;
    [[nodiscard]] virtual state_counts counts(std::string_view queue) const = 0;
    [[nodiscard]] virtual std::optional<time_point> next_due(std::string_view queue) const = 0;
};

/// The operations of a transaction.
class transaction_interface : public reader_interface {
  public:
    virtual std::vector<receipt> enqueue(std::span<const draft> drafts, time_point now) = 0;
    [[nodiscard]] virtual std::vector<entry> claim(const claim_request& request) = 0;
    [[nodiscard]] virtual std::vector<settlement> settle(std::span<const vouch::settle> settles, time_point now) = 0;
    [[nodiscard]] virtual std::vector<verdict> extend(std::span<const ticket> tickets, time_point now,
                                                      duration lease) = 0;
    [[nodiscard]] virtual verdict nudge(const id& wanted, time_point now) = 0;
    [[nodiscard]] virtual verdict cancel(const id& wanted, std::string_view error, time_point now) = 0;
    virtual std::size_t purge(const purge_request& request) = 0;
    virtual void commit() = 0;
    /// `enqueue_and_commit`. Called only if `store_interface::is_committing`.
    virtual std::vector<receipt> enqueue_last(std::span<const draft> drafts, time_point now) = 0;
    /// `claim_and_commit`. Called only if `store_interface::is_committing`.
    [[nodiscard]] virtual std::optional<std::vector<entry>> claim_last(const claim_request& request) = 0;
    /// `settle_claim_and_commit`. Called only if `store_interface::is_committing`.
    [[nodiscard]] virtual settled_and_claimed settle_last(std::span<const vouch::settle> settles, time_point now,
                                                          const claim_request& request) = 0;
    /// Moves the wrapped transaction into a new object and leaves this one moved from.
    [[nodiscard]] virtual std::unique_ptr<transaction_interface> move_out() = 0;
    /// Move-assigns the transaction that `from` wraps, which must be of the same type.
    virtual void move_assign(transaction_interface& from) = 0;
};

/// The operations of a store.
class store_interface : public reader_interface {
  public:
    [[nodiscard]] virtual std::unique_ptr<transaction_interface> begin() = 0;
    [[nodiscard]] virtual vouch::capabilities capabilities() const = 0;
    /// Whether the transactions have `enqueue_and_commit`, `claim_and_commit` and `settle_claim_and_commit`, which the
    /// store must then declare.
    [[nodiscard]] virtual bool is_committing() const = 0;
    /// Called only if the store declares the capability `wakes`.
    [[nodiscard]] virtual std::uint64_t wakes(std::string_view queue) = 0;
    virtual std::uint64_t wait(std::string_view queue, std::uint64_t seen, std::chrono::nanoseconds at_most,
                               std::stop_token stop) = 0;
};

/// The transaction of `any_store`.
class any_transaction {
  public:
    explicit any_transaction(std::unique_ptr<transaction_interface> wrapped) : wrapped_(std::move(wrapped)) {}

    [[nodiscard]] std::optional<entry> find(const id& wanted) const { return wrapped_->find(wanted); }
    [[nodiscard]] std::vector<entry> list(const query& q) const { return wrapped_->list(q); }
    [[nodiscard]] state_counts counts(std::string_view queue) const { return wrapped_->counts(queue); }
    [[nodiscard]] std::optional<time_point> next_due(std::string_view queue) const { return wrapped_->next_due(queue); }

    std::vector<receipt> enqueue(std::span<const draft> drafts, time_point now) {
        return wrapped_->enqueue(drafts, now);
    }
    [[nodiscard]] std::vector<entry> claim(const claim_request& request) { return wrapped_->claim(request); }
    [[nodiscard]] std::vector<settlement> settle(std::span<const vouch::settle> settles, time_point now) {
        return wrapped_->settle(settles, now);
    }
    [[nodiscard]] std::vector<verdict> extend(std::span<const ticket> tickets, time_point now, duration lease) {
        return wrapped_->extend(tickets, now, lease);
    }
    [[nodiscard]] verdict nudge(const id& wanted, time_point now) { return wrapped_->nudge(wanted, now); }
    [[nodiscard]] verdict cancel(const id& wanted, std::string_view error, time_point now) {
        return wrapped_->cancel(wanted, error, now);
    }
    std::size_t purge(const purge_request& request) { return wrapped_->purge(request); }
    void commit() { wrapped_->commit(); }
    std::vector<receipt> enqueue_last(std::span<const draft> drafts, time_point now) {
        return wrapped_->enqueue_last(drafts, now);
    }
    [[nodiscard]] std::optional<std::vector<entry>> claim_last(const claim_request& request) {
        return wrapped_->claim_last(request);
    }
    [[nodiscard]] settled_and_claimed settle_last(std::span<const vouch::settle> settles, time_point now,
                                                  const claim_request& request) {
        return wrapped_->settle_last(settles, now, request);
    }

    /// Move-constructs the wrapped transaction. This object stays usable and wraps the one moved from.
    [[nodiscard]] any_transaction move_out() { return any_transaction(wrapped_->move_out()); }
    /// Move-assigns the transaction that `from` wraps to the one wrapped here. Both stores must be of the same type.
    void move_assign(any_transaction& from) { wrapped_->move_assign(*from.wrapped_); }

  private:
    std::unique_ptr<transaction_interface> wrapped_;
};

static_assert(transaction<any_transaction> && !committing_transaction<any_transaction>);

/// A store of any type.
class any_store {
  public:
    using transaction = any_transaction;
    static constexpr int contract_level = vouch::contract_level;

    explicit any_store(std::shared_ptr<store_interface> wrapped) : wrapped_(std::move(wrapped)) {}

    [[nodiscard]] std::optional<entry> find(const id& wanted) const { return wrapped_->find(wanted); }
    [[nodiscard]] std::vector<entry> list(const query& q) const { return wrapped_->list(q); }
    [[nodiscard]] state_counts counts(std::string_view queue) const { return wrapped_->counts(queue); }
    [[nodiscard]] std::optional<time_point> next_due(std::string_view queue) const { return wrapped_->next_due(queue); }
    [[nodiscard]] any_transaction begin() { return any_transaction(wrapped_->begin()); }
    [[nodiscard]] vouch::capabilities capabilities() const { return wrapped_->capabilities(); }
    [[nodiscard]] bool is_committing() const { return wrapped_->is_committing(); }
    [[nodiscard]] std::uint64_t wakes(std::string_view queue) { return wrapped_->wakes(queue); }
    std::uint64_t wait(std::string_view queue, std::uint64_t seen, std::chrono::nanoseconds at_most,
                       std::stop_token stop) {
        return wrapped_->wait(queue, seen, at_most, std::move(stop));
    }

    /// The handle that the copies share. It has expired when all of them are destroyed.
    [[nodiscard]] std::weak_ptr<const store_interface> handle() const { return wrapped_; }

  private:
    std::shared_ptr<store_interface> wrapped_;
};

/// Counts the calls on transactions, and those that threw `conflict`.
struct call_counts {
    std::atomic<std::uint64_t> calls = 0;
    std::atomic<std::uint64_t> conflicts = 0;
};

namespace detail {

template <class Call>
auto counted(call_counts& counts, const Call& call) {
    counts.calls += 1;
    try {
        return call();
    } catch (const error& e) {
        counts.conflicts += e.kind() == error_kind::conflict ? 1U : 0U;
        throw;
    }
}

template <class Transaction>
class wrapped_transaction final : public transaction_interface {
  public:
    wrapped_transaction(Transaction tx, std::shared_ptr<call_counts> counts)
        : tx_(std::move(tx)), counts_(std::move(counts)) {}

    [[nodiscard]] std::optional<entry> find(const id& wanted) const override {
        return counted([&] { return tx_.find(wanted); });
    }
    [[nodiscard]] std::vector<entry> list(const query& q) const override {
        return counted([&] { return tx_.list(q); });
    }
    [[nodiscard]] state_counts counts(std::string_view queue) const override {
        return counted([&] { return tx_.counts(queue); });
    }
    [[nodiscard]] std::optional<time_point> next_due(std::string_view queue) const override {
        return counted([&] { return tx_.next_due(queue); });
    }
    std::vector<receipt> enqueue(std::span<const draft> drafts, time_point now) override {
        return counted([&] { return tx_.enqueue(drafts, now); });
    }
    [[nodiscard]] std::vector<entry> claim(const claim_request& request) override {
        return counted([&] { return tx_.claim(request); });
    }
    [[nodiscard]] std::vector<settlement> settle(std::span<const vouch::settle> settles, time_point now) override {
        return counted([&] { return tx_.settle(settles, now); });
    }
    [[nodiscard]] std::vector<verdict> extend(std::span<const ticket> tickets, time_point now,
                                              duration lease) override {
        return counted([&] { return tx_.extend(tickets, now, lease); });
    }
    [[nodiscard]] verdict nudge(const id& wanted, time_point now) override {
        return counted([&] { return tx_.nudge(wanted, now); });
    }
    [[nodiscard]] verdict cancel(const id& wanted, std::string_view error, time_point now) override {
        return counted([&] { return tx_.cancel(wanted, error, now); });
    }
    std::size_t purge(const purge_request& request) override {
        return counted([&] { return tx_.purge(request); });
    }
    void commit() override {
        counted([&] { tx_.commit(); });
    }
    std::vector<receipt> enqueue_last(std::span<const draft> drafts, time_point now) override {
        if constexpr (committing_transaction<Transaction>) {
            return counted([&] { return tx_.enqueue_and_commit(drafts, now); });
        } else {
            fail_without_operation();
        }
    }
    [[nodiscard]] std::optional<std::vector<entry>> claim_last(const claim_request& request) override {
        if constexpr (committing_transaction<Transaction>) {
            return counted([&] { return tx_.claim_and_commit(request); });
        } else {
            fail_without_operation();
        }
    }
    [[nodiscard]] settled_and_claimed settle_last(std::span<const vouch::settle> settles, time_point now,
                                                  const claim_request& request) override {
        if constexpr (committing_transaction<Transaction>) {
            return counted([&] { return tx_.settle_claim_and_commit(settles, now, request); });
        } else {
            fail_without_operation();
        }
    }
    [[nodiscard]] std::unique_ptr<transaction_interface> move_out() override {
        return std::make_unique<wrapped_transaction>(std::move(tx_), counts_);
    }
    void move_assign(transaction_interface& from) override {
        tx_ = std::move(static_cast<wrapped_transaction&>(from).tx_);
    }

  private:
    [[noreturn]] static void fail_without_operation() {
        throw error(error_kind::unsupported,
                    "the store declares the capability `committing`, but its transactions have "
                    "no `enqueue_and_commit`, `claim_and_commit` and `settle_claim_and_commit`");
    }

    template <class Call>
    auto counted(const Call& call) const {
        return detail::counted(*counts_, call);
    }

    Transaction tx_;
    std::shared_ptr<call_counts> counts_;
};

template <class Store>
class wrapped_store final : public store_interface {
  public:
    template <class Open>
    wrapped_store(Open&& open, std::shared_ptr<call_counts> counts) : store_(open()), counts_(std::move(counts)) {}

    [[nodiscard]] std::optional<entry> find(const id& wanted) const override { return store_.find(wanted); }
    [[nodiscard]] std::vector<entry> list(const query& q) const override { return store_.list(q); }
    [[nodiscard]] state_counts counts(std::string_view queue) const override { return store_.counts(queue); }
    [[nodiscard]] std::optional<time_point> next_due(std::string_view queue) const override {
        return store_.next_due(queue);
    }
    [[nodiscard]] std::unique_ptr<transaction_interface> begin() override {
        return detail::counted(*counts_, [&]() -> std::unique_ptr<transaction_interface> {
            return std::make_unique<wrapped_transaction<typename Store::transaction>>(store_.begin(), counts_);
        });
    }
    [[nodiscard]] vouch::capabilities capabilities() const override { return store_.capabilities(); }
    [[nodiscard]] bool is_committing() const override { return committing_transaction<typename Store::transaction>; }
    [[nodiscard]] std::uint64_t wakes(std::string_view queue) override {
        if constexpr (waking_store<Store>) {
            return store_.wakes(queue);
        } else {
            return 0;
        }
    }
    std::uint64_t wait(std::string_view queue, std::uint64_t seen, std::chrono::nanoseconds at_most,
                       std::stop_token stop) override {
        if constexpr (waking_store<Store>) {
            return store_.wait(queue, seen, at_most, std::move(stop));
        } else {
            return seen;
        }
    }

  private:
    Store store_;
    std::shared_ptr<call_counts> counts_;
};

} // namespace detail

/// Wraps the store that `open()` returns. If its type is not a store, the compiler prints what it lacks.
template <class Open>
[[nodiscard]] any_store erase(Open&& open, std::shared_ptr<call_counts> counts = std::make_shared<call_counts>()) {
    using wrapped = std::remove_cvref_t<decltype(open())>;
    static_assert(explain_store<wrapped>());
    return any_store(std::make_shared<detail::wrapped_store<wrapped>>(open, std::move(counts)));
}

} // namespace conformance
} // namespace v0
} // namespace vouch
