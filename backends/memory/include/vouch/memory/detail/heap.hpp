// SPDX-License-Identifier: MIT
// An eight-way heap ordered by (time, sequence). Each item stores its position, so that any item can be erased in
// O(log n). `make_room` reserves memory; after that, no function allocates or throws, except `walk`.
#pragma once

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <vouch/contract/time.hpp>

namespace vouch {
inline namespace v0 {
namespace memory::detail {

inline constexpr std::size_t nowhere = static_cast<std::size_t>(-1);

struct moment {
    time_point at{};
    std::uint64_t sequence = 0;

    [[nodiscard]] friend constexpr auto operator<=>(const moment&, const moment&) noexcept = default;
};

/// `Item` has a public `place` with a `moment when`, its order, and an index `in_heap`, which is `nowhere` while the
/// item is in no heap.
template <class Item>
class heap {
  public:
    struct node {
        moment when; // a copy, so that a comparison does not touch the item
        Item* item;

        [[nodiscard]] friend bool operator<(const node& a, const node& b) noexcept { return a.when < b.when; }
    };

    void make_room(std::size_t items) {
        if (items > nodes_.capacity()) {
            nodes_.reserve(std::max(items, 2 * nodes_.capacity()));
        }
    }

    [[nodiscard]] bool empty() const noexcept { return nodes_.empty(); }
    [[nodiscard]] const node& top() const noexcept { return nodes_.front(); }

    void push(Item& item) noexcept {
        nodes_.push_back({item.place.when, &item});
        rise(nodes_.size() - 1);
    }

    void erase(Item& item) noexcept {
        const auto hole = std::exchange(item.place.in_heap, nowhere);
        const auto last = nodes_.back();
        nodes_.pop_back();
        if (hole < nodes_.size()) {
            put(hole, last);
            settle(hole);
        }
    }

    /// Visits items in order, without moving them, until `visit(item)` returns false. O(k log k) for k visits.
    template <class Visit>
    void walk(Visit&& visit) const {
        std::vector<std::size_t> edge;
        const auto further = [this](std::size_t a, std::size_t b) { return nodes_[b] < nodes_[a]; };
        const auto reach = [&](std::size_t place) {
            if (place < nodes_.size()) {
                edge.push_back(place);
                std::push_heap(edge.begin(), edge.end(), further);
            }
        };
        reach(0);
        while (!edge.empty()) {
            std::pop_heap(edge.begin(), edge.end(), further);
            const auto place = edge.back();
            edge.pop_back();
            if (!visit(*nodes_[place].item)) {
                return;
            }
            for (std::size_t child = place * ways + 1; child <= place * ways + ways; ++child) {
                reach(child);
            }
        }
    }

  private:
    static constexpr std::size_t ways = 8;

    void put(std::size_t place, const node& n) noexcept {
        nodes_[place] = n;
        n.item->place.in_heap = place;
    }

    void settle(std::size_t place) noexcept {
        if (place > 0 && nodes_[place] < nodes_[(place - 1) / ways]) {
            rise(place);
        } else {
            sink(place);
        }
    }

    void rise(std::size_t place) noexcept {
        const auto rising = nodes_[place];
        while (place > 0) {
            const auto above = (place - 1) / ways;
            if (!(rising < nodes_[above])) {
                break;
            }
            put(place, nodes_[above]);
            place = above;
        }
        put(place, rising);
    }

    void sink(std::size_t place) noexcept {
        const auto sinking = nodes_[place];
        for (;;) {
            const auto first = place * ways + 1;
            if (first >= nodes_.size()) {
                break;
            }
            const auto last = std::min(first + ways, nodes_.size());
            auto least = first;
            for (auto child = first + 1; child < last; ++child) {
                least = nodes_[child] < nodes_[least] ? child : least;
            }
            if (!(nodes_[least] < sinking)) {
                break;
            }
            put(place, nodes_[least]);
            place = least;
        }
        put(place, sinking);
    }

    std::vector<node> nodes_;
};

} // namespace memory::detail
} // namespace v0
} // namespace vouch
