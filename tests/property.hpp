// SPDX-License-Identifier: MIT
// RapidCheck inside a Catch2 test case. A property is a callable whose arguments RapidCheck generates; it fails by
// returning false or through RC_ASSERT. (CHECK and REQUIRE inside one would report every step of the shrinking.)
#pragma once

#include <cstdlib>
#include <sstream>
#include <string>
#include <utility>

#include <rapidcheck.h>
#include <rapidcheck/detail/TestListenerAdapter.h>

#include "catch.hpp"

/// Requires that `property` holds, and shows the smallest counterexample otherwise.
/// The seed is fixed, so a commit always gives the same result. RC_PARAMS in the environment (say `max_success=10000`)
/// overrides that: if it has no `seed=`, RapidCheck chooses a new seed each time and prints it.
template <class Property>
void check_property(const std::string& sentence, Property&& property) {
    namespace rcd = rc::detail;
    rcd::Configuration how;
    how.testParams.seed = 1;
    if (std::getenv("RC_PARAMS") != nullptr) {
        how = rcd::configuration();
    }
    rcd::TestListenerAdapter silence;
    const rcd::TestMetadata name{sentence, sentence};
    const auto result =
        rcd::checkTestable(std::forward<Property>(property), name, how.testParams, silence, how.reproduce);
    std::ostringstream report;
    rcd::printResultMessage(result, report);
    INFO(sentence << "\n" << report.str());
    const bool holds = result.template is<rcd::SuccessResult>();
    REQUIRE(holds);
}
