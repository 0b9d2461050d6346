// SPDX-License-Identifier: MIT
// A store that hides the conflicts of another store: after a conflict it begins a new transaction, makes the earlier
// calls again and goes on, if they return the same answers as before. So a check that knows nothing of conflicts can be
// carried out on a store that has many of them.
//
// It is for checks with one thread: then a conflict cannot mean that another transaction has changed an answer.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <vouch/conformance/any_store.hpp>
#include <vouch/conformance/report.hpp>
#include <vouch/contract/entry.hpp>
#include <vouch/contract/error.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

/// How often a transaction is repeated. Even if nine of ten commits end in a conflict, no store needs so many tries.
inline constexpr int conflicts_max = 2'000;
inline constexpr std::string_view endless_conflict = "conflict 2,000 times in a row: the transaction does not succeed";

[[noreturn]] inline void fail_endlessly() { throw failure{std::string(endless_conflict), {}, {}, {}}; }

/// While one exists, conflicts reach the checks of this thread.
class shown_conflicts {
  public:
    shown_conflicts() noexcept { ++depth(); }
    shown_conflicts(const shown_conflicts&) = delete;
    shown_conflicts& operator=(const shown_conflicts&) = delete;
    ~shown_conflicts() { --depth(); }

    [[nodiscard]] static bool any() noexcept { return depth() > 0; }

  private:
    [[nodiscard]] static int& depth() noexcept {
        thread_local int of_thread = 0;
        return of_thread;
    }
};

/// Whether an error may be hidden by repeating the transaction.
[[nodiscard]] inline bool is_repeatable(const error& e) noexcept {
    return e.kind() == error_kind::conflict && !e.is_in_doubt() && !shown_conflicts::any();
}

// Answers are compared without sequences, because a rolled-back transaction may leave a gap.

template <class Answer>
[[nodiscard]] bool is_same_answer(const Answer& a, const Answer& b) {
    return a == b;
}
[[nodiscard]] inline bool is_same_answer(const entry& a, const entry& b) {
    auto other = b;
    other.sequence = a.sequence;
    return a == other;
}
[[nodiscard]] inline bool is_same_answer(const std::optional<entry>& a, const std::optional<entry>& b) {
    return a && b ? is_same_answer(*a, *b) : a.has_value() == b.has_value();
}
[[nodiscard]] inline bool is_same_answer(const std::vector<entry>& a, const std::vector<entry>& b) {
    bool is_same = a.size() == b.size();
    for (std::size_t i = 0; is_same && i < a.size(); ++i) {
        is_same = is_same_answer(a[i], b[i]);
    }
    return is_same;
}

/// Begins a transaction, after conflicts too.
[[nodiscard]] inline any_transaction begin_repeatedly(any_store& store) {
    for (int left = conflicts_max;; --left) {
        try {
            return store.begin();
        } catch (const error& e) {
            if (!is_repeatable(e)) {
                throw;
            }
            if (left == 0) {
                fail_endlessly();
            }
        }
    }
}

class repeating_transaction final : public transaction_interface {
  public:
    using call = std::function<bool(any_transaction&)>; ///< makes the call; whether the answer is the same

    repeating_transaction(any_store store, any_transaction tx, std::vector<call> calls = {})
        : store_(std::move(store)), tx_(std::move(tx)), calls_(std::move(calls)) {}

    [[nodiscard]] std::optional<entry> find(const id& wanted) const override {
        return use([wanted](any_transaction& tx) { return tx.find(wanted); });
    }
    [[nodiscard]] std::vector<entry> list(const query& q) const override {
        return use([q](any_transaction& tx) { return tx.list(q); });
    }
    [[nodiscard]] state_counts counts(std::string_view queue) const override {
        return use([name = std::string(queue)](any_transaction& tx) { return tx.counts(name); });
    }
    [[nodiscard]] std::optional<time_point> next_due(std::string_view queue) const override {
        return use([name = std::string(queue)](any_transaction& tx) { return tx.next_due(name); });
    }
    std::vector<receipt> enqueue(std::span<const draft> drafts, time_point now) override {
        return use([some = copy(drafts), now](any_transaction& tx) { return tx.enqueue(some, now); });
    }
    [[nodiscard]] std::vector<entry> claim(const claim_request& request) override {
        return use([request](any_transaction& tx) { return tx.claim(request); });
    }
    [[nodiscard]] std::vector<settlement> settle(std::span<const vouch::settle> settles, time_point now) override {
        return use([some = copy(settles), now](any_transaction& tx) { return tx.settle(some, now); });
    }
    [[nodiscard]] std::vector<verdict> extend(std::span<const ticket> tickets, time_point now,
                                              duration lease) override {
        return use([some = copy(tickets), now, lease](any_transaction& tx) { return tx.extend(some, now, lease); });
    }
    [[nodiscard]] verdict nudge(const id& wanted, time_point now) override {
        return use([wanted, now](any_transaction& tx) { return tx.nudge(wanted, now); });
    }
    [[nodiscard]] verdict cancel(const id& wanted, std::string_view error, time_point now) override {
        return use(
            [wanted, code = std::string(error), now](any_transaction& tx) { return tx.cancel(wanted, code, now); });
    }
    std::size_t purge(const purge_request& request) override {
        return use([request](any_transaction& tx) { return tx.purge(request); });
    }
    void commit() override {
        until_no_conflict([&](any_transaction& tx) {
            tx.commit();
            return true;
        });
    }
    std::vector<receipt> enqueue_last(std::span<const draft> drafts, time_point now) override {
        return until_no_conflict([&](any_transaction& tx) { return tx.enqueue_last(drafts, now); });
    }
    [[nodiscard]] std::optional<std::vector<entry>> claim_last(const claim_request& request) override {
        return until_no_conflict([&](any_transaction& tx) { return tx.claim_last(request); });
    }
    [[nodiscard]] settled_and_claimed settle_last(std::span<const vouch::settle> settles, time_point now,
                                                  const claim_request& request) override {
        return until_no_conflict([&](any_transaction& tx) { return tx.settle_last(settles, now, request); });
    }
    [[nodiscard]] std::unique_ptr<transaction_interface> move_out() override {
        return std::make_unique<repeating_transaction>(store_, open().move_out(), std::exchange(calls_, {}));
    }
    void move_assign(transaction_interface& from) override {
        auto& source = static_cast<repeating_transaction&>(from);
        open().move_assign(source.open());
        store_ = source.store_;
        calls_ = std::exchange(source.calls_, {});
    }

  private:
    template <class Operation>
    using answer_of = std::invoke_result_t<const Operation&, any_transaction&>;

    template <class Item>
    [[nodiscard]] static std::vector<Item> copy(std::span<const Item> items) {
        return {items.begin(), items.end()};
    }

    [[nodiscard]] any_transaction& open() const {
        if (!tx_) {
            throw error(error_kind::misuse, "the transaction was not repeated after a conflict and is closed");
        }
        return *tx_;
    }

    template <class Operation>
    answer_of<Operation> use(const Operation& operation) const {
        auto answer = until_no_conflict(operation);
        calls_.push_back([operation, answer](any_transaction& tx) { return is_same_answer(operation(tx), answer); });
        return answer;
    }

    template <class Operation>
    answer_of<Operation> until_no_conflict(const Operation& operation) const {
        for (int left = conflicts_max;; --left) {
            try {
                return operation(open());
            } catch (const error& e) {
                if (!is_repeatable(e)) {
                    throw;
                }
                if (left == 0) {
                    fail_endlessly();
                }
                repeat(e);
            }
        }
    }

    /// Makes all calls again in a new transaction. If an answer differs, the conflict is not hidden.
    void repeat(const error& conflict) const {
        for (int left = conflicts_max; left > 0; --left) {
            try {
                tx_.reset(); // first, because begin may wait until it has ended
                tx_.emplace(begin_repeatedly(store_));
                for (const auto& same : calls_) {
                    if (!same(*tx_)) {
                        tx_.reset();
                        throw conflict;
                    }
                }
                return;
            } catch (const error& e) {
                if (!tx_ || !is_repeatable(e)) {
                    throw;
                }
            }
        }
        fail_endlessly();
    }

    mutable any_store store_;
    mutable std::optional<any_transaction> tx_;
    mutable std::vector<call> calls_; ///< of the open transaction
};

class repeating_store final : public store_interface {
  public:
    explicit repeating_store(any_store store) : store_(std::move(store)) {}

    [[nodiscard]] std::optional<entry> find(const id& wanted) const override { return store_.find(wanted); }
    [[nodiscard]] std::vector<entry> list(const query& q) const override { return store_.list(q); }
    [[nodiscard]] state_counts counts(std::string_view queue) const override { return store_.counts(queue); }
    [[nodiscard]] std::optional<time_point> next_due(std::string_view queue) const override {
        return store_.next_due(queue);
    }
    [[nodiscard]] std::unique_ptr<transaction_interface> begin() override {
        return std::make_unique<repeating_transaction>(store_, begin_repeatedly(store_));
    }
    [[nodiscard]] vouch::capabilities capabilities() const override { return store_.capabilities(); }
    [[nodiscard]] bool is_committing() const override { return store_.is_committing(); }
    [[nodiscard]] std::uint64_t wakes(std::string_view queue) override { return store_.wakes(queue); }
    std::uint64_t wait(std::string_view queue, std::uint64_t seen, std::chrono::nanoseconds at_most,
                       std::stop_token stop) override {
        return store_.wait(queue, seen, at_most, std::move(stop));
    }

  private:
    any_store store_;
};

/// The same store, without its conflicts.
[[nodiscard]] inline any_store repeat_conflicts(any_store store) {
    return any_store(std::make_shared<repeating_store>(std::move(store)));
}

} // namespace conformance::detail
} // namespace v0
} // namespace vouch
