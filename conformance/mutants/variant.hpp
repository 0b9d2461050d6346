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

    // conflicts
    conflicts_in_most_commits,       ///< nine of ten
    conflicts_in_some_calls,         ///< one of a hundred
    conflicts_often,                 ///< both
    conflicts_often_and_leaves_gaps, ///< both, and rollbacks do not reset sequences
    conflicts_at_first,              ///< the first commit through each handle
    conflicts_at_begin,              ///< every third begin
    conflicts_instead_of_waiting,    ///< begin, while another transaction is open
    conflicts_at_the_next_call,      ///< optimistic: the next call after another commit
    conflicts_at_any_overlap,        ///< optimistic: a commit after another commit, even without a common entry
    skips_and_conflicts,             ///< skips_touched and conflicts_often

    // sequences and speed
    counts_in_thousands,      ///< sequences are multiples of 1000
    counts_for_all_locations, ///< one counter of sequences for all stores
    begins_slowly,
    commits_slowly,
    yields, ///< to other threads, in every call

    // wake numbers
    wakes_begin_high,   ///< near the greatest number
    wakes_jump,         ///< by varying amounts
    wakes_count_down,   ///< from the greatest number
    wakes_follow_later, ///< some milliseconds after the commit

    // capabilities
    lacks_groups,
    lacks_lanes,
    lacks_wakes,
    lacks_durability, ///< everything is lost when the last handle is closed
    lacks_sharing,
    has_longer_names,
    has_larger_batches,
    has_wider_leases,
    says_much, ///< error messages of many bytes
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

/// What `enqueue_and_commit`, `claim_and_commit` and `settle_claim_and_commit` do wrong.
enum class committing_defect : std::uint8_t {
    none,
    enqueue_rolls_back,
    claim_rolls_back,
    enqueue_commits_nothing_earlier,
    claim_commits_nothing_earlier,
    enqueue_commits_only_what_is_earlier,
    enqueue_stays_open,
    claim_stays_open,
    nothing_stays_open,
    closed_begins_again,
    error_leaves_open,
    invalid_argument_closes,
    commits_before_it_validates,
    batch_is_committed_up_to_the_invalid_draft,
    duplicate_is_inserted,
    refused_is_inserted,
    batch_loses_all_but_the_first,
    group_is_forgotten,
    failed_commit_is_swallowed,
    doubt_is_hidden,
    earlier_writes_have_their_own_commit,
    half_is_in_doubt,
    failed_claim_is_kept,
    takes_over_expired,
    takes_over_expired_behind_others,
    takes_over_expired_one,
    claims_earlier_lapses,
    expired_is_an_empty_list,
    expired_is_skipped,
    nothing_has_claimed,
    nothing_rolls_back,
    left_claim_is_an_empty_list,
    claims_in_two_steps,
    enqueues_in_two_steps,
    wakes_nobody,
    is_lost_in_a_crash,
    is_not_declared,

    // settle_claim_and_commit
    settle_commits_although_refused,
    settle_accepts_repeated,
    settle_looks_at_the_first_verdict,
    refused_keeps_earlier_writes,
    refused_keeps_the_claim,
    refused_is_applied,
    refused_is_an_empty_list,
    refused_stays_open,
    settle_rolls_back,
    settle_stays_open,
    settle_commits_nothing_earlier,
    settle_hides_doubt,
    settle_claims_one_more,
    settle_claims_at_its_own_time,
    settle_takes_over_expired,
    settle_wakes_nobody,
    settles_before_it_validates_the_claim,
    settles_in_two_commits,
    settles_in_two_steps,
    claims_before_it_settles,
    left_claim_rolls_settles_back,
    settlements_are_reversed,
    group_completed_is_lost,
};

/// The plain store with `enqueue_and_commit`, `claim_and_commit` and `settle_claim_and_commit` (committing_store.hpp).
struct committing_variant {
    committing_defect defect = committing_defect::none;
    mutants::defect only_here = mutants::defect::none; ///< a defect that only these operations have
    bool leaves_claims = false;                        ///< allowed: every claim is left to another transaction
};

struct variant {
    mutants::defect defect = defect::none;
    std::string_view field{}; ///< for `defect::field_is_forgotten` and the defects with a fold
    mutants::cell cell{};     ///< for `defect::verdict_is_wrong`
    mutants::trait trait = trait::none;
    mutants::fold fold = fold::none; ///< for `defect::name_is_compared_loosely` and `defect::name_is_changed`
    std::optional<committing_variant> committing{};
    std::optional<row_lock_store> row_locks{}; ///< set: the other members have no meaning

    [[nodiscard]] bool is(mutants::defect d) const noexcept { return defect == d; }
    [[nodiscard]] bool is(mutants::trait h) const noexcept { return trait == h; }
    [[nodiscard]] bool is(committing_defect d) const noexcept { return committing && committing->defect == d; }

    /// Transactions overlap; each works on the snapshot committed when it began.
    [[nodiscard]] bool is_optimistic() const noexcept {
        return is(trait::conflicts_at_commit) || skips() || is(trait::conflicts_at_the_next_call) ||
               is(trait::conflicts_at_any_overlap) || is(defect::commit_overwrites) ||
               is(defect::commit_checks_only_its_rows) || is(defect::conflict_keeps_its_writes) ||
               is(defect::begin_sees_uncommitted) || is(defect::begin_is_once_per_thread) ||
               is(defect::find_shows_uncommitted_of_others) || is(defect::commit_writes_what_it_computed_first) ||
               is(defect::rollback_undoes_later_transactions) || has_bad_conflicts();
    }

    /// A claim skips what another open transaction has touched.
    [[nodiscard]] bool skips() const noexcept {
        return is(trait::skips_touched) || is(trait::skips_and_conflicts) || is(defect::claim_skips_touched_forever);
    }

    /// Nine of ten commits, and one of a hundred calls, end in `conflict`.
    [[nodiscard]] bool conflicts_in_commits() const noexcept {
        return is(trait::conflicts_in_most_commits) || is_often();
    }
    [[nodiscard]] bool conflicts_in_calls() const noexcept { return is(trait::conflicts_in_some_calls) || is_often(); }

  private:
    [[nodiscard]] bool is_often() const noexcept {
        return is(trait::conflicts_often) || is(trait::conflicts_often_and_leaves_gaps) ||
               is(trait::skips_and_conflicts);
    }
    [[nodiscard]] bool has_bad_conflicts() const noexcept {
        return is(defect::conflict_leaves_open) || is(defect::conflict_keeps_keys) ||
               is(defect::conflict_keeps_claims) || is(defect::conflict_keeps_the_lock) ||
               is(defect::conflict_hits_both) || is(defect::conflict_is_in_doubt) ||
               is(defect::conflict_undoes_the_winner);
    }
};

} // namespace mutants
