// SPDX-License-Identifier: MIT
// One of two translation units that include every public header and use it: what is not inline fails to link.
#include <cstddef>

#include <vouch/testing.hpp>
#include <vouch/vouch.hpp>

using later_function = vouch::time_point (*)(vouch::time_point, vouch::duration) noexcept;

// In second.cpp.
later_function later_in_second();
std::size_t succeeded_in_second();

namespace {

std::size_t succeeded_here() {
    vouch::testing::sandbox box;
    box.on("greet", [](const vouch::delivery&) {});
    box.emit({.topic = "greet", .payload = "ada"});
    return box.run_until_idle().succeeded;
}

} // namespace

int main() {
    const later_function later_here = &vouch::later;
    return later_here == later_in_second() && succeeded_here() == 1 && succeeded_in_second() == 1 ? 0 : 1;
}
