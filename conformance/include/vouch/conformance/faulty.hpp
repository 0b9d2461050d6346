// SPDX-License-Identifier: MIT
// A store that fails when it is told to: the n-th call, before its effect or after it, once or from then on. Wrapped
// around any store it shows what a program does when the disk is full, the line is cut, or a commit's answer is lost.
//
//   auto plan = std::make_shared<fault_plan>();
//   faulty<memory::store> store(memory::store{}, plan);
//   plan->arm({.call = 3});
//
// Every call counts, reads included. What a fault hits is closed and rolled back, as the contract says. A plan may be
// shared by several stores and threads. A store that cannot be moved goes in erased (`any_store.hpp`).
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
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

enum class fault_moment : std::uint8_t {
    before, ///< the call does nothing and throws
    after,  ///< the call does its work and throws; a commit lands and is in doubt
};

struct fault {
    std::uint64_t call = 1; ///< counted from the next one, which is 1
    fault_moment moment = fault_moment::before;
    bool persistent = false; ///< every call from then on fails
    error_kind kind = error_kind::io;
    bool in_doubt = false; ///< a commit that fails before its effect does not tell so either
};

/// Which call fails, and how many there were. Thread-safe.
class fault_plan {
  public:
    /// Replaces what was armed. Throws `misuse` for `invalid_argument`, which is no fault.
    void arm(const fault& f) {
        if (f.kind == error_kind::invalid_argument) {
            throw error(error_kind::misuse, "fault_plan: invalid_argument is a refusal, not a fault");
        }
        const std::lock_guard lock(mutex_);
        armed_ = f;
        left_ = f.call;
        hit_ = false;
    }

    /// No further faults. Says whether what was armed has struck.
    bool disarm() {
        const std::lock_guard lock(mutex_);
        armed_.reset();
        return hit_;
    }

    [[nodiscard]] bool has_struck() const {
        const std::lock_guard lock(mutex_);
        return hit_;
    }
    [[nodiscard]] std::uint64_t calls() const {
        const std::lock_guard lock(mutex_);
        return calls_;
    }
    /// Faults so far, of everything ever armed.
    [[nodiscard]] std::uint64_t faults() const {
        const std::lock_guard lock(mutex_);
        return faults_;
    }

    /// For what carries the plan out: counts a call and says whether it fails.
    [[nodiscard]] std::optional<fault> next() {
        const std::lock_guard lock(mutex_);
        ++calls_;
        if (!armed_ || (left_ > 1 && left_-- > 0)) {
            return std::nullopt;
        }
        const auto due = armed_;
        hit_ = true;
        ++faults_;
        if (!due->persistent) {
            armed_.reset();
        }
        return due;
    }

  private:
    mutable std::mutex mutex_{};
    std::optional<fault> armed_{};
    std::uint64_t left_ = 0; ///< calls until the one that fails, itself included
    std::uint64_t calls_ = 0;
    std::uint64_t faults_ = 0;
    bool hit_ = false;
};

namespace detail {

[[noreturn]] inline void strike(const fault& f, bool in_doubt) {
    throw error(f.kind, "a fault that was asked for", {.in_doubt = in_doubt});
}

/// Calls `f` and fails before or after it as planned.
template <class Call>
std::invoke_result_t<Call&> strike_around(fault_plan& plan, Call&& call) {
    const auto due = plan.next();
    if (due && due->moment == fault_moment::before) {
        strike(*due, false);
    }
    auto answer = call();
    if (due) {
        strike(*due, false);
    }
    return answer;
}

} // namespace detail

template <class Transaction>
class faulty_transaction {
  public:
    faulty_transaction(Transaction tx, std::shared_ptr<fault_plan> plan) : tx_(std::move(tx)), plan_(std::move(plan)) {}

    [[nodiscard]] std::optional<entry> find(const id& wanted) const {
        return call([&](auto& tx) { return tx.find(wanted); });
    }
    [[nodiscard]] std::vector<entry> list(const query& q) const {
        return call([&](auto& tx) { return tx.list(q); });
    }
    [[nodiscard]] state_counts counts(std::string_view queue) const {
        return call([&](auto& tx) { return tx.counts(queue); });
    }
    [[nodiscard]] std::optional<time_point> next_due(std::string_view queue) const {
        return call([&](auto& tx) { return tx.next_due(queue); });
    }
    std::vector<receipt> enqueue(std::span<const draft> drafts, time_point now) {
        return call([&](auto& tx) { return tx.enqueue(drafts, now); });
    }
    [[nodiscard]] std::vector<entry> claim(const claim_request& request) {
        return call([&](auto& tx) { return tx.claim(request); });
    }
    [[nodiscard]] std::vector<settlement> settle(std::span<const vouch::settle> settles, time_point now) {
        return call([&](auto& tx) { return tx.settle(settles, now); });
    }
    [[nodiscard]] std::vector<verdict> extend(std::span<const ticket> tickets, time_point now, duration lease) {
        return call([&](auto& tx) { return tx.extend(tickets, now, lease); });
    }
    [[nodiscard]] verdict nudge(const id& wanted, time_point now) {
        return call([&](auto& tx) { return tx.nudge(wanted, now); });
    }
    [[nodiscard]] verdict cancel(const id& wanted, std::string_view error, time_point now) {
        return call([&](auto& tx) { return tx.cancel(wanted, error, now); });
    }
    std::size_t purge(const purge_request& request) {
        return call([&](auto& tx) { return tx.purge(request); });
    }

    void commit() {
        const auto due = plan_->next();
        auto& tx = open();
        if (due && due->moment == fault_moment::before) {
            tx_.reset();
            detail::strike(*due, due->in_doubt);
        }
        tx.commit();
        if (due) {
            tx_.reset();
            detail::strike(*due, true);
        }
    }

  private:
    [[nodiscard]] Transaction& open() const {
        if (!tx_) {
            throw error(error_kind::misuse, "transaction: it is closed");
        }
        return *tx_;
    }

    template <class Call>
    std::invoke_result_t<Call&, Transaction&> call(Call&& f) const {
        auto& tx = open();
        const auto due = plan_->next();
        if (due && due->moment == fault_moment::before) {
            tx_.reset();
            detail::strike(*due, false);
        }
        auto answer = f(tx);
        if (due) {
            tx_.reset();
            detail::strike(*due, false);
        }
        return answer;
    }

    mutable std::optional<Transaction> tx_; ///< empty: closed by a fault, which may strike a read too
    std::shared_ptr<fault_plan> plan_;
};

template <class Store>
class faulty {
    static_assert(explain_store<Store>());

  public:
    using transaction = faulty_transaction<typename Store::transaction>;
    static constexpr int contract_level = Store::contract_level;

    faulty(Store store, std::shared_ptr<fault_plan> plan) : store_(std::move(store)), plan_(std::move(plan)) {}

    [[nodiscard]] std::optional<entry> find(const id& wanted) const {
        return detail::strike_around(*plan_, [&] { return store_.find(wanted); });
    }
    [[nodiscard]] std::vector<entry> list(const query& q) const {
        return detail::strike_around(*plan_, [&] { return store_.list(q); });
    }
    [[nodiscard]] state_counts counts(std::string_view queue) const {
        return detail::strike_around(*plan_, [&] { return store_.counts(queue); });
    }
    [[nodiscard]] std::optional<time_point> next_due(std::string_view queue) const {
        return detail::strike_around(*plan_, [&] { return store_.next_due(queue); });
    }
    [[nodiscard]] transaction begin() {
        return detail::strike_around(*plan_, [&] { return transaction(store_.begin(), plan_); });
    }
    [[nodiscard]] vouch::capabilities capabilities() const { return store_.capabilities(); }

    [[nodiscard]] std::uint64_t wakes(std::string_view queue) requires waking_store<Store> {
        return store_.wakes(queue);
    }
    std::uint64_t wait(std::string_view queue, std::uint64_t seen, std::chrono::nanoseconds at_most,
                       std::stop_token stop) requires waking_store<Store> {
        return store_.wait(queue, seen, at_most, std::move(stop));
    }

    /// The store without its faults.
    [[nodiscard]] Store& plain() noexcept { return store_; }
    [[nodiscard]] const Store& plain() const noexcept { return store_; }
    [[nodiscard]] fault_plan& plan() const noexcept { return *plan_; }

  private:
    Store store_;
    std::shared_ptr<fault_plan> plan_;
};

} // namespace conformance
} // namespace v0
} // namespace vouch
