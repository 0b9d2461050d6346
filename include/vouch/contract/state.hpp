// SPDX-License-Identifier: MIT
// The five states of an entry. `lifecycle.hpp` says which verb leads from which to which; nothing else can happen.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <vouch/version.hpp>

namespace vouch {
inline namespace v0 {

enum class state : std::uint8_t {
    pending,   ///< waits for its first attempt, or for the next step after a checkpoint
    retrying,  ///< an attempt failed or was handed back; waits for the next one
    claimed,   ///< a runner holds it under a lease
    succeeded, ///< terminal: done
    dead,      ///< terminal: given up, kept for a person to see
};

inline constexpr std::array<state, 5> all_states{state::pending, state::retrying, state::claimed, state::succeeded,
                                                 state::dead};

/// Terminal entries are frozen: no field of theirs changes again, and only a purge removes them.
[[nodiscard]] constexpr bool is_terminal(state s) noexcept { return s == state::succeeded || s == state::dead; }
[[nodiscard]] constexpr bool is_live(state s) noexcept { return !is_terminal(s); }

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

/// How many entries of a queue are in each state. Every state is present; zero is a number too.
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

} // namespace v0
} // namespace vouch
