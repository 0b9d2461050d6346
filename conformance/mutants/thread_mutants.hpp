// SPDX-License-Identifier: MIT
// Mutants that are wrong only if several threads or processes use them.
#pragma once

#include <vector>

#include "violation.hpp"

namespace mutants {

inline const std::vector<violation> thread_mutants{
    {"Any number of threads may call begin and read at the same time.",
     {{"store takes no lock", defect::store_takes_no_lock},
      {"begin does not wait", defect::begin_does_not_wait},
      {"handle is for one thread", defect::handle_is_for_one_thread}}},
    {"A transaction may move between threads.",
     {{"transaction stays on its thread", defect::transaction_stays_on_its_thread},
      {"commit stays on its thread", defect::commit_stays_on_its_thread},
      {"rollback stays on its thread", defect::rollback_stays_on_its_thread}}},
    {"Durable: committed work survives a crash of the process, and nothing else does.",
     {{"durable work stays in memory", defect::durable_work_stays_in_memory},
      {"file is written when closed", defect::file_is_written_when_closed},
      {"file is one commit behind", defect::file_is_one_commit_behind},
      {"file has uncommitted work", defect::file_has_uncommitted_work},
      {"file is written in halves", defect::file_is_written_in_halves}}},
    {"Shared: several processes may use the same stored work.",
     {{"file is read only when opened", defect::file_is_read_only_when_opened},
      {"file is read once per transaction", defect::file_is_read_once_per_transaction},
      {"processes do not exclude each other", defect::processes_do_not_exclude_each_other}}},
    {"A queue's number changes with every commit that may have made work due sooner.",
     {{"wakes stay in the process", defect::wakes_stay_in_the_process}}},
};

/// Mutants whose races hardly ever happen. ThreadSanitizer reports them; they are not in the kill matrix.
inline const std::vector<violation> sanitizer_mutants{
    {"Any number of threads may call begin and read at the same time.",
     {{"reads take no lock", defect::reads_take_no_lock}}},
};

} // namespace mutants
