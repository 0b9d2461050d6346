// SPDX-License-Identifier: MIT
// Items ordered by sequence: the members of a queue, a group or a lane, or the children of a parent. New items are
// appended, because sequences only grow. `erase` leaves a gap, which `restore` fills again without allocating. `tidy`
// closes the gaps; call it when no erased item can be restored any more.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <vouch/version.hpp>

namespace vouch {
inline namespace v0 {
namespace memory::detail {

template <class Item>
class sequence_list {
  public:
    struct place {
        std::uint64_t sequence;
        Item* item; // null: a gap
    };

    [[nodiscard]] std::size_t size() const noexcept { return places_.size() - gaps_; }
    [[nodiscard]] bool empty() const noexcept { return size() == 0; }

    void append(std::uint64_t sequence, Item& item) { places_.push_back({sequence, &item}); }

    /// Appends a gap for `restore` to fill.
    void append_gap(std::uint64_t sequence) {
        places_.push_back({sequence, nullptr});
        ++gaps_;
    }

    /// Not an error if the item is not in the list.
    void erase(std::uint64_t sequence) noexcept {
        const auto at = at_or_after(sequence);
        if (at == places_.end() || at->sequence != sequence || at->item == nullptr) {
            return;
        }
        at->item = nullptr;
        ++gaps_;
    }

    /// Fills a gap made since the last `tidy`.
    void restore(std::uint64_t sequence, Item& item) noexcept {
        const auto at = at_or_after(sequence);
        at->item = &item;
        --gaps_;
        first_ = std::min(first_, static_cast<std::size_t>(at - places_.begin()));
    }

    [[nodiscard]] Item* first() noexcept {
        while (first_ < places_.size() && places_[first_].item == nullptr) {
            ++first_;
        }
        return first_ < places_.size() ? places_[first_].item : nullptr;
    }

    /// Calls `f(item)` for each item after `sequence`, in order, until it returns false.
    template <class F>
    void for_each_after(std::uint64_t sequence, F&& f) const {
        auto at = std::upper_bound(places_.begin(), places_.end(), sequence,
                                   [](std::uint64_t s, const place& p) { return s < p.sequence; });
        for (; at != places_.end(); ++at) {
            if (at->item != nullptr && !f(*at->item)) {
                return;
            }
        }
    }

    void tidy() noexcept {
        if (2 * gaps_ > places_.size()) {
            std::erase_if(places_, [](const place& p) { return p.item == nullptr; });
            gaps_ = 0;
            first_ = 0;
        }
    }

  private:
    [[nodiscard]] auto at_or_after(std::uint64_t sequence) noexcept {
        return std::lower_bound(places_.begin(), places_.end(), sequence,
                                [](const place& p, std::uint64_t s) { return p.sequence < s; });
    }

    std::vector<place> places_;
    std::size_t gaps_ = 0;
    std::size_t first_ = 0; // everything before it is a gap
};

} // namespace memory::detail
} // namespace v0
} // namespace vouch
