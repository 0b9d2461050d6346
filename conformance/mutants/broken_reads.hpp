// SPDX-License-Identifier: MIT
// Stores that do not see well, and that clean up too much.
#pragma once

#include <vector>

#include "breach.hpp"

namespace mutants {

inline const std::vector<breach> broken_reads{
    {"find gives the entry with its payload, or nothing.",
     {{"find leaves payload out", defect::find_leaves_payload_out},
      {"find hides the ended", defect::find_hides_the_ended}}},
    {"list: one path, then filters.",
     {{"list ignores state", defect::list_ignores_state},
      {"list ignores topic", defect::list_ignores_topic},
      {"list takes topics for prefixes", defect::list_takes_topics_for_prefixes},
      {"list cuts before it filters", defect::list_cuts_before_it_filters},
      {"list of dead has all ended", defect::list_of_dead_has_all_ended},
      {"list of live omits claimed", defect::list_of_live_omits_claimed},
      {"list of all omits ended", defect::list_of_all_omits_ended},
      {"list of group has one queue", defect::list_of_group_has_one_queue},
      {"list of children has live", defect::list_of_children_has_live},
      {"list of key has newest", defect::list_of_key_has_newest}}},
    {"list: by ascending sequence, a page after a sequence, 0 finds nothing.",
     {{"list ignores limit", defect::list_ignores_limit},
      {"list of zero is of all", defect::list_of_zero_is_of_all},
      {"list ignores after", defect::list_ignores_after},
      {"list skips at the edge", defect::list_skips_at_the_edge},
      {"list repeats the edge", defect::list_repeats_the_edge},
      {"list goes backwards", defect::list_goes_backwards},
      {"list goes by due", defect::list_goes_by_due}}},
    {"list: payloads on request.",
     {{"list always has payloads", defect::list_always_has_payloads},
      {"list never has payloads", defect::list_never_has_payloads},
      {"list leaves headers out", defect::list_leaves_headers_out}}},
    {"counts: every state of the queue.",
     {{"counts ignore queue", defect::counts_ignore_queue},
      {"counts omit blocked", defect::counts_omit_blocked},
      {"counts omit the replaced", defect::counts_omit_the_replaced},
      {"counts take retrying for pending", defect::counts_take_retrying_for_pending}}},
    {"next_due: the smallest gate of the queue.",
     {{"next due ignores queue", defect::next_due_ignores_queue},
      {"next due ignores claimed", defect::next_due_ignores_claimed},
      {"next due ignores retrying", defect::next_due_ignores_retrying},
      {"next due is due at", defect::next_due_is_due_at},
      {"next due is the last", defect::next_due_is_the_last},
      {"next due shows blocked", defect::next_due_shows_blocked}}},
    {"Purge: at most `limit` terminal entries of the queue that ended before `before`, oldest first.",
     {{"purge ignores queue", defect::purge_ignores_queue},
      {"purge ignores limit", defect::purge_ignores_limit},
      {"purge of zero is of all", defect::purge_of_zero_is_of_all},
      {"purge ignores state", defect::purge_ignores_state},
      {"purge includes the boundary", defect::purge_includes_the_boundary},
      {"purge goes by creation", defect::purge_goes_by_creation},
      {"purge takes newest first", defect::purge_takes_newest_first},
      {"purge takes the living", defect::purge_takes_the_living},
      {"purge takes the lapsed", defect::purge_takes_the_lapsed},
      {"purge does not count", defect::purge_does_not_count}}},
    {"Purge: none that a live entry still needs: same group, its parent, its successor.",
     {{"purge ignores groups", defect::purge_ignores_groups},
      {"purge ignores children", defect::purge_ignores_children},
      {"purge takes predecessors alone", defect::purge_takes_predecessors_alone},
      {"purge leaves predecessors", defect::purge_leaves_predecessors}}},
    {"wakes: a number that changes with every commit that may have brought work nearer, and a wait for it.",
     {{"wakes never change", defect::wakes_never_change},
      {"wake is for new work only", defect::wake_is_for_new_work_only},
      {"wake comes before commit", defect::wake_comes_before_commit},
      {"wait sleeps on", defect::wait_sleeps_on},
      {"wait ignores stop", defect::wait_ignores_stop}}},
};

} // namespace mutants
