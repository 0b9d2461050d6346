// SPDX-License-Identifier: MIT
// The new state of an entry, looked up in the table of transitions. The lookup is done by the compiler: at run time it
// is a constant, or one load where the state before is not known until then.
#pragma once

#include <array>
#include <cstddef>

#include <vouch/contract/state.hpp>
#include <vouch/contract/transitions.hpp>

namespace vouch {
inline namespace v0 {
namespace detail {

/// Whether the table has a row for `v` in the state `from`.
[[nodiscard]] constexpr bool has_transition(state from, verb v) noexcept {
    for (const auto& t : transitions) {
        if (t.from == from && t.verb == v) {
            return true;
        }
    }
    return false;
}
[[nodiscard]] constexpr bool has_transition(state from, verb v, condition when) noexcept {
    for (const auto& t : transitions) {
        if (t.from == from && t.verb == v && t.when == when) {
            return true;
        }
    }
    return false;
}

/// The state that the row (`from`, `v`, `when`) leads to. Without such a row there is none, and no program.
[[nodiscard]] consteval state state_after(state from, verb v, condition when = condition::always) {
    for (const auto& t : transitions) {
        if (t.from == from && t.verb == v && t.when == when) {
            return t.to;
        }
    }
    throw "vouch: the table of transitions has no such row";
}

/// The state that each state leads to by the verb `V`. A state without a row stays what it is.
template <verb V>
inline constexpr std::array<state, all_states.size()> states_after = [] {
    auto out = all_states;
    for (const auto& t : transitions) {
        if (t.verb == V) {
            auto& to = out[static_cast<std::size_t>(t.from)];
            if (to != t.from && to != t.to) {
                throw "vouch: this verb has several rows for one state; name the condition";
            }
            to = t.to;
        }
    }
    return out;
}();

template <verb V>
[[nodiscard]] constexpr state state_after(state from) noexcept {
    return states_after<V>[static_cast<std::size_t>(from)];
}

/// Each (from, verb, condition) has one row, and no row leads out of a terminal state.
[[nodiscard]] consteval bool transitions_are_sound() {
    for (std::size_t i = 0; i < transitions.size(); ++i) {
        const auto& a = transitions[i];
        if (is_terminal(a.from)) {
            return false;
        }
        for (std::size_t j = i + 1; j < transitions.size(); ++j) {
            const auto& b = transitions[j];
            if (a.from == b.from && a.verb == b.verb &&
                (a.when == b.when || a.when == condition::always || b.when == condition::always)) {
                return false;
            }
        }
    }
    return true;
}
static_assert(transitions_are_sound(), "vouch: two transitions contradict each other, or one leaves a terminal state");

/// `gate_of` agrees with the table: a state has a gate exactly if it can be claimed, and the gate is the end of the
/// lease exactly if that is the condition of the claim.
[[nodiscard]] consteval bool gates_agree_with_transitions() {
    for (const auto s : all_states) {
        if (has_transition(s, verb::claim) != is_live(s) ||
            has_transition(s, verb::claim, condition::lease_over) != (s == state::claimed)) {
            return false;
        }
    }
    return true;
}
static_assert(gates_agree_with_transitions(), "vouch: only live states, and all of them, can be claimed");

} // namespace detail
} // namespace v0
} // namespace vouch
