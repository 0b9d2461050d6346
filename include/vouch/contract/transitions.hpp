// SPDX-License-Identifier: MIT
// The lifecycle of an entry, as one table. Each row is one state change: the state before, the verb, the state after,
// and the condition under which the row applies. A change that has no row cannot happen.
//
// `apply` (lifecycle.hpp) takes every new state from this table, and the compiler checks the table against the verdicts
// that a store returns. README.md in this folder shows both tables, with the fields that each verb changes.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include <vouch/contract/state.hpp>
#include <vouch/contract/text_stream.hpp>

namespace vouch {
inline namespace v0 {

/// What can be done to a stored entry. The verbs from `succeed` to `advance` are the outcomes of a settle.
enum class verb : std::uint8_t { claim, succeed, retry, bury, release, advance, extend, nudge, cancel };

/// Every verb, in the order of the enumeration.
inline constexpr std::array<verb, 9> all_verbs{verb::claim,   verb::succeed, verb::retry, verb::bury,  verb::release,
                                               verb::advance, verb::extend,  verb::nudge, verb::cancel};

/// The name of the enumerator.
[[nodiscard]] constexpr std::string_view name_of(verb v) noexcept {
    switch (v) {
    case verb::claim: return "claim";
    case verb::succeed: return "succeed";
    case verb::retry: return "retry";
    case verb::bury: return "bury";
    case verb::release: return "release";
    case verb::advance: return "advance";
    case verb::extend: return "extend";
    case verb::nudge: return "nudge";
    case verb::cancel: return "cancel";
    }
    return "?";
}

/// When a row of the table applies.
enum class condition : std::uint8_t {
    always,
    lease_over,    ///< the claim's lease has expired
    first_attempt, ///< the released claim was the first attempt: the count is 0 again
    later_attempt, ///< the released claim was a later attempt
};

/// One row of the table.
struct transition {
    state from;
    vouch::verb verb;
    state to;
    condition when = condition::always;

    [[nodiscard]] friend constexpr bool operator==(const transition&, const transition&) noexcept = default;
};

/// Every state change there is. Terminal states have no row: a succeeded or dead entry never changes.
inline constexpr std::array transitions{
    transition{state::pending, verb::claim, state::claimed},
    transition{state::retrying, verb::claim, state::claimed},
    transition{state::claimed, verb::claim, state::claimed, condition::lease_over},
    transition{state::claimed, verb::succeed, state::succeeded},
    transition{state::claimed, verb::retry, state::retrying},
    transition{state::claimed, verb::bury, state::dead},
    transition{state::claimed, verb::release, state::pending, condition::first_attempt},
    transition{state::claimed, verb::release, state::retrying, condition::later_attempt},
    transition{state::claimed, verb::advance, state::pending},
    transition{state::claimed, verb::extend, state::claimed},
    transition{state::pending, verb::nudge, state::pending},
    transition{state::retrying, verb::nudge, state::retrying},
    transition{state::claimed, verb::nudge, state::claimed},
    transition{state::pending, verb::cancel, state::dead},
    transition{state::retrying, verb::cancel, state::dead},
    transition{state::claimed, verb::cancel, state::dead, condition::lease_over},
};

} // namespace v0
} // namespace vouch
