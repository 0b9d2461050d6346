// SPDX-License-Identifier: MIT
// Mutants of the store with row locks (conformance/row_locks): what goes wrong when several transactions write at the
// same time. Each of them is right as long as one transaction is open at a time.
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "variant.hpp"
#include "violation.hpp"

namespace mutants {

struct row_lock_violation {
    struct by {
        std::string_view name;
        row_locks::defect defect;
    };
    std::string_view sentence;
    std::vector<by> stores;
};

inline const std::vector<row_lock_violation> row_lock_mutants{
    {"Every write is conditional: the condition still holds when the write takes effect.",
     {{"settle reads unlocked", row_locks::defect::settle_reads_unlocked},
      {"settle locks the first of a batch", row_locks::defect::settle_locks_the_first_of_a_batch},
      {"extend reads unlocked", row_locks::defect::extend_reads_unlocked},
      {"nudge reads unlocked", row_locks::defect::nudge_reads_unlocked},
      {"cancel reads unlocked", row_locks::defect::cancel_reads_unlocked},
      {"settle reads before its lock", row_locks::defect::settle_reads_before_its_lock},
      {"extend reads before its lock", row_locks::defect::extend_reads_before_its_lock},
      {"nudge reads before its lock", row_locks::defect::nudge_reads_before_its_lock},
      {"cancel reads before its lock", row_locks::defect::cancel_reads_before_its_lock},
      {"snapshot is older than the locks", row_locks::defect::snapshot_is_older_than_the_locks}}},
    {"What a verdict rests on stays true until the transaction ends.",
     {{"repeated is unlocked", row_locks::defect::repeated_is_unlocked},
      {"duplicate is unlocked", row_locks::defect::duplicate_is_unlocked},
      {"purge locks no keys", row_locks::defect::purge_locks_no_keys},
      {"purge locks nothing", row_locks::defect::purge_locks_nothing},
      {"locks end with the operation", row_locks::defect::locks_end_with_the_operation}}},
    {"When an entry becomes terminal, the same transaction nudges its parent.",
     {{"parent is unlocked", row_locks::defect::parent_is_unlocked},
      {"parent is unlocked when repeated", row_locks::defect::parent_is_unlocked_when_repeated},
      {"parent is read before its lock", row_locks::defect::parent_is_read_before_its_lock}}},
    {"When an entry becomes terminal, the same transaction gives the next entry of its lane a gate.",
     {{"lane is unlocked in settle", row_locks::defect::lane_is_unlocked_in_settle},
      {"lane is unlocked in cancel", row_locks::defect::lane_is_unlocked_in_cancel},
      {"lane is unlocked in enqueue", row_locks::defect::lane_is_unlocked_in_enqueue},
      {"lane is read before its lock", row_locks::defect::lane_is_read_before_its_lock},
      {"next of lane is unlocked", row_locks::defect::next_of_lane_is_unlocked},
      {"next of lane is read before its lock", row_locks::defect::next_of_lane_is_read_before_its_lock},
      {"next of lane is chosen before the lock", row_locks::defect::next_of_lane_is_chosen_before_the_lock}}},
    {"Entries of a lane are claimed one at a time, in the order of their sequences.",
     {{"sequence is drawn before the lane lock", row_locks::defect::sequence_is_drawn_before_the_lane_lock}}},
    {"The settle with which the last open member of a group succeeds says so, and no other.",
     {{"group is unlocked", row_locks::defect::group_is_unlocked},
      {"group is counted before its lock", row_locks::defect::group_is_counted_before_its_lock},
      {"group counts uncommitted", row_locks::defect::group_counts_uncommitted}}},
    {"A draft whose id is stored, or whose queue and key are, is a duplicate.",
     {{"id is unlocked", row_locks::defect::id_is_unlocked},
      {"id is read before its lock", row_locks::defect::id_is_read_before_its_lock},
      {"key is unlocked", row_locks::defect::key_is_unlocked},
      {"key is read before its lock", row_locks::defect::key_is_read_before_its_lock}}},
    {"A dead entry gets at most one successor.",
     {{"predecessor is unlocked", row_locks::defect::predecessor_is_unlocked},
      {"predecessor is read before its lock", row_locks::defect::predecessor_is_read_before_its_lock},
      {"successor is looked up before the lock", row_locks::defect::successor_is_looked_up_before_the_lock}}},
    {"A claim takes the first entries whose gate is open, and each is held by one claim.",
     {{"claim locks nothing", row_locks::defect::claim_locks_nothing},
      {"claim takes locked rows", row_locks::defect::claim_takes_locked_rows},
      {"claim selects, then locks", row_locks::defect::claim_selects_then_locks}}},
    {"A claim may pass over an entry that another open transaction has changed, and over no other.",
     {{"claim stops at a locked row", row_locks::defect::claim_stops_at_a_locked_row},
      {"claim counts locked rows", row_locks::defect::claim_counts_locked_rows},
      {"claims take turns", row_locks::defect::claim_takes_turns},
      {"claim skips what was rolled back", row_locks::defect::claim_skips_rolled_back}}},
    {"A purge removes terminal entries that no live entry needs.",
     {{"purge looks before it locks", row_locks::defect::purge_looks_before_it_locks}}},
    {"Before commit no other reader sees any of the writes; after commit all readers see all of them.",
     {{"commit installs row by row", row_locks::defect::commit_installs_row_by_row},
      {"commit releases before it installs", row_locks::defect::commit_releases_before_it_installs}}},
    {"A conflict is rolled back, and one of the conflicting transactions always succeeds.",
     {{"deadlock ends both", row_locks::defect::deadlock_ends_both},
      {"conflict leaks its locks", row_locks::defect::conflict_leaks_its_locks}}},
};

struct conforming_row_lock_store {
    std::string_view name;
    row_lock_store how;
};

/// Stores with row locks that violate nothing.
inline constexpr std::array conforming_row_locks{
    conforming_row_lock_store{"row locks", {}},
    conforming_row_lock_store{"row locks, claims wait", {.claims_wait = true}},
    conforming_row_lock_store{"row locks, absence is not locked", {.locks_absence = false}},
};

} // namespace mutants
