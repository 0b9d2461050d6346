// SPDX-License-Identifier: MIT
// The compiled clauses, which all suite programs of this build share.
#include <vector>

#include <vouch/conformance.hpp>

template const std::vector<vouch::conformance::clause>& vouch::conformance::all_clauses<void>();
