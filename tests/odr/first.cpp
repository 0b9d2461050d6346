// SPDX-License-Identifier: MIT
// One of two translation units that include every public header; a function that is not inline fails to link.
#include <vouch/vouch.hpp>
#if __has_include(<vouch/testing.hpp>)
#include <vouch/testing.hpp>
#endif

using later_function = vouch::time_point (*)(vouch::time_point, vouch::duration) noexcept;

later_function later_in_second();

int main() {
    const later_function here = &vouch::later;
    return here == later_in_second() ? 0 : 1;
}
