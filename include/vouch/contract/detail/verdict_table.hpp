// SPDX-License-Identifier: MIT
// The verdict on every call that names a stored entry, as one table: the call in rows, the entry in columns. The
// compiler checks it against the table of transitions: a verb is `applied` exactly where the lifecycle has a row for
// it.
//
// A claim has no row here. It names no entry; it takes those whose gate is open.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include <vouch/contract/detail/next_state.hpp>
#include <vouch/contract/entry.hpp>
#include <vouch/contract/state.hpp>
#include <vouch/contract/time.hpp>
#include <vouch/contract/transitions.hpp>
#include <vouch/contract/verdict.hpp>

namespace vouch {
inline namespace v0 {
namespace detail {

/// A call, as far as its verdict depends on it.
enum class verdict_row : std::uint8_t {
    settle,             ///< settle or extend, with the entry's current epoch
    settle_other_epoch, ///< settle or extend, with any other epoch
    nudge,
    nudge_again, ///< the entry is due or marked already
    cancel,
};

/// An entry, as far as the verdict depends on it.
enum class verdict_column : std::uint8_t {
    waiting, ///< pending or retrying
    held,    ///< claimed, the lease runs
    lapsed,  ///< claimed, the lease is over
    succeeded,
    dead,
    absent, ///< not stored
};

[[nodiscard]] constexpr verdict_column column_of(const life& l, time_point now) noexcept {
    switch (l.state) {
    case state::pending:
    case state::retrying: return verdict_column::waiting;
    case state::claimed: return l.lease_until && *l.lease_until <= now ? verdict_column::lapsed : verdict_column::held;
    case state::succeeded: return verdict_column::succeeded;
    case state::dead: break;
    }
    return verdict_column::dead;
}

using verdict_table = std::array<std::array<verdict, 6>, 5>;

// clang-format off
inline constexpr verdict_table verdict_cells = [] {
    using enum verdict;
    return verdict_table{{
        //                       waiting   held      lapsed    succeeded dead      absent
        /* settle             */ {repeated, applied,  applied,  repeated, repeated, unknown},
        /* settle_other_epoch */ {stale,    stale,    stale,    stale,    stale,    unknown},
        /* nudge              */ {applied,  applied,  applied,  stale,    stale,    unknown},
        /* nudge_again        */ {repeated, repeated, repeated, stale,    stale,    unknown},
        /* cancel             */ {applied,  stale,    applied,  stale,    repeated, unknown},
    }};
}();
// clang-format on

[[nodiscard]] constexpr verdict verdict_on(verdict_row row, verdict_column column) noexcept {
    return verdict_cells[static_cast<std::size_t>(row)][static_cast<std::size_t>(column)];
}

/// The verdict on a settle or an extend with this epoch.
[[nodiscard]] inline verdict verdict_on_ticket(const life& l, std::uint64_t epoch, time_point now) noexcept {
    return verdict_on(epoch == l.epoch ? verdict_row::settle : verdict_row::settle_other_epoch, column_of(l, now));
}

/// The row of a verb that is not refused for its ticket and not a repetition.
[[nodiscard]] constexpr verdict_row row_of(verb v) noexcept {
    switch (v) {
    case verb::nudge: return verdict_row::nudge;
    case verb::cancel: return verdict_row::cancel;
    default: return verdict_row::settle;
    }
}

/// Whether a transition leads from `s` by `v` while the lease runs, or when it is over.
[[nodiscard]] constexpr bool can_happen(state s, verb v, bool is_lease_over) noexcept {
    for (const auto& t : transitions) {
        if (t.from == s && t.verb == v && (t.when != condition::lease_over || is_lease_over)) {
            return true;
        }
    }
    return false;
}

[[nodiscard]] consteval bool verdicts_agree_with_transitions() {
    struct situation {
        vouch::state state;
        verdict_column column;
    };
    constexpr std::array situations{
        situation{state::pending, verdict_column::waiting},     situation{state::retrying, verdict_column::waiting},
        situation{state::claimed, verdict_column::held},        situation{state::claimed, verdict_column::lapsed},
        situation{state::succeeded, verdict_column::succeeded}, situation{state::dead, verdict_column::dead},
    };
    for (const auto v : all_verbs) {
        for (const auto& [s, column] : situations) {
            const bool is_allowed = can_happen(s, v, column == verdict_column::lapsed);
            const bool is_applied = v == verb::claim
                                        ? column == verdict_column::waiting || column == verdict_column::lapsed
                                        : verdict_on(row_of(v), column) == verdict::applied;
            if (is_allowed != is_applied) {
                return false;
            }
        }
    }
    for (const auto v : verdict_cells[static_cast<std::size_t>(verdict_row::settle_other_epoch)]) {
        if (v == verdict::applied) {
            return false;
        }
    }
    return true;
}
static_assert(verdicts_agree_with_transitions(),
              "vouch: a verb must be `applied` exactly where the table of transitions has a row for it");

} // namespace detail
} // namespace v0
} // namespace vouch
