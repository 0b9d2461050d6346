// SPDX-License-Identifier: MIT
// How soon due work starts when other workers are idle. Real threads and real time.
#include "start_delays.hpp"
#include "worker_support.hpp"

using namespace worker_test;

TEST_CASE("start: entries claimed behind a slow handler are handed back, and idle workers start them at once") {
    const auto p99 = start_delay::best_percentile(0.99, 300, [] {
        vouch::memory::store store;
        return start_delay::delays_beside_a_slow_handler(store);
    });
    CAPTURE(p99.count());
    CHECK(p99 < 50ms);
}

TEST_CASE("start: a worker that loses the race for an entry still starts the next one soon") {
    const auto p90 = start_delay::best_percentile(0.90, 40, [] {
        vouch::memory::store store;
        return start_delay::delays_of_idle_workers(store);
    });
    CAPTURE(p90.count());
    CHECK(p90 < 100ms);
}
