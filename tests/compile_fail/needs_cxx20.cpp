// SPDX-License-Identifier: MIT
// flags: -std=c++17
// expect: vouch needs C++20: compile with -std=c++20 or later, with GCC 12 or Clang 14 or later
// expect-errors: 2
#include <vouch/vouch.hpp>
