// SPDX-License-Identifier: MIT
// Included first in every suite program of this build: the clauses are compiled in clauses.cpp.
#pragma once

#include <vector>

#include <vouch/conformance.hpp>

extern template const std::vector<vouch::conformance::clause>& vouch::conformance::all_clauses<void>();
