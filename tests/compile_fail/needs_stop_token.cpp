// SPDX-License-Identifier: MIT
// expect: vouch needs std::stop_token: use libstdc++, libc++ 20 or later, or libc++ 18 with -fexperimental-library
// expect-errors: 2
// A standard library that lacks it does not define this macro.
#include <version>
#undef __cpp_lib_jthread

#include <vouch/vouch.hpp>
