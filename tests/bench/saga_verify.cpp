// SPDX-License-Identifier: MIT
// Measures `verify` for an order saga of three steps, in process and with remote participants. It is meant for unit
// tests, so it must be fast: exits with 1 if it takes five seconds or more, or if `verify` reports a problem.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include <vouch/saga.hpp>
#include <vouch/testing.hpp>
#include <vouch/vouch.hpp>

#include "ratio.hpp"

namespace {

using namespace std::chrono_literals;

vouch::saga_definition in_process() {
    const auto act = [] {};
    return vouch::define_saga<std::string>("order")
        .step("payment", act, act)
        .step("inventory", act, act)
        .step("shipping", act, act, {.timeout = 10s})
        .build();
}

vouch::saga_definition with_participants() {
    return vouch::define_saga<std::string>("order")
        .command("payment", {.queue = "payment", .topic = "charge", .undo = "refund", .timeout = 30s})
        .command("inventory", {.queue = "inventory", .topic = "reserve", .undo = "release", .timeout = 30s})
        .command("shipping", {.queue = "shipping", .topic = "ship", .undo = "call_off", .timeout = 30s})
        .build();
}

[[nodiscard]] bool is_quick(const char* name, const vouch::saga_definition& saga) {
    constexpr double seconds_max = 5;
    bool is_sound = false;
    std::size_t paths = 0;
    const auto seconds = bench::seconds_of([&] {
        const auto found = vouch::testing::verify(saga);
        is_sound = found.is_sound();
        paths = found.paths;
    });
    const bool good = is_sound && seconds.cpu < seconds_max;
    std::printf("%-20s %6zu paths %6.2f s (limit %.0f s)  %s\n", name, paths, seconds.cpu, seconds_max,
                good ? "ok" : "MISSED");
    return good;
}

} // namespace

int main() {
    const bool alone = is_quick("in process", in_process());
    return is_quick("with participants", with_participants()) && alone ? EXIT_SUCCESS : EXIT_FAILURE;
}
