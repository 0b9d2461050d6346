// SPDX-License-Identifier: MIT
// Mutants whose transactions, durability or sharing are wrong.
#pragma once

#include <vector>

#include "violation.hpp"

namespace mutants {

inline const std::vector<violation> transaction_mutants{
    {"Uncommitted work is invisible.",
     {{"uncommitted is visible", defect::uncommitted_is_visible},
      {"begin sees uncommitted", defect::begin_sees_uncommitted},
      {"commit shows half", defect::commit_shows_half}}},
    {"Rollback leaves nothing, dedup keys included.",
     {{"rollback keeps new entries", defect::rollback_keeps_new_entries},
      {"rollback keeps keys", defect::rollback_keeps_keys},
      {"rollback keeps epochs", defect::rollback_keeps_epochs},
      {"rollback keeps lapses", defect::rollback_keeps_lapses},
      {"rollback keeps settles", defect::rollback_keeps_settles}}},
    {"Everything a transaction wrote is visible after commit.",
     {{"commit loses the last of many", defect::commit_loses_the_last_of_many},
      {"enqueue keeps 1000 of a batch", defect::enqueue_keeps_1000_of_a_batch},
      {"reads are one commit behind", defect::reads_are_one_commit_behind}}},
    {"Reads on a writer see its own writes; reads on the store never wait for writers.",
     {{"own writes are invisible", defect::own_writes_are_invisible},
      {"reads wait for writers", defect::reads_wait_for_writers}}},
    {"A conflict is rolled back, and one of the conflicting transactions always succeeds.",
     {{"commit overwrites", defect::commit_overwrites},
      {"commit checks only its rows", defect::commit_checks_only_its_rows},
      {"conflict keeps its writes", defect::conflict_keeps_its_writes}}},
    {"After any error but invalid_argument the transaction is closed; using a closed one is misuse.",
     {{"closed accepts calls", defect::closed_accepts_calls},
      {"commit twice is accepted", defect::commit_twice_is_accepted},
      {"invalid argument closes", defect::invalid_argument_closes},
      {"error leaves open", defect::error_leaves_open}}},
    {"Infrastructure faults throw; a commit whose outcome is unknown is in doubt.",
     {{"commit swallows failure", defect::commit_swallows_failure},
      {"commit hides doubt", defect::commit_hides_doubt},
      {"failed commit keeps the lock", defect::failed_commit_keeps_the_lock}}},
    {"Durable: committed work survives a crash, and nothing else does.",
     {{"crash loses claimed", defect::crash_loses_claimed},
      {"crash loses the last commit", defect::crash_loses_the_last_commit},
      {"crash loses large results", defect::crash_loses_large_results},
      {"reopen loses the last commit", defect::reopen_loses_the_last_commit},
      {"reopen finds uncommitted", defect::reopen_finds_uncommitted},
      {"reopen releases claims", defect::reopen_releases_claims},
      {"reopen opens lanes", defect::reopen_opens_lanes},
      {"reopen forgets wake marks", defect::reopen_forgets_wake_marks},
      {"reopen forgets progress", defect::reopen_forgets_progress},
      {"reopen forgets lapses", defect::reopen_forgets_lapses}}},
    {"Shared: several handles use the same entries; another location is another store.",
     {{"open releases claims", defect::open_releases_claims},
      {"handle keeps its first view", defect::handle_keeps_its_first_view},
      {"locations share everything", defect::locations_share_everything}}},
    {"Sequences are never reused.",
     {{"purge frees sequences", defect::purge_frees_sequences},
      {"reopen frees sequences", defect::reopen_frees_sequences}}},
};

} // namespace mutants
