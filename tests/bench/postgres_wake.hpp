// SPDX-License-Identifier: MIT
// How long an entry that one process emits takes until the handler of another process starts.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#include <vouch/postgres.hpp>
#include <vouch/run/worker.hpp>
#include <vouch/vouch.hpp>

#include "ratio.hpp"

namespace bench {

/// Milliseconds, in ascending order. No connection may be open: the process forks.
[[nodiscard]] inline std::vector<double> wake_up_times(const std::string& conninfo, std::size_t count) {
    const auto clock_us = [] {
        return std::chrono::duration_cast<std::chrono::microseconds>(
                   std::chrono::steady_clock::now().time_since_epoch()) // the same in all processes
            .count();
    };
    const vouch::postgres::options where{.prefix = "wake."};
    std::array<int, 2> started{};
    require(pipe(started.data()) == 0, "cannot create a pipe");
    std::fflush(nullptr);
    const auto child = fork();
    if (child == 0) {
        close(started[0]);
        try {
            vouch::postgres::store store(conninfo, where);
            const vouch::outbox outbox(store);
            vouch::router routes(outbox);
            routes.on("wake", [&](vouch::delivery&) {
                const std::int64_t at = clock_us();
                require(write(started[1], &at, sizeof at) == sizeof at, "the benchmark has ended");
            });
            vouch::worker worker(outbox);
            worker.serve(routes, {.queue = "wake"});
            worker.run({}); // until it is killed
        } catch (...) {
            std::_Exit(EXIT_FAILURE);
        }
        std::_Exit(EXIT_SUCCESS);
    }
    close(started[1]);
    std::vector<double> times;
    {
        vouch::postgres::store store(conninfo, where);
        const vouch::outbox outbox(store);
        for (std::size_t n = 0; n < count + 5; ++n) { // the first ones connect and prepare
            std::this_thread::sleep_for(std::chrono::milliseconds{20});
            const auto before = clock_us();
            outbox.emit({.queue = "wake", .topic = "wake"});
            std::int64_t at = 0;
            require(read(started[0], &at, sizeof at) == sizeof at, "the worker did not start the handler");
            if (n >= 5) {
                times.push_back(static_cast<double>(at - before) / 1000);
            }
        }
    }
    close(started[0]);
    int status = 0;
    require(kill(child, SIGKILL) == 0 && waitpid(child, &status, 0) == child, "the worker did not end");
    std::sort(times.begin(), times.end());
    return times;
}

} // namespace bench
