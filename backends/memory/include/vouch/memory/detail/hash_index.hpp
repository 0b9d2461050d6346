// SPDX-License-Identifier: MIT
// A flat hash multi-index of items: open addressing, linear probing, no allocation per item. `erase` moves later cells
// back instead of leaving a tombstone, so it neither allocates nor throws.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include <vouch/version.hpp>

namespace vouch {
inline namespace v0 {
namespace memory::detail {

template <class Item>
class hash_index {
  public:
    void insert(std::size_t hash, Item& item) {
        if ((size_ + 1) * 8 > cells_.size() * 5) {
            grow();
        }
        place(cells_, {hash, &item});
        ++size_;
    }

    /// Not an error if the item is not in the index.
    void erase(std::size_t hash, const Item& item) noexcept {
        if (cells_.empty()) {
            return;
        }
        auto hole = home(cells_, hash);
        while (cells_[hole].item != &item) {
            if (cells_[hole].item == nullptr) {
                return;
            }
            hole = next(cells_, hole);
        }
        close(hole);
        --size_;
    }

    /// The first item with this hash for which `wanted(item)` holds, or null.
    template <class Wanted>
    [[nodiscard]] Item* find(std::size_t hash, Wanted&& wanted) const {
        if (cells_.empty()) {
            return nullptr;
        }
        for (auto at = home(cells_, hash); cells_[at].item != nullptr; at = next(cells_, at)) {
            if (cells_[at].hash == hash && wanted(*cells_[at].item)) {
                return cells_[at].item;
            }
        }
        return nullptr;
    }

  private:
    struct cell {
        std::size_t hash = 0;
        Item* item = nullptr;
    };
    using cell_list = std::vector<cell>;

    [[nodiscard]] static std::size_t home(const cell_list& cells, std::size_t hash) noexcept {
        return hash & (cells.size() - 1);
    }
    [[nodiscard]] static std::size_t next(const cell_list& cells, std::size_t at) noexcept {
        return (at + 1) & (cells.size() - 1);
    }

    static void place(cell_list& cells, const cell& c) noexcept {
        auto at = home(cells, c.hash);
        while (cells[at].item != nullptr) {
            at = next(cells, at);
        }
        cells[at] = c;
    }

    void grow() {
        cell_list larger(cells_.empty() ? 16 : cells_.size() * 2);
        for (const auto& c : cells_) {
            if (c.item != nullptr) {
                place(larger, c);
            }
        }
        cells_ = std::move(larger);
    }

    /// Fills the hole with later cells of the same run, but never moves a cell to a position before its home.
    void close(std::size_t hole) noexcept {
        const auto mask = cells_.size() - 1;
        for (auto at = next(cells_, hole); cells_[at].item != nullptr; at = next(cells_, at)) {
            const auto from_home = (at - home(cells_, cells_[at].hash)) & mask;
            const auto from_hole = (at - hole) & mask;
            if (from_home >= from_hole) {
                cells_[hole] = cells_[at];
                hole = at;
            }
        }
        cells_[hole] = {};
    }

    cell_list cells_;
    std::size_t size_ = 0;
};

} // namespace memory::detail
} // namespace v0
} // namespace vouch
