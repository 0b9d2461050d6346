// SPDX-License-Identifier: MIT
// Where an entry stands. Every queue has a number and three shelves: live, succeeded, dead. One index orders each shelf
// by gate, which for an ended entry is the time it ended; so a claim and a purge each read the beginning of a shelf.
#pragma once

#include <cstdint>

#include <vouch/contract/query.hpp>
#include <vouch/contract/state.hpp>

namespace vouch {
inline namespace v0 {
namespace sqlite::detail {

/// A queue's number; its shelves are the four numbers from `first()` on, of which the last stays empty.
struct queue_number {
    std::int64_t value = 0;

    [[nodiscard]] constexpr std::int64_t first() const noexcept { return value * 4; }
    [[nodiscard]] constexpr std::int64_t shelf(state s) const noexcept {
        return first() + (s == state::succeeded ? 1 : s == state::dead ? 2 : 0);
    }
};

/// Shelves beside each other, both ends included.
struct shelf_range {
    std::int64_t first = 0;
    std::int64_t last = 0;
};

[[nodiscard]] constexpr shelf_range shelves_of(queue_number queue, query::path by) noexcept {
    switch (by) {
    case query::path::live: return {queue.shelf(state::pending), queue.shelf(state::pending)};
    case query::path::dead: return {queue.shelf(state::dead), queue.shelf(state::dead)};
    default: return {queue.shelf(state::pending), queue.shelf(state::dead)};
    }
}

} // namespace sqlite::detail
} // namespace v0
} // namespace vouch
