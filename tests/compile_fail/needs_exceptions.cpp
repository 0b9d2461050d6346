// SPDX-License-Identifier: MIT
// flags: -fno-exceptions
// expect: vouch needs exceptions: compile without -fno-exceptions
// expect-errors: 2
#include <vouch/vouch.hpp>
