// SPDX-License-Identifier: MIT
// How soon due work starts when other workers are idle. Real threads and real time.
#include "start_delays.hpp"
#include "worker_support.hpp"

using namespace worker_test;

TEST_CASE("start: entries claimed behind a slow handler are handed back, and idle workers start them at once") {
    vouch::memory::store store;
    const auto delays = start_delay::beside_a_slow_handler([&]() -> auto& { return store; });
    CHECK(delays.size() == 300);
    CHECK(start_delay::share(delays, 0.99) < 50ms);
}

TEST_CASE("start: workers that lose the race for an entry do not sleep through the next one") {
    vouch::memory::store store;
    const auto delays = start_delay::of_idle_workers([&]() -> auto& { return store; });
    CHECK(delays.size() == 40);
    CHECK(start_delay::share(delays, 0.90) < 100ms);
}
