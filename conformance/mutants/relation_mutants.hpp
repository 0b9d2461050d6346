// SPDX-License-Identifier: MIT
// Stores in which entries do not get on with each other: groups, lanes, parents.
#pragma once

#include <vector>

#include "violation.hpp"

namespace mutants {

inline const std::vector<violation> relation_mutants{
    {"group_completed on the settle that takes the members not yet succeeded from one to zero, once.",
     {{"group completes on any settle", defect::group_completes_on_any_settle},
      {"group completes each time", defect::group_completes_each_time},
      {"group completes for the whole batch", defect::group_completes_for_the_whole_batch},
      {"group is counted too early", defect::group_is_counted_too_early},
      {"group is counted twice", defect::group_is_counted_twice}}},
    {"A dead member counts until it has a successor, which then counts in its place.",
     {{"group completes with its dead", defect::group_completes_with_its_dead},
      {"group completes on burial", defect::group_completes_on_burial},
      {"group waits for the replaced", defect::group_waits_for_the_replaced}}},
    {"Groups: across queues; a later member opens the group again.",
     {{"group ends at the queue", defect::group_ends_at_the_queue},
      {"group forgets later members", defect::group_forgets_later_members}}},
    {"Lanes: the head is the live entry of lowest sequence and holds its lane until terminal.",
     {{"lane is ignored", defect::lane_is_ignored},
      {"lane passes the retrying", defect::lane_passes_the_retrying},
      {"lane passes the released", defect::lane_passes_the_released},
      {"lane passes between steps", defect::lane_passes_between_steps},
      {"lane passes the future", defect::lane_passes_the_future},
      {"lane goes by due", defect::lane_goes_by_due},
      {"lane opens for all", defect::lane_opens_for_all},
      {"lane opens behind any end", defect::lane_opens_behind_any_end},
      {"lane ignores queue", defect::lane_ignores_queue},
      {"lane is held by the dead", defect::lane_is_held_by_the_dead}}},
    {"When an entry becomes terminal the next entry of its lane gets its gate.",
     {{"lane stays shut after death", defect::lane_stays_shut_after_death},
      {"lane stays shut after success", defect::lane_stays_shut_after_success},
      {"lane stays shut after cancel", defect::lane_stays_shut_after_cancel},
      {"lane waits for the cancelled", defect::lane_waits_for_the_cancelled}}},
    {"Blocked entries have no gate and keep their due_at for when their turn comes.",
     {{"blocked is due", defect::blocked_is_due},
      {"blocked loses due at", defect::blocked_loses_due_at},
      {"lane makes the next due", defect::lane_makes_the_next_due},
      {"lane touches the next", defect::lane_touches_the_next}}},
    {"When an entry becomes terminal by any verb, its parent is nudged.",
     {{"parent sleeps", defect::parent_sleeps},
      {"parent sleeps on cancel", defect::parent_sleeps_on_cancel},
      {"parent sleeps on death", defect::parent_sleeps_on_death},
      {"parent sleeps on success", defect::parent_sleeps_on_success},
      {"parent is not marked", defect::parent_is_not_marked},
      {"parent sleeps in another queue", defect::parent_sleeps_in_another_queue},
      {"parent waits for all children", defect::parent_waits_for_all_children},
      {"parent wakes on any settle", defect::parent_wakes_on_any_settle}}},
    {"A capability that is off is refused, never ignored.",
     {{"lanes are off and accepted", defect::lanes_are_off_and_accepted},
      {"groups are off and accepted", defect::groups_are_off_and_accepted},
      {"capabilities change", defect::capabilities_change}}},
};

} // namespace mutants
