// SPDX-License-Identifier: MIT
// Catch2, whichever major version is installed. Tests use what 2 and 3 have in common: TEST_CASE, SECTION, REQUIRE,
// CHECK, REQUIRE_THROWS_AS, INFO, CAPTURE, FAIL, SUCCEED and GENERATE.
#pragma once

#if __has_include(<catch2/catch_test_macros.hpp>)
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators_all.hpp>
#else
#include <catch2/catch.hpp>
#endif
