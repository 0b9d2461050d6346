// SPDX-License-Identifier: MIT
// Batches that a simulated runner has handled and settles later, because it is slow.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <vouch/contract/time.hpp>
#include <vouch/run/runner.hpp>

namespace vouch {
inline namespace v0 {
namespace testing {
namespace detail {

template <class Store>
class held_batches {
  public:
    struct held {
        std::unique_ptr<runner<Store>> by;
        typename runner<Store>::batch batch;
        time_point until;
    };

    void add(held one) { all_.push_back(std::move(one)); }
    [[nodiscard]] bool empty() const noexcept { return all_.empty(); }

    /// Removes and returns the first batch whose time has come.
    [[nodiscard]] std::optional<held> take_due(time_point now) {
        for (std::size_t i = 0; i < all_.size(); ++i) {
            if (all_[i].until <= now) {
                std::optional<held> out(std::move(all_[i]));
                all_.erase(all_.begin() + static_cast<std::ptrdiff_t>(i));
                return out;
            }
        }
        return std::nullopt;
    }

    [[nodiscard]] std::optional<time_point> next() const {
        std::optional<time_point> first;
        for (const auto& one : all_) {
            first = !first || one.until < *first ? one.until : *first;
        }
        return first;
    }

  private:
    std::vector<held> all_{};
};

} // namespace detail
} // namespace testing
} // namespace v0
} // namespace vouch
