// SPDX-License-Identifier: MIT
// What a store with row locks can do wrong. The names and the sentences of the contract that each one violates are in
// conformance/mutants/row_lock_mutants.hpp.
#pragma once

#include <cstddef>
#include <cstdint>

namespace row_locks {

enum class defect : std::uint8_t {
    none,

    // the entry that a verb names
    settle_reads_unlocked,
    extend_reads_unlocked,
    nudge_reads_unlocked,
    cancel_reads_unlocked,
    settle_locks_the_first_of_a_batch,
    settle_reads_before_its_lock,
    extend_reads_before_its_lock,
    nudge_reads_before_its_lock,
    cancel_reads_before_its_lock,
    repeated_is_unlocked,
    snapshot_is_older_than_the_locks,
    locks_end_with_the_operation,

    // what an end reaches
    parent_is_unlocked,
    parent_is_unlocked_when_repeated,
    parent_is_read_before_its_lock,
    lane_is_unlocked_in_settle,
    lane_is_unlocked_in_cancel,
    next_of_lane_is_unlocked,
    next_of_lane_is_read_before_its_lock,
    next_of_lane_is_chosen_before_the_lock,
    group_is_unlocked,
    group_is_counted_before_its_lock,
    group_counts_uncommitted,

    // drafts
    lane_is_unlocked_in_enqueue,
    lane_is_read_before_its_lock,
    sequence_is_drawn_before_the_lane_lock,
    id_is_unlocked,
    id_is_read_before_its_lock,
    key_is_unlocked,
    key_is_read_before_its_lock,
    duplicate_is_unlocked,
    predecessor_is_unlocked,
    predecessor_is_read_before_its_lock,
    successor_is_looked_up_before_the_lock,

    // claims
    claim_locks_nothing,
    claim_takes_locked_rows,
    claim_selects_then_locks,
    claim_stops_at_a_locked_row,
    claim_counts_locked_rows,
    claim_takes_turns,
    claim_skips_rolled_back,

    // purges
    purge_locks_nothing,
    purge_looks_before_it_locks,
    purge_locks_no_keys,

    // ends of transactions
    commit_installs_row_by_row,
    commit_releases_before_it_installs,
    deadlock_ends_both,
    conflict_leaks_its_locks,
};
inline constexpr std::size_t defect_count = static_cast<std::size_t>(defect::conflict_leaks_its_locks) + 1;

} // namespace row_locks
