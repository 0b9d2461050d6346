// SPDX-License-Identifier: MIT
// Mutants whose waits end too late, too early or with the wrong number.
#pragma once

#include <vector>

#include "violation.hpp"

namespace mutants {

inline const std::vector<violation> waiting_mutants{
    {"wait returns the number as soon as it differs from the one given.",
     {{"wait sleeps once it waits", defect::wait_sleeps_once_it_waits},
      {"wait hears its own handle only", defect::wait_hears_its_own_handle_only},
      {"wait wakes one waiter", defect::wait_wakes_one_waiter},
      {"wait returns the old number", defect::wait_returns_the_old_number},
      {"wait holds the lock", defect::wait_holds_the_lock}}},
    {"wait returns only when the number differs, the time has passed or a stop is requested.",
     {{"wait ends for other queues", defect::wait_ends_for_other_queues}, {"wait overflows", defect::wait_overflows}}},
    {"wait returns after at_most.",
     {{"wait restarts its time", defect::wait_restarts_its_time}, {"wait of zero waits", defect::wait_of_zero_waits}}},
    {"wait returns when stop is requested.",
     {{"wait ignores a late stop", defect::wait_ignores_a_late_stop},
      {"wait throws when stopped", defect::wait_throws_when_stopped}}},
    {"The number of a queue changes with every commit that may have made work due sooner.",
     {{"wake number alternates", defect::wake_number_alternates},
      {"wake number has eight bits", defect::wake_number_has_eight_bits},
      {"wake is for one queue per commit", defect::wake_is_for_one_queue_per_commit}}},
};

} // namespace mutants
