// SPDX-License-Identifier: MIT
// Mutants that are wrong only if several threads or processes use them.
#pragma once

#include <vector>

#include "violation.hpp"

namespace mutants {

inline const std::vector<violation> thread_mutants{
    {"Any number of threads may call begin and read at the same time.",
     {{"store takes no lock", defect::store_takes_no_lock},
      {"reads take no lock", defect::reads_take_no_lock},
      {"begin does not wait", defect::begin_does_not_wait},
      {"handle is for one thread", defect::handle_is_for_one_thread}}},
    {"A transaction may move between threads.",
     {{"transaction stays on its thread", defect::transaction_stays_on_its_thread},
      {"commit stays on its thread", defect::commit_stays_on_its_thread},
      {"rollback stays on its thread", defect::rollback_stays_on_its_thread}}},
};

} // namespace mutants
