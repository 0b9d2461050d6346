// SPDX-License-Identifier: MIT
// The other of two translation units that include every public header.
#include <vouch/vouch.hpp>
#if __has_include(<vouch/testing.hpp>)
#include <vouch/testing.hpp>
#endif

using later_function = vouch::time_point (*)(vouch::time_point, vouch::duration) noexcept;

later_function later_in_second();

later_function later_in_second() { return &vouch::later; }
