// SPDX-License-Identifier: MIT
// What a store answers to a write. Every write is conditional and returns a verdict: a verdict on a stored entry, a
// receipt for a draft.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include <vouch/contract/id.hpp>
#include <vouch/contract/text_stream.hpp>

namespace vouch {
inline namespace v0 {

/// The answer to a write that names a stored entry. Only `applied` changes anything.
enum class verdict : std::uint8_t {
    applied,  ///< the change was made
    repeated, ///< there is nothing left to do: the ticket is used up, or the entry is already due, marked or dead
    stale,    ///< not allowed: another claim has taken over, or the entry's state forbids it
    unknown,  ///< no such entry
};

/// Every verdict, in the order of the enumeration.
inline constexpr std::array<verdict, 4> all_verdicts{verdict::applied, verdict::repeated, verdict::stale,
                                                     verdict::unknown};

/// The name of the enumerator.
[[nodiscard]] constexpr std::string_view name_of(verdict v) noexcept {
    switch (v) {
    case verdict::applied: return "applied";
    case verdict::repeated: return "repeated";
    case verdict::stale: return "stale";
    case verdict::unknown: return "unknown";
    }
    return "?";
}

/// The answer to one settle.
struct settlement {
    vouch::verdict verdict = vouch::verdict::unknown;
    bool group_completed = false; ///< with this settle the last open member of the group succeeded
    [[nodiscard]] friend constexpr bool operator==(const settlement&, const settlement&) noexcept = default;
};

/// Whether every verdict is `applied`.
[[nodiscard]] constexpr bool all_applied(std::span<const settlement> settlements) noexcept {
    for (const auto& s : settlements) {
        if (s.verdict != verdict::applied) {
            return false;
        }
    }
    return true;
}

/// Writes `applied`, or `applied, group completed`.
template <text_stream Stream>
Stream& operator<<(Stream& out, const settlement& s) {
    detail::write_text(out, name_of(s.verdict));
    return s.group_completed ? detail::write_text(out, ", group completed") : out;
}

/// The answer to one draft.
struct receipt {
    enum class kind : std::uint8_t {
        inserted,  ///< stored
        duplicate, ///< not stored: `id` has the same id or key, or is the predecessor's successor already
        refused,   ///< not stored: the predecessor is absent, not dead, or in another queue
    };
    receipt::kind what = kind::refused;
    vouch::id id{}; ///< inserted: the draft's id; duplicate: the stored entry's id; refused: nil

    [[nodiscard]] friend constexpr bool operator==(const receipt&, const receipt&) noexcept = default;
};

/// The name of the enumerator.
[[nodiscard]] constexpr std::string_view name_of(receipt::kind k) noexcept {
    switch (k) {
    case receipt::kind::inserted: return "inserted";
    case receipt::kind::duplicate: return "duplicate";
    case receipt::kind::refused: return "refused";
    }
    return "?";
}

/// Writes the kind and the id: `duplicate 00000000-0000-0000-0000-000000000001`.
template <text_stream Stream>
Stream& operator<<(Stream& out, const receipt& r) {
    detail::write_text(out, name_of(r.what));
    return r.id.is_nil() ? out : detail::write_text(out, ' ' + to_string(r.id));
}

} // namespace v0
} // namespace vouch
