// SPDX-License-Identifier: MIT
// A base for stores that decorate another store: that log, count, inject faults, rename. It forwards every operation, so
// a decorator contains only what it changes.
//
// To intercept all operations, pass a function object. It receives the operation and the call to make:
//
//   vouch::store_adaptor store(vouch::memory::store{}, [](vouch::store_operation what, const auto& call) {
//       std::puts(name_of(what).data());
//       return call();
//   });
//
// To change some operations, derive and declare them again; `inner()` is the decorated store or transaction:
//
//   struct patient_transaction : vouch::transaction_adaptor<vouch::memory::transaction> {
//       using transaction_adaptor::transaction_adaptor;
//       auto claim(vouch::claim_request request) { request.lease *= 2; return inner().claim(request); }
//   };
//   struct patient_store : vouch::store_adaptor<vouch::memory::store> {
//       using store_adaptor::store_adaptor;
//       using transaction = patient_transaction;
//       transaction begin() { return transaction(inner().begin()); }
//   };
//
// An adaptor is as thread-safe as the store it decorates, provided that its interceptor is.
#pragma once

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <vouch/contract/error.hpp>
#include <vouch/contract/explain.hpp>
#include <vouch/contract/store.hpp>

namespace vouch {
inline namespace v0 {

/// The operations of a store and of its transactions that read or change entries.
enum class store_operation : std::uint8_t {
    find,
    list,
    counts,
    next_due,
    begin,
    enqueue,
    claim,
    settle,
    extend,
    nudge,
    cancel,
    purge,
    commit,
};

/// The operation's name, as it is written in code. The text ends with a NUL.
[[nodiscard]] constexpr std::string_view name_of(store_operation what) noexcept {
    switch (what) {
    case store_operation::find: return "find";
    case store_operation::list: return "list";
    case store_operation::counts: return "counts";
    case store_operation::next_due: return "next_due";
    case store_operation::begin: return "begin";
    case store_operation::enqueue: return "enqueue";
    case store_operation::claim: return "claim";
    case store_operation::settle: return "settle";
    case store_operation::extend: return "extend";
    case store_operation::nudge: return "nudge";
    case store_operation::cancel: return "cancel";
    case store_operation::purge: return "purge";
    case store_operation::commit: return "commit";
    }
    return "?";
}

/// The default interceptor: makes the call. Every interceptor has this form:
///  1. It is called as const, by any thread that uses the store. The store and its transactions share one interceptor.
///  2. It returns what `call()` returned. Every call returns a value; a commit's value is a `std::monostate`.
///  3. It may throw instead of calling, or after the call. The transaction is then closed, and rolled back unless it has
///     committed. After `invalid_argument` it stays open, as the contract requires.
struct pass_through {
    template <class Call>
    auto operator()(store_operation, const Call& call) const {
        return call();
    }
};

/// Forwards a transaction's operations to `Inner`, through `Interceptor`. Models `transaction`.
template <class Inner, class Interceptor = pass_through>
class transaction_adaptor {
  public:
    explicit transaction_adaptor(Inner inner) requires std::same_as<Interceptor, pass_through>
        : inner_(std::move(inner)) {}
    transaction_adaptor(Inner inner, std::shared_ptr<const Interceptor> interceptor)
        : inner_(std::move(inner)), interceptor_(std::move(interceptor)) {}

    [[nodiscard]] std::optional<entry> find(const id& wanted) const {
        return intercept(store_operation::find, [&](const Inner& tx) { return tx.find(wanted); });
    }
    [[nodiscard]] std::vector<entry> list(const query& q) const {
        return intercept(store_operation::list, [&](const Inner& tx) { return tx.list(q); });
    }
    [[nodiscard]] state_counts counts(std::string_view queue) const {
        return intercept(store_operation::counts, [&](const Inner& tx) { return tx.counts(queue); });
    }
    [[nodiscard]] std::optional<time_point> next_due(std::string_view queue) const {
        return intercept(store_operation::next_due, [&](const Inner& tx) { return tx.next_due(queue); });
    }

    std::vector<receipt> enqueue(std::span<const draft> drafts, time_point now) {
        return intercept(store_operation::enqueue, [&](Inner& tx) { return tx.enqueue(drafts, now); });
    }
    [[nodiscard]] std::vector<entry> claim(const claim_request& request) {
        return intercept(store_operation::claim, [&](Inner& tx) { return tx.claim(request); });
    }
    [[nodiscard]] std::vector<settlement> settle(std::span<const vouch::settle> settles, time_point now) {
        return intercept(store_operation::settle, [&](Inner& tx) { return tx.settle(settles, now); });
    }
    [[nodiscard]] std::vector<verdict> extend(std::span<const ticket> tickets, time_point now, duration lease) {
        return intercept(store_operation::extend, [&](Inner& tx) { return tx.extend(tickets, now, lease); });
    }
    [[nodiscard]] verdict nudge(const id& wanted, time_point now) {
        return intercept(store_operation::nudge, [&](Inner& tx) { return tx.nudge(wanted, now); });
    }
    [[nodiscard]] verdict cancel(const id& wanted, std::string_view error, time_point now) {
        return intercept(store_operation::cancel, [&](Inner& tx) { return tx.cancel(wanted, error, now); });
    }
    std::size_t purge(const purge_request& request) {
        return intercept(store_operation::purge, [&](Inner& tx) { return tx.purge(request); });
    }
    void commit() {
        intercept(store_operation::commit, [](Inner& tx) {
            tx.commit();
            return std::monostate{};
        });
    }

  protected:
    /// The decorated transaction. Throws `misuse` after `close`. Not const, because even a read that fails closes.
    [[nodiscard]] Inner& inner() const {
        if (!inner_ || (!std::same_as<Interceptor, pass_through> && !interceptor_)) {
            throw error(error_kind::misuse, "transaction: it is closed; begin another one");
        }
        return *inner_;
    }

    /// Rolls back. Further calls throw `misuse`. A derived class calls it before it throws an error of its own.
    void close() const noexcept { inner_.reset(); }

  private:
    template <class Call>
    auto intercept(store_operation what, const Call& call) const {
        auto& tx = inner();
        if constexpr (std::same_as<Interceptor, pass_through>) {
            return call(tx);
        } else {
            try {
                return (*interceptor_)(what, [&] { return call(tx); });
            } catch (const error& e) {
                if (e.kind() != error_kind::invalid_argument) {
                    close();
                }
                throw;
            } catch (...) {
                close();
                throw;
            }
        }
    }

    mutable std::optional<Inner> inner_;               ///< empty: closed
    std::shared_ptr<const Interceptor> interceptor_{}; ///< null after a move
};

/// Forwards a store's operations to `Inner`, through `Interceptor`. Models `store`, and `waking_store` if `Inner` does.
/// A derived class with a transaction type of its own declares `transaction` and `begin` again.
template <class Inner, class Interceptor = pass_through>
class store_adaptor {
    static_assert(explain_store<Inner>());

  public:
    using transaction = transaction_adaptor<typename Inner::transaction, Interceptor>;
    static constexpr int contract_level = Inner::contract_level;

    store_adaptor() requires std::default_initializable<Inner> && std::default_initializable<Interceptor>
        : store_adaptor(Inner()) {}
    explicit store_adaptor(Inner inner, Interceptor interceptor = Interceptor())
        : inner_(std::move(inner)), interceptor_(std::make_shared<const Interceptor>(std::move(interceptor))) {}

    [[nodiscard]] std::optional<entry> find(const id& wanted) const {
        return (*interceptor_)(store_operation::find, [&] { return inner_.find(wanted); });
    }
    [[nodiscard]] std::vector<entry> list(const query& q) const {
        return (*interceptor_)(store_operation::list, [&] { return inner_.list(q); });
    }
    [[nodiscard]] state_counts counts(std::string_view queue) const {
        return (*interceptor_)(store_operation::counts, [&] { return inner_.counts(queue); });
    }
    [[nodiscard]] std::optional<time_point> next_due(std::string_view queue) const {
        return (*interceptor_)(store_operation::next_due, [&] { return inner_.next_due(queue); });
    }
    [[nodiscard]] transaction begin() {
        return (*interceptor_)(store_operation::begin, [&] { return transaction(inner_.begin(), interceptor_); });
    }

    // What follows is not intercepted: it neither reads nor changes entries.

    /// Those of the decorated store without `committing`: an interceptor sees a commit as a call of its own. A derived
    /// class whose transactions commit with their last operation declares `capabilities` again.
    [[nodiscard]] vouch::capabilities capabilities() const {
        auto can = inner_.capabilities();
        can.committing = false;
        return can;
    }
    [[nodiscard]] std::uint64_t wakes(std::string_view queue) requires waking_store<Inner> {
        return inner_.wakes(queue);
    }
    std::uint64_t wait(std::string_view queue, std::uint64_t seen, std::chrono::nanoseconds at_most,
                       std::stop_token stop) requires waking_store<Inner> {
        return inner_.wait(queue, seen, at_most, std::move(stop));
    }

    /// The decorated store.
    [[nodiscard]] Inner& inner() noexcept { return inner_; }
    [[nodiscard]] const Inner& inner() const noexcept { return inner_; }

  protected:
    [[nodiscard]] const Interceptor& interceptor() const noexcept { return *interceptor_; }

  private:
    Inner inner_;
    std::shared_ptr<const Interceptor> interceptor_;
};

} // namespace v0
} // namespace vouch
