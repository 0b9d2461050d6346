// SPDX-License-Identifier: MIT
// What is wrong with a plain store, or merely odd about it. One value at run time, so that the store is compiled once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include <vouch/contract/lifecycle.hpp>
#include <vouch/contract/verdict.hpp>

#include "defect.hpp"

namespace mutants {

/// Legal ways of being a store.
enum class trait : std::uint8_t {
    none,                ///< one transaction at a time; the next one waits at begin
    slow,                ///< takes its time over every call
    conflicts_at_commit, ///< transactions run side by side, and those that cannot be put in a row end in `conflict`
    skips_touched,       ///< the same, and a claim passes over what another open transaction has touched
    leaves_gaps,         ///< in its sequences, which begin high
    does_without,        ///< groups, lanes and wakes
    conflicts_at_random, ///< now and then any operation or commit
    has_larger_limits,   ///< for payloads, results and progress
    wakes_for_anything,  ///< every commit wakes every queue
    forgets_nothing,     ///< takes its sequences from a counter that rollbacks do not turn back
};

/// Who is answered wrongly: every verb has its row of verdicts.
enum class verb_row : std::uint8_t { none, settle, extend, nudge, cancel };

struct cell {
    verb_row verb = verb_row::none;
    vouch::asked asked{};
    vouch::standing standing{};
};

struct variant {
    mutants::defect defect = defect::none;
    std::string_view field{}; ///< of `defect::field_is_forgotten`
    mutants::cell cell{};     ///< of `defect::verdict_is_wrong`
    mutants::trait trait = trait::none;

    [[nodiscard]] bool is(mutants::defect d) const noexcept { return defect == d; }
    [[nodiscard]] bool is(mutants::trait h) const noexcept { return trait == h; }

    /// Transactions side by side, each on the work as it was at its begin.
    [[nodiscard]] bool is_optimistic() const noexcept {
        return is(trait::conflicts_at_commit) || is(trait::skips_touched) || is(defect::commit_overwrites) ||
               is(defect::commit_checks_only_its_rows) || is(defect::conflict_keeps_its_writes) ||
               is(defect::begin_sees_uncommitted) || is(defect::claim_skips_touched_forever);
    }
};

} // namespace mutants
