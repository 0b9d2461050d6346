// SPDX-License-Identifier: MIT
// Memory that runs out. The operators new of `memory_memory.cpp`, which are those of the whole program, obey this.
#pragma once

namespace support {

/// Allocations of this thread fail from the `left`-th on, one or all of them; 0: none does.
struct shortage {
    long left = 0;
    bool lasting = false;
    bool fired = false;
};
inline thread_local shortage lack;

} // namespace support
