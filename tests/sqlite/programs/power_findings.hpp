// SPDX-License-Identifier: MIT
// What a power test knows of the entries and of the transactions that changed them, and what it counts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

#include <vouch/contract/entry.hpp>
#include <vouch/contract/id.hpp>

#include "sqlite/programs/disk.hpp"

namespace power_test {

enum class mode : std::uint8_t { full, normal, off };

struct findings {
    std::size_t points = 0; ///< power cuts
    std::map<sqlite_test::disk::request, std::size_t> cuts{};
    std::size_t acknowledged = 0; ///< transactions whose commit returned
    std::size_t in_doubt = 0;     ///< transactions whose commit said so
    std::size_t landed = 0;       ///< of these
    std::size_t answered = 0;     ///< of these: readers were told what is there before the power went
    std::size_t lost = 0;         ///< acknowledged transactions that were gone
    std::size_t points_with_loss = 0;
    std::size_t mixed = 0;   ///< times half a transaction came back, or a later one without an earlier
    std::size_t damaged = 0; ///< times the file was not sound, or could not be read
};

/// Entries by id, as far as they are there.
using world = std::map<vouch::id, vouch::entry>;

/// What a transaction changed; unset: removed.
using changes = std::map<vouch::id, std::optional<vouch::entry>>;

inline void bring(world& to, const changes& made) {
    for (const auto& [id, now] : made) {
        if (now) {
            to[id] = *now;
        } else {
            to.erase(id);
        }
    }
}

} // namespace power_test
