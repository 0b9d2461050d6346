// SPDX-License-Identifier: MIT
// The argument of a batch handler: one delivery for each claimed entry, in the order of the claim. Each delivery keeps
// its own follow-ups, tag and explanation.
//
//   router.on_batch("mail.#", [](vouch::delivery_batch& batch) {
//       std::vector<vouch::outcome> outcomes(batch.size()); // all succeed, unless this is changed
//       for (std::size_t i = 0; i < batch.size(); ++i) {
//           if (!accepts(batch[i].payload())) {
//               outcomes[i] = vouch::retry{"refused"}; // without a time: when the policy says
//           }
//       }
//       return outcomes;
//   });
//
// An exception is the outcome of every entry of the call. That includes the rejection by `delivery::as` of a payload that
// cannot be decoded: catch it, if it must not bury the other entries.
//
// A batch belongs to one call of one handler and is used by one thread.
#pragma once

#include <cstddef>
#include <iterator>
#include <stop_token>
#include <utility>

#include <vouch/run/delivery.hpp>

namespace vouch {
inline namespace v0 {

class delivery_batch {
  public:
    class iterator {
      public:
        using value_type = delivery;
        using reference = delivery&;
        using pointer = delivery*;
        using difference_type = std::ptrdiff_t;
        using iterator_category = std::forward_iterator_tag;

        iterator() = default;
        [[nodiscard]] delivery& operator*() const noexcept { return **at_; }
        [[nodiscard]] delivery* operator->() const noexcept { return *at_; }
        iterator& operator++() noexcept {
            ++at_;
            return *this;
        }
        iterator operator++(int) noexcept {
            auto before = *this;
            ++at_;
            return before;
        }
        [[nodiscard]] friend bool operator==(const iterator&, const iterator&) = default;

      private:
        friend class delivery_batch;
        explicit iterator(delivery* const* at) noexcept : at_(at) {}
        delivery* const* at_ = nullptr;
    };

    /// A batch of `count` deliveries, which must outlive it, as must the array of pointers to them.
    delivery_batch(delivery* const* first, std::size_t count, std::stop_token stop) noexcept
        : first_(first), count_(count), stop_(std::move(stop)) {}

    delivery_batch(const delivery_batch&) = delete; // it ends with the call
    delivery_batch& operator=(const delivery_batch&) = delete;

    /// At least 1.
    [[nodiscard]] std::size_t size() const noexcept { return count_; }
    /// Requires `i < size()`.
    [[nodiscard]] delivery& operator[](std::size_t i) const noexcept { return *first_[i]; }
    [[nodiscard]] iterator begin() const noexcept { return iterator(first_); }
    [[nodiscard]] iterator end() const noexcept { return iterator(first_ + count_); }

    /// A stop is requested when the worker stops or every claim of the batch is lost. A single lost claim requests a
    /// stop of its own delivery only.
    [[nodiscard]] const std::stop_token& stop() const noexcept { return stop_; }

  private:
    delivery* const* first_;
    std::size_t count_;
    std::stop_token stop_;
};

} // namespace v0
} // namespace vouch
