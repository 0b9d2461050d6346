// SPDX-License-Identifier: MIT
// What all suite programs of this build share, compiled: the clauses, how one is run, and the reports.
#define VOUCH_EXTERN
#include "clauses.hpp"
