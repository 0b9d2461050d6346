// SPDX-License-Identifier: MIT
// The other of two translation units that include every public header and use it.
#include <cstddef>

#include <vouch/testing.hpp>
#include <vouch/vouch.hpp>

using later_function = vouch::time_point (*)(vouch::time_point, vouch::duration) noexcept;

later_function later_in_second();
std::size_t succeeded_in_second();

later_function later_in_second() { return &vouch::later; }

std::size_t succeeded_in_second() {
    vouch::testing::sandbox box;
    box.on("greet", [](const vouch::delivery&) {});
    box.emit({.topic = "greet", .payload = "ada"});
    return box.run_until_idle().succeeded;
}
