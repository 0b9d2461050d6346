// SPDX-License-Identifier: MIT
// expect: vouch: a translation unit includes either the single headers or the split ones, not both
// The order of the includes is the test.
// clang-format off
#include "../../single_include/vouch/vouch.hpp"

#include <vouch/vouch.hpp>
