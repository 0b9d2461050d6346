// SPDX-License-Identifier: MIT
// Batch handlers of several workers on one SQLite file.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>
#include <vector>

#include <vouch/sqlite.hpp>
#include <vouch/vouch.hpp>
#include <vouch/worker.hpp>

#include "catch.hpp"
#include "sqlite/folder.hpp"

namespace sqlite_batches_test {

using namespace std::chrono_literals;
using vouch::state;

TEST_CASE("sqlite batches: workers on one file handle each entry once, in batches, and commit its follow-up with it") {
    constexpr std::size_t count = 400;
    const sqlite_test::folder in;
    vouch::sqlite::store store(in.fresh_path(), {.synchronous = vouch::sqlite::synchronous::normal});
    const vouch::outbox outbox(store);
    std::mutex mutex;
    std::map<vouch::id, int> handled;
    std::size_t largest = 0;
    vouch::router routes(outbox);
    routes.on_batch("b",
                    [&](vouch::delivery_batch& all) {
                        const std::lock_guard lock(mutex);
                        largest = std::max(largest, all.size());
                        for (auto& d : all) {
                            ++handled[d.id()];
                            d.emit({.queue = "effects", .topic = "done"});
                        }
                    },
                    {.size_max = 20, .wait = 2ms});
    vouch::transact(
        store, [&](auto& tx) { outbox.emit(tx, std::vector<vouch::emission>(count, {.queue = "q", .topic = "b"})); });

    std::stop_source stop;
    std::vector<std::unique_ptr<vouch::worker<vouch::sqlite::store>>> workers;
    std::vector<std::jthread> threads;
    for (int n = 0; n < 2; ++n) {
        workers.push_back(std::make_unique<vouch::worker<vouch::sqlite::store>>(outbox));
        workers.back()->serve(routes, {.queue = "q", .concurrency = 3});
        threads.emplace_back([&, w = workers.back().get()] { w->run(stop.get_token()); });
    }
    for (int i = 0; i < 20'000 && store.counts("q")[state::succeeded] < count; ++i) {
        std::this_thread::sleep_for(1ms);
    }
    stop.request_stop();
    threads.clear();
    CHECK(store.counts("q")[state::succeeded] == count);
    CHECK(store.counts("effects").total() == count);
    CHECK(handled.size() == count);
    CHECK(std::all_of(handled.begin(), handled.end(), [](const auto& h) { return h.second == 1; }));
    CHECK(largest > 1);
    CHECK(largest <= 20);
}

} // namespace sqlite_batches_test
