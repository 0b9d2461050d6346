// SPDX-License-Identifier: MIT
// Items ordered by (time, sequence), with fast access to the earliest. Times are mostly added in order: new entries are
// due now, leases end in the order they were taken, retries wait equally long. So an item is first inserted near the
// end of one of a few sorted lists, in O(1). If it fits into none of them, it goes into a heap, in O(log n).
//
// `make_room` reserves memory; after that, no function allocates or throws, except `walk`.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include <vouch/memory/detail/heap.hpp>

namespace vouch {
inline namespace v0 {
namespace memory::detail {

/// `Item` has a public `timeline_place<Item> place` and is in one timeline at a time.
template <class Item>
struct timeline_place {
    moment when{};
    Item* before = nullptr; ///< the neighbours in its list
    Item* after = nullptr;
    std::size_t in_heap = nowhere; ///< `nowhere`: it is in a list, or in no timeline
};

template <class Item>
class timeline {
  public:
    void make_room(std::size_t items) { heap_.make_room(items); }

    /// The earliest, or null.
    [[nodiscard]] Item* first() const noexcept {
        auto* first = heap_.empty() ? nullptr : heap_.top().item;
        for (const auto& l : lists_) {
            first = is_before(l.first, first) ? l.first : first;
        }
        return first;
    }

    void push(Item& item, const moment& when) noexcept {
        item.place.when = when;
        for (auto& l : lists_) {
            if (l.take(item)) {
                return;
            }
        }
        heap_.push(item);
    }

    void erase(Item& item) noexcept {
        if (item.place.in_heap != nowhere) {
            heap_.erase(item);
            return;
        }
        for (auto& l : lists_) {
            l.first = l.first == &item ? item.place.after : l.first;
            l.last = l.last == &item ? item.place.before : l.last;
        }
        if (item.place.before != nullptr) {
            item.place.before->place.after = item.place.after;
        }
        if (item.place.after != nullptr) {
            item.place.after->place.before = item.place.before;
        }
        item.place.before = item.place.after = nullptr;
    }

    /// Visits items in order, without moving them, until `visit(item)` returns false.
    template <class Visit>
    void walk(Visit&& visit) const {
        std::array<Item*, lists> next{};
        std::transform(lists_.begin(), lists_.end(), next.begin(), [](const list& l) { return l.first; });
        bool more = true;
        const auto visit_listed = [&](Item* until) { // null: all
            while (more) {
                auto& least =
                    *std::min_element(next.begin(), next.end(), [](Item* a, Item* b) { return is_before(a, b); });
                if (!is_before(least, until)) {
                    return;
                }
                more = visit(*std::exchange(least, least->place.after));
            }
        };
        heap_.walk([&](Item& item) {
            visit_listed(&item);
            return more = more && visit(item);
        });
        visit_listed(nullptr);
    }

  private:
    static constexpr std::size_t lists = 3; // for entries due now, leases and retries
    static constexpr int steps_max = 8;     // from the end of a list

    /// Null is after every item.
    [[nodiscard]] static bool is_before(const Item* a, const Item* b) noexcept {
        return a != nullptr && (b == nullptr || a->place.when < b->place.when);
    }

    struct list {
        Item* first = nullptr;
        Item* last = nullptr;

        [[nodiscard]] bool take(Item& item) noexcept {
            auto* before = last;
            for (int step = 0; before != nullptr && item.place.when < before->place.when; ++step) {
                if (step == steps_max) {
                    return false;
                }
                before = before->place.before;
            }
            auto*& link = before == nullptr ? first : before->place.after;
            auto*& back = link == nullptr ? last : link->place.before;
            item.place.before = before;
            item.place.after = link;
            link = back = &item;
            return true;
        }
    };

    std::array<list, lists> lists_{};
    heap<Item> heap_;
};

} // namespace memory::detail
} // namespace v0
} // namespace vouch
