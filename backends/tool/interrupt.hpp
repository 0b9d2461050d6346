// SPDX-License-Identifier: MIT
// Ctrl-C in a command that takes long: it ends after what it is doing, and says where it stopped.
#pragma once

#include <csignal>

namespace tool {

inline volatile std::sig_atomic_t was_interrupted = 0;

/// From now on, SIGINT and SIGTERM only set `was_interrupted`. They interrupt a sleep.
inline void catch_interrupts() {
    struct sigaction how {};
    how.sa_handler = [](int) { was_interrupted = 1; };
    sigaction(SIGINT, &how, nullptr);
    sigaction(SIGTERM, &how, nullptr);
}

} // namespace tool
