// SPDX-License-Identifier: MIT
#include <vouch/vouch.hpp>

#include "catch.hpp"

TEST_CASE("version: the preprocessor can compare the version numbers") {
#if VOUCH_VERSION_MAJOR * 10000 + VOUCH_VERSION_MINOR * 100 + VOUCH_VERSION_PATCH >= 100
    SUCCEED();
#else
    FAIL("0.1.0 was the first version");
#endif
}
