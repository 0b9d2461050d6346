// SPDX-License-Identifier: MIT
// Mutants whose groups, lanes, parents or capabilities are wrong.
#pragma once

#include <vector>

#include "violation.hpp"

namespace mutants {

inline const std::vector<violation> relation_mutants{
    {"group_completed: once, on the settle that takes the number of members not yet succeeded from one to zero.",
     {{"group completes on any settle", defect::group_completes_on_any_settle},
      {"group completes each time", defect::group_completes_each_time},
      {"group completes for the whole batch", defect::group_completes_for_the_whole_batch},
      {"group is counted too early", defect::group_is_counted_too_early},
      {"group is counted twice", defect::group_is_counted_twice}}},
    {"A dead member counts until it has a successor, which then counts instead.",
     {{"group counts dead as done", defect::group_counts_dead_as_done},
      {"group completes on bury", defect::group_completes_on_bury},
      {"group waits for replaced", defect::group_waits_for_replaced}}},
    {"Groups span queues; a later member reopens the group.",
     {{"group is limited to the queue", defect::group_is_limited_to_the_queue},
      {"group forgets later members", defect::group_forgets_later_members}}},
    {"Lanes: the head is the live entry of lowest sequence and holds its lane until terminal.",
     {{"lane is ignored", defect::lane_is_ignored},
      {"lane passes retrying", defect::lane_passes_retrying},
      {"lane passes released", defect::lane_passes_released},
      {"lane passes between steps", defect::lane_passes_between_steps},
      {"lane passes future", defect::lane_passes_future},
      {"lane orders by due", defect::lane_orders_by_due},
      {"lane opens for all", defect::lane_opens_for_all},
      {"lane opens after any end", defect::lane_opens_after_any_end},
      {"lane ignores queue", defect::lane_ignores_queue},
      {"lane is held by dead", defect::lane_is_held_by_dead}}},
    {"When an entry becomes terminal, the next entry of its lane gets a gate.",
     {{"lane stays shut after death", defect::lane_stays_shut_after_death},
      {"lane stays shut after success", defect::lane_stays_shut_after_success},
      {"lane stays shut after cancel", defect::lane_stays_shut_after_cancel},
      {"lane waits for cancelled", defect::lane_waits_for_cancelled}}},
    {"Blocked entries have no gate and keep their due_at until they head the lane.",
     {{"blocked is due", defect::blocked_is_due},
      {"blocked loses due at", defect::blocked_loses_due_at},
      {"lane makes the next due", defect::lane_makes_the_next_due},
      {"lane touches the next", defect::lane_touches_the_next}}},
    {"When an entry becomes terminal by any verb, its parent is nudged.",
     {{"parent is not nudged", defect::parent_is_not_nudged},
      {"parent is not nudged by cancel", defect::parent_is_not_nudged_by_cancel},
      {"parent is not nudged by death", defect::parent_is_not_nudged_by_death},
      {"parent is not nudged by success", defect::parent_is_not_nudged_by_success},
      {"claimed parent is not marked", defect::claimed_parent_is_not_marked},
      {"parent is not nudged in another queue", defect::parent_is_not_nudged_in_another_queue},
      {"parent waits for all children", defect::parent_waits_for_all_children},
      {"parent is nudged by any settle", defect::parent_is_nudged_by_any_settle}}},
    {"A draft that uses a capability that is off is refused; the field is never ignored.",
     {{"lanes are off and accepted", defect::lanes_are_off_and_accepted},
      {"groups are off and accepted", defect::groups_are_off_and_accepted},
      {"capabilities change", defect::capabilities_change}}},
    {"A store declares committing exactly if its transactions model committing_transaction.",
     {{"committing is declared and absent", defect::committing_is_declared_and_absent}}},
};

} // namespace mutants
