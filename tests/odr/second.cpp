// SPDX-License-Identifier: MIT
// The other of two translation units that include every public header and use it.
#include <cstddef>
#include <stop_token>

#include <vouch/observe.hpp>
#include <vouch/testing.hpp>
#include <vouch/vouch.hpp>
#include <vouch/worker.hpp>

using later_function = vouch::time_point (*)(vouch::time_point, vouch::duration) noexcept;

later_function later_in_second();
std::size_t succeeded_in_second();
vouch::worker_report stopped_at_once_in_second();

later_function later_in_second() { return &vouch::later; }

std::size_t succeeded_in_second() {
    vouch::testing::sandbox box;
    box.on("greet", [](const vouch::delivery&) {});
    box.emit({.topic = "greet", .payload = "ada"});
    return box.run_until_idle().succeeded;
}

vouch::worker_report stopped_at_once_in_second() {
    vouch::memory::store store;
    const vouch::outbox outbox(store);
    const vouch::router routes(outbox);
    vouch::logger log;
    vouch::metrics numbers;
    vouch::worker worker(outbox);
    worker.serve(routes, {.queue = "q"});
    worker.observe(log);
    worker.observe(numbers);
    std::stop_source stop;
    stop.request_stop();
    return worker.run(stop.get_token());
}
