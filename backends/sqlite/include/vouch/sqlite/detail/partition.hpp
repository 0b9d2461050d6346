// SPDX-License-Identifier: MIT
// The partition of an entry. Every queue has a number and three partitions: live, succeeded, dead. One index orders
// each partition by gate; the gate of an ended entry is the time it ended. So a claim and a purge each read the
// beginning of a partition.
#pragma once

#include <compare>
#include <cstdint>

#include <vouch/contract/state.hpp>

namespace vouch {
inline namespace v0 {
namespace sqlite::detail {

/// A queue's number. Its partitions are the four numbers from `first()` on; the fourth is unused.
struct queue_number {
    std::int64_t value = 0;

    [[nodiscard]] constexpr std::int64_t first() const noexcept { return value * 4; }
    [[nodiscard]] constexpr std::int64_t partition(state s) const noexcept {
        return first() + (s == state::succeeded ? 1 : s == state::dead ? 2 : 0);
    }
};

/// A position in a partition. A default position is before all entries.
struct partition_position {
    std::int64_t gate = INT64_MIN;
    std::uint64_t sequence = 0;

    [[nodiscard]] friend constexpr auto operator<=>(const partition_position&,
                                                    const partition_position&) noexcept = default;
};

} // namespace sqlite::detail
} // namespace v0
} // namespace vouch
