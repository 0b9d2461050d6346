// SPDX-License-Identifier: MIT
// Included first in every suite program of this build: what does not depend on the store is compiled in clauses.cpp.
#pragma once

#ifndef VOUCH_EXTERN
#define VOUCH_EXTERN extern
#define VOUCH_CLAUSES_ELSEWHERE // the clauses are not even read
#endif

#include <string>
#include <vector>

#include <vouch/conformance.hpp>

VOUCH_EXTERN template const std::vector<vouch::conformance::clause>& vouch::conformance::all_clauses<void>();
VOUCH_EXTERN template vouch::conformance::clause_report
vouch::conformance::detail::run_clause<void>(vouch::conformance::detail::run_context&,
                                             const vouch::conformance::clause&);
VOUCH_EXTERN template int vouch::conformance::detail::publish<void>(const vouch::conformance::report&,
                                                                    const vouch::conformance::detail::command_line&,
                                                                    const std::string&);
