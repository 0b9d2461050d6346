// SPDX-License-Identifier: MIT
// What the store says became of a write. No write goes without a condition, and none without an answer.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include <vouch/contract/id.hpp>

namespace vouch {
inline namespace v0 {

/// Only `applied` changes anything.
enum class verdict : std::uint8_t {
    applied,
    repeated, ///< nothing left to do: the ticket is used up, the entry already due, marked or dead
    stale,    ///< not entitled: another claim has taken over, or the entry's state does not allow it
    unknown,  ///< no such entry
};

inline constexpr std::array<verdict, 4> all_verdicts{verdict::applied, verdict::repeated, verdict::stale,
                                                     verdict::unknown};

[[nodiscard]] constexpr std::string_view name_of(verdict v) noexcept {
    switch (v) {
    case verdict::applied: return "applied";
    case verdict::repeated: return "repeated";
    case verdict::stale: return "stale";
    case verdict::unknown: return "unknown";
    }
    return "?";
}

/// What became of one settle.
struct settlement {
    vouch::verdict verdict = vouch::verdict::unknown;
    bool group_completed = false; ///< this settle took the group's members not yet succeeded from one to zero
    [[nodiscard]] friend constexpr bool operator==(const settlement&, const settlement&) noexcept = default;
};

/// What became of one draft.
struct receipt {
    enum class kind : std::uint8_t {
        inserted,
        duplicate, ///< nothing written: `id` is stored already, by its id, its key, or as the predecessor's successor
        refused,   ///< nothing written: the predecessor is absent, not dead, or of another queue
    };
    receipt::kind what = kind::refused;
    vouch::id id{}; ///< inserted: the draft's; duplicate: the stored entry's; refused: nil

    [[nodiscard]] friend constexpr bool operator==(const receipt&, const receipt&) noexcept = default;
};

[[nodiscard]] constexpr std::string_view name_of(receipt::kind k) noexcept {
    switch (k) {
    case receipt::kind::inserted: return "inserted";
    case receipt::kind::duplicate: return "duplicate";
    case receipt::kind::refused: return "refused";
    }
    return "?";
}

} // namespace v0
} // namespace vouch
