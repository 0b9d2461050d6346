// SPDX-License-Identifier: MIT
// Orders of the steps of several threads, as a scheduler's choice. A thread that waits inside the store misses its turn.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include <vouch/conformance/detail/random_source.hpp>
#include <vouch/conformance/detail/schedule/history.hpp>
#include <vouch/conformance/detail/schedule/scheduler.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

/// What one thread does.
using script = std::vector<transaction_run>;

/// The number of steps of a script: each call, commit and rollback is one. Begin belongs to the first call.
[[nodiscard]] inline std::size_t steps_of(const script& s) {
    std::size_t count = 0;
    for (const auto& run : s) {
        count += run.operations.size() + (run.is_outside ? 0U : 1U);
    }
    return count;
}

/// All orders in which threads with that many steps can take turns. Each number is a thread.
[[nodiscard]] inline std::vector<std::vector<std::size_t>> all_orders(const std::vector<std::size_t>& steps) {
    std::vector<std::size_t> order;
    for (std::size_t p = 0; p < steps.size(); ++p) {
        order.insert(order.end(), steps[p], p);
    }
    std::vector<std::vector<std::size_t>> all;
    do {
        all.push_back(order);
    } while (std::next_permutation(order.begin(), order.end()));
    return all;
}

/// The same without the orders in which one thread ends before the other one begins, for two threads.
[[nodiscard]] inline std::vector<std::vector<std::size_t>> overlapping_orders(std::size_t one, std::size_t other) {
    auto all = all_orders({one, other});
    all.erase(all.begin()); // the orders are sorted
    all.pop_back();
    return all;
}

/// Follows an order. A step lasts until the thread's next call outside the store or, if `splits`, only until the thread
/// pauses inside the store.
class step_order {
  public:
    step_order(std::vector<std::size_t> order, bool splits, std::uint64_t seed)
        : order_(std::move(order)), splits_(splits), random_(seed) {}

    [[nodiscard]] std::size_t operator()(const std::vector<scheduler::ready_thread>& ready) {
        const auto find = [&](std::size_t wanted) {
            return std::find_if(ready.begin(), ready.end(), [&](const auto& one) { return one.index == wanted; });
        };
        if (!splits_) {
            const auto same = find(current_);
            if (same != ready.end() && same->steps == steps_) {
                return current_;
            }
        }
        while (next_ < order_.size()) {
            const auto wanted = find(order_[next_++]);
            if (wanted != ready.end()) {
                return chosen(*wanted);
            }
        }
        return chosen(splits_ ? ready[random_.below(ready.size())] : ready.front());
    }

  private:
    [[nodiscard]] std::size_t chosen(const scheduler::ready_thread& one) {
        current_ = one.index;
        steps_ = one.steps;
        return current_;
    }

    std::vector<std::size_t> order_;
    bool splits_;
    random_source random_;
    std::size_t next_ = 0;
    std::size_t current_ = ~std::size_t{0};
    std::size_t steps_ = 0;
};

/// Interrupts thread `who` at its n-th pause inside the store, and lets the other ones run until they end or wait for it.
/// Pauses outside are between steps, whose order `step_order` decides.
class interruption {
  public:
    interruption(std::size_t who, std::size_t n) : who_(who), n_(n) {}

    [[nodiscard]] std::size_t operator()(const std::vector<scheduler::ready_thread>& ready) {
        const auto is_mine = [&](const auto& one) { return one.index == who_; };
        const auto mine = std::find_if(ready.begin(), ready.end(), is_mine);
        const auto other = std::find_if_not(ready.begin(), ready.end(), is_mine);
        if (mine != ready.end() && has_moved_) {
            pauses_ += mine->is_inside ? 1U : 0U;
            has_moved_ = false;
        }
        if (mine != ready.end() && (pauses_ < n_ || other == ready.end())) {
            has_moved_ = true;
            return who_;
        }
        return other->index;
    }

    /// How often the thread has paused inside the store.
    [[nodiscard]] std::size_t pauses() const noexcept { return pauses_; }

  private:
    std::size_t who_;
    std::size_t n_;
    std::size_t pauses_ = 0;
    bool has_moved_ = true; ///< since its last pause
};

} // namespace conformance::detail
} // namespace v0
} // namespace vouch
