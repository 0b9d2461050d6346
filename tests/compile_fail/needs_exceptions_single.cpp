// SPDX-License-Identifier: MIT
// flags: -fno-exceptions
// expect: vouch needs exceptions: compile without -fno-exceptions
// expect-errors: 2
#include "../../single_include/vouch/vouch.hpp"
