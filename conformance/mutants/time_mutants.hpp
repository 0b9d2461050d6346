// SPDX-License-Identifier: MIT
// Mutants that are wrong only for times far from the present, before 1970, or at the ends of the range.
#pragma once

#include <vector>

#include "violation.hpp"

namespace mutants {

inline const std::vector<violation> time_mutants{
    {"Times are microseconds of UTC, from the first to the last that can be represented.",
     {{"time is a double", defect::time_is_a_double},
      {"time is in nanoseconds", defect::time_is_in_nanoseconds},
      {"time wraps in 2038", defect::time_wraps_in_2038},
      {"time starts in year one", defect::time_starts_in_year_one},
      {"time ends in year 9999", defect::time_ends_in_year_9999}}},
    {"An unset time differs from every time.",
     {{"zero time is unset", defect::zero_time_is_unset},
      {"first time is unset", defect::first_time_is_unset},
      {"last time is unset", defect::last_time_is_unset}}},
    {"due_at: the earliest time to run, as the draft or the outcome gives it.",
     {{"due of zero is now", defect::due_of_zero_is_now},
      {"retry at zero is now", defect::retry_at_zero_is_now},
      {"release at zero keeps due", defect::release_at_zero_keeps_due},
      {"advance at zero is now", defect::advance_at_zero_is_now}}},
    {"claim takes the entries whose gate is at or before `now`, the first by (gate, sequence).",
     {{"claim compares unsigned", defect::claim_compares_unsigned},
      {"claim compares doubles", defect::claim_compares_doubles},
      {"claim skips the first time", defect::claim_skips_the_first_time},
      {"claim before 1970 takes nothing", defect::claim_before_1970_takes_nothing},
      {"claim orders unsigned", defect::claim_orders_unsigned}}},
    {"claim returns the entries by (due_at, sequence).", {{"claim returns unsigned", defect::claim_returns_unsigned}}},
    {"lease_until: the time from which another claim may take over.",
     {{"lease to zero is over", defect::lease_to_zero_is_over},
      {"lease to the last time is over", defect::lease_to_the_last_time_is_over}}},
    {"extend sets lease_until to the later of lease_until and now + lease.",
     {{"extend compares unsigned", defect::extend_compares_unsigned}}},
    {"nudge makes an entry due now, unless it is due already.",
     {{"nudge compares unsigned", defect::nudge_compares_unsigned}}},
    {"cancel is refused while a lease runs.", {{"cancel compares unsigned", defect::cancel_compares_unsigned}}},
    {"next_due returns the smallest gate of the queue, or nothing if no entry has one.",
     {{"next due compares unsigned", defect::next_due_compares_unsigned},
      {"next due hides zero", defect::next_due_hides_zero},
      {"next due hides the last time", defect::next_due_hides_the_last_time},
      {"next due hides the first time", defect::next_due_hides_the_first_time}}},
    {"purge removes the entries that ended before `before`, oldest first.",
     {{"purge before zero takes all", defect::purge_before_zero_takes_all},
      {"purge compares unsigned", defect::purge_compares_unsigned},
      {"purge orders unsigned", defect::purge_orders_unsigned},
      {"purge skips what ended before 1970", defect::purge_skips_what_ended_before_1970},
      {"purge compares doubles", defect::purge_compares_doubles}}},
    {"A nudge during the claim makes the entry due now at the latest.",
     {{"wake compares unsigned", defect::wake_compares_unsigned}}},
    {"When an entry becomes terminal, the next of its lane gets a gate and its parent is nudged.",
     {{"opened lane hides zero", defect::opened_lane_hides_zero},
      {"parent is not nudged before 1970", defect::parent_is_not_nudged_before_1970}}},
};

} // namespace mutants
