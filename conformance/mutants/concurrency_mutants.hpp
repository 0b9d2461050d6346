// SPDX-License-Identifier: MIT
// Mutants that are wrong only while several transactions are open.
#pragma once

#include <vector>

#include "violation.hpp"

namespace mutants {

inline const std::vector<violation> concurrency_mutants{
    {"A transaction is bound to no thread: if several can be open, one thread can have them open.",
     {{"begin is once per thread", defect::begin_is_once_per_thread}}},
    {"Before commit no other reader sees any of the writes, not even another transaction.",
     {{"find shows uncommitted of others", defect::find_shows_uncommitted_of_others}}},
    {"When an entry becomes terminal, the same transaction nudges its parent, as the parent is when it commits.",
     {{"commit writes what it computed first", defect::commit_writes_what_it_computed_first}}},
};

} // namespace mutants
