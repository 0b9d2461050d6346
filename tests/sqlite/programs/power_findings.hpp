// SPDX-License-Identifier: MIT
// What a power-loss test records: the entries, the transactions that changed them, and the counts of its findings.
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
    std::size_t in_doubt = 0;     ///< transactions whose commit threw an error in doubt
    std::size_t landed = 0;       ///< those in doubt that survived the power cut
    std::size_t answered = 0;     ///< those in doubt that a reader saw decided before the power cut
    std::size_t lost = 0;         ///< acknowledged transactions that did not survive
    std::size_t points_with_loss = 0;
    std::size_t mixed =
        0; ///< power cuts after which part of a transaction survived, or a later one without an earlier one
    std::size_t damaged = 0; ///< power cuts after which the file was corrupt or unreadable
};

/// The stored entries by id.
using contents = std::map<vouch::id, vouch::entry>;

/// What a transaction changed; unset: removed.
using changes = std::map<vouch::id, std::optional<vouch::entry>>;

inline void apply_changes(contents& to, const changes& made) {
    for (const auto& [id, now] : made) {
        if (now) {
            to[id] = *now;
        } else {
            to.erase(id);
        }
    }
}

} // namespace power_test
