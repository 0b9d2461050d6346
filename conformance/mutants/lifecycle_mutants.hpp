// SPDX-License-Identifier: MIT
// Mutants whose transactions begin, move, fail, close or end in a wrong way.
#pragma once

#include <vector>

#include "violation.hpp"

namespace mutants {

inline const std::vector<violation> lifecycle_mutants{
    {"A transaction can be moved; it is closed when it has been moved from.",
     {{"assignment keeps the old open", defect::assignment_keeps_the_old_open},
      {"assignment commits the old", defect::assignment_commits_the_old},
      {"assignment closes both", defect::assignment_closes_both},
      {"assignment leaves the source open", defect::assignment_leaves_the_source_open},
      {"move leaves the source open", defect::move_leaves_the_source_open},
      {"moved from undoes at its end", defect::moved_from_undoes_at_its_end}}},
    {"Using a closed transaction throws misuse.",
     {{"second commit publishes again", defect::second_commit_publishes_again},
      {"closed checks arguments first", defect::closed_checks_arguments_first},
      {"closed enqueue writes", defect::closed_enqueue_writes},
      {"closed use undoes the open", defect::closed_use_undoes_the_open}}},
    {"After any error except invalid_argument the transaction is closed.",
     {{"unsupported leaves open", defect::unsupported_leaves_open},
      {"invalid argument rolls back", defect::invalid_argument_rolls_back},
      {"invalid argument commits", defect::invalid_argument_commits},
      {"invalid read rolls back", defect::invalid_read_rolls_back},
      {"conflict leaves open", defect::conflict_leaves_open},
      {"failed read leaves open", defect::failed_read_leaves_open},
      {"failed commit leaves open", defect::failed_commit_leaves_open}}},
    {"After a conflict the transaction is rolled back; one of the conflicting transactions always succeeds.",
     {{"conflict keeps keys", defect::conflict_keeps_keys},
      {"conflict keeps claims", defect::conflict_keeps_claims},
      {"conflict keeps the lock", defect::conflict_keeps_the_lock},
      {"conflict hits both", defect::conflict_hits_both},
      {"conflict undoes the winner", defect::conflict_undoes_the_winner}}},
    {"If a transaction is destroyed without commit, nothing of it remains.",
     {{"rollback undoes later transactions", defect::rollback_undoes_later_transactions},
      {"closing a handle undoes the others", defect::closing_a_handle_undoes_the_others},
      {"closing a handle commits the others", defect::closing_a_handle_commits_the_others},
      {"failed call commits", defect::failed_call_commits},
      {"failed call keeps keys", defect::failed_call_keeps_keys},
      {"failed call keeps the lock", defect::failed_call_keeps_the_lock},
      {"failed begin keeps the lock", defect::failed_begin_keeps_the_lock}}},
    {"Only commit throws an error that is in doubt.",
     {{"begin fails in doubt", defect::begin_fails_in_doubt},
      {"call fails in doubt", defect::call_fails_in_doubt},
      {"conflict is in doubt", defect::conflict_is_in_doubt}}},
    {"A commit in doubt has taken effect or not; a commit that failed otherwise has not.",
     {{"failed commit returns after reopen", defect::failed_commit_returns_after_reopen},
      {"doubt is undone by reopen", defect::doubt_is_undone_by_reopen},
      {"doubt is halved by reopen", defect::doubt_is_halved_by_reopen}}},
};

} // namespace mutants
