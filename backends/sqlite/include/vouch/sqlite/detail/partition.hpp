// SPDX-License-Identifier: MIT
// Where an entry stands. Every queue has a number and three shelves: live, succeeded, dead. One index orders each shelf
// by gate, which for an ended entry is the time it ended; so a claim and a purge each read the beginning of a shelf.
#pragma once

#include <compare>
#include <cstdint>

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

/// A place on a shelf; the first is before all entries.
struct shelf_place {
    std::int64_t gate = INT64_MIN;
    std::uint64_t sequence = 0;

    [[nodiscard]] friend constexpr auto operator<=>(const shelf_place&, const shelf_place&) noexcept = default;
};

} // namespace sqlite::detail
} // namespace v0
} // namespace vouch
