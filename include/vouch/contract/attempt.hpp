// SPDX-License-Identifier: MIT
// One attempt at an entry and how it ended, for an application that keeps a history. A claim whose lease expires has no
// line, and neither has one that is handed back in the transaction of the claim; the epochs of the lines then have a gap.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include <vouch/contract/id.hpp>
#include <vouch/contract/time.hpp>

namespace vouch {
inline namespace v0 {

struct attempt_line {
    /// The outcome that was settled.
    enum class kind : std::uint8_t {
        succeeded,
        retrying, ///< it failed, and there will be another attempt
        dead,
        released, ///< the claim was given back
        advanced, ///< a checkpoint: a saga finished a step
    };
    vouch::id id{};          ///< the entry
    std::uint64_t epoch = 0; ///< the number of the claim; (id, epoch) is unique
    attempt_line::kind what{};
    time_point at{}; ///< when the outcome was settled
    time_point claimed_at{};
    std::uint32_t attempt = 0; ///< the entry's attempts, this one included
    std::string worker{};
    std::string error{}; ///< a code, never a message; empty unless retrying or dead

    [[nodiscard]] friend bool operator==(const attempt_line&, const attempt_line&) = default;
};

/// Every kind, in the order of the enumeration.
inline constexpr std::array<attempt_line::kind, 5> all_attempt_kinds{
    attempt_line::kind::succeeded, attempt_line::kind::retrying, attempt_line::kind::dead, attempt_line::kind::released,
    attempt_line::kind::advanced};

[[nodiscard]] constexpr std::string_view name_of(attempt_line::kind kind) noexcept {
    switch (kind) {
    case attempt_line::kind::succeeded: return "succeeded";
    case attempt_line::kind::retrying: return "retrying";
    case attempt_line::kind::dead: return "dead";
    case attempt_line::kind::released: return "released";
    case attempt_line::kind::advanced: return "advanced";
    }
    return "?";
}

} // namespace v0
} // namespace vouch
