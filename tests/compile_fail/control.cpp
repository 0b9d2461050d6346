// SPDX-License-Identifier: MIT
// expect-ok
// The control: with the same compiler and flags a correct file compiles, so the others fail for their own reasons.
#include <vouch/vouch.hpp>

static_assert(vouch::later(vouch::time_point::max(), vouch::duration{1}) == vouch::time_point::max());
