// SPDX-License-Identifier: MIT
// RapidCheck inside a Catch2 test case. A property is a callable whose arguments RapidCheck makes up; it says no by
// returning false or through RC_ASSERT. (CHECK and REQUIRE inside one would report every step of the shrinking.)
#pragma once

#include <cstdlib>
#include <sstream>
#include <string>
#include <utility>

#include <rapidcheck.h>

#include "catch.hpp"

/// Requires that `property` holds, and shows the smallest counterexample and how to repeat it otherwise.
/// The seed is fixed, so one commit gives one answer; RC_PARAMS in the environment (say `max_success=10000`)
/// overrides everything and, unless it names a seed, takes a new one each time.
template <class Property>
void check_property(const std::string& sentence, Property&& property) {
    rc::detail::TestMetadata metadata;
    metadata.id = sentence;
    metadata.description = sentence;
    auto params = rc::detail::configuration().testParams;
    if (std::getenv("RC_PARAMS") == nullptr) {
        params.seed = 1;
    }
    const auto result = rc::detail::checkTestable(std::forward<Property>(property), metadata, params);
    std::ostringstream report;
    rc::detail::printResultMessage(result, report);
    INFO(sentence << "\n" << report.str());
    const bool holds = result.template is<rc::detail::SuccessResult>();
    REQUIRE(holds);
}
