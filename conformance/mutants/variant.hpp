// SPDX-License-Identifier: MIT
// How a plain store differs from the default: by one defect, or by a trait that the contract allows. It is a value at
// run time, so that the store is compiled once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include <vouch/contract/lifecycle.hpp>
#include <vouch/contract/verdict.hpp>

#include "../row_locks/defect.hpp"
#include "defect.hpp"
#include "name_folds.hpp"

namespace mutants {

// A wrong verdict is named by its cell in the table of verdicts.
using vouch::detail::verdict_column;
using vouch::detail::verdict_row;

/// Behaviour that the contract allows.
enum class trait : std::uint8_t {
    none,                ///< one transaction at a time; the next one waits at begin
    slow,                ///< sleeps in every call
    conflicts_at_commit, ///< transactions overlap; those that are not serializable end in `conflict`
    skips_touched,       ///< the same, and a claim skips what another open transaction has touched
    leaves_gaps,         ///< between sequences, which begin high
    lacks_capabilities,  ///< no groups, lanes or wakes
    conflicts_at_random, ///< any operation or commit may end in `conflict`
    has_larger_limits,   ///< for payloads, results and progress
    wakes_every_queue,   ///< every commit wakes every queue
    keeps_counting,      ///< sequences come from a counter that rollbacks do not reset
};

/// The rows of the verdict table.
enum class verb_row : std::uint8_t { none, settle, extend, nudge, cancel };

struct cell {
    verb_row verb = verb_row::none;
    verdict_row row{};
    verdict_column column{};
};

/// The store with row locks (conformance/row_locks) instead of the plain one.
struct row_lock_store {
    row_locks::defect defect = row_locks::defect::none;
    // These are allowed.
    bool claims_wait = false;
    bool locks_absence = true;
};

struct variant {
    mutants::defect defect = defect::none;
    std::string_view field{}; ///< for `defect::field_is_forgotten` and the defects with a fold
    mutants::cell cell{};     ///< for `defect::verdict_is_wrong`
    mutants::trait trait = trait::none;
    mutants::fold fold = fold::none; ///< for `defect::name_is_compared_loosely` and `defect::name_is_changed`
    std::optional<row_lock_store> row_locks{}; ///< set: the other members have no meaning

    [[nodiscard]] bool is(mutants::defect d) const noexcept { return defect == d; }
    [[nodiscard]] bool is(mutants::trait h) const noexcept { return trait == h; }

    /// Transactions overlap; each works on the snapshot committed when it began.
    [[nodiscard]] bool is_optimistic() const noexcept {
        return is(trait::conflicts_at_commit) || is(trait::skips_touched) || is(defect::commit_overwrites) ||
               is(defect::commit_checks_only_its_rows) || is(defect::conflict_keeps_its_writes) ||
               is(defect::begin_sees_uncommitted) || is(defect::claim_skips_touched_forever) ||
               is(defect::begin_is_once_per_thread) || is(defect::find_shows_uncommitted_of_others) ||
               is(defect::commit_writes_what_it_computed_first);
    }
};

} // namespace mutants
