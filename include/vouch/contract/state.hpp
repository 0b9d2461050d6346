// SPDX-License-Identifier: MIT
// The five states of an entry. `transitions.hpp` lists every change from one state to another.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <vouch/contract/text_stream.hpp>

namespace vouch {
inline namespace v0 {

/// Where an entry is in its life.
enum class state : std::uint8_t {
    pending,   ///< waits for its first attempt, or for the next step after a checkpoint
    retrying,  ///< waits for another attempt after one that failed or was released
    claimed,   ///< held by a runner under a lease
    succeeded, ///< terminal: done
    dead,      ///< terminal: given up; kept for an operator
};

/// Every state, in the order of the enumeration.
inline constexpr std::array<state, 5> all_states{state::pending, state::retrying, state::claimed, state::succeeded,
                                                 state::dead};

/// A terminal entry is frozen: no field changes again, and only a purge removes it.
[[nodiscard]] constexpr bool is_terminal(state s) noexcept { return s == state::succeeded || s == state::dead; }
/// Not terminal.
[[nodiscard]] constexpr bool is_live(state s) noexcept { return !is_terminal(s); }

/// The name of the enumerator.
[[nodiscard]] constexpr std::string_view name_of(state s) noexcept {
    switch (s) {
    case state::pending: return "pending";
    case state::retrying: return "retrying";
    case state::claimed: return "claimed";
    case state::succeeded: return "succeeded";
    case state::dead: return "dead";
    }
    return "?";
}

/// How many entries of a queue are in each state. Every state has a count, which may be 0.
struct state_counts {
    std::array<std::size_t, all_states.size()> by_state{};

    [[nodiscard]] constexpr std::size_t& operator[](state s) noexcept { return by_state[static_cast<std::size_t>(s)]; }
    [[nodiscard]] constexpr std::size_t operator[](state s) const noexcept {
        return by_state[static_cast<std::size_t>(s)];
    }
    [[nodiscard]] constexpr std::size_t live() const noexcept {
        return (*this)[state::pending] + (*this)[state::retrying] + (*this)[state::claimed];
    }
    [[nodiscard]] constexpr std::size_t total() const noexcept {
        return live() + (*this)[state::succeeded] + (*this)[state::dead];
    }
    [[nodiscard]] friend constexpr bool operator==(const state_counts&, const state_counts&) noexcept = default;
};

/// Writes every count: `1 pending, 0 retrying, 0 claimed, 0 succeeded, 0 dead`.
template <text_stream Stream>
Stream& operator<<(Stream& out, const state_counts& counts) {
    for (const auto s : all_states) {
        detail::write_text(out, s == all_states.front() ? "" : ", ");
        detail::write_text(out, std::to_string(counts[s]) + ' ');
        detail::write_text(out, name_of(s));
    }
    return out;
}

} // namespace v0
} // namespace vouch
