// SPDX-License-Identifier: MIT
// Retention in the background: bounded commits, and every sweep ends.
#include <array>
#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "worker_support.hpp"

using namespace worker_test;
using vouch::event_kind;
using vouch::state;

TEST_CASE("retention: ended entries are swept in bounded commits, by their rules, while work goes on") {
    vouch::memory::store store;
    const vouch::outbox outbox(store);
    vouch::testing::recorder seen;
    vouch::router routes(outbox);
    routes.on("good", [](vouch::delivery&) {});
    routes.on("bad", [](vouch::delivery&) { throw vouch::reject("bad"); });
    emit_many(store, outbox, 95, {.queue = "q", .topic = "good"});
    emit_many(store, outbox, 5, {.queue = "q", .topic = "bad"});
    emit_many(store, outbox, 10, {.queue = "kept", .topic = "good"});
    vouch::worker worker(outbox, {.purge_every = 5ms, .purge_limit = 10});
    worker.serve(routes, {.queue = "q", .retention = {.succeeded = vouch::purge_rule::immediately()}});
    worker.serve(routes, {.queue = "kept", .retention = {.succeeded = vouch::purge_rule::after(1h)}});
    worker.observe(seen);
    at_work running(worker);
    CHECK(comes_true([&] { return store.counts("q").total() == 5; }));
    CHECK(comes_true([&] { return count_of(store, state::succeeded, "kept") == 10; }));
    std::this_thread::sleep_for(30ms); // some more sweeps
    CHECK(count_of(store, state::dead) == 5);
    const auto done = running.stop();
    CHECK(done.purged == 95);
    CHECK(store.counts("kept").total() == 10);
    CHECK(seen.count(event_kind::purged) >= 10); // no commit removed more than ten
}

TEST_CASE("retention: a sweep goes on as long as something goes, past any number of entries that are still needed") {
    vouch::memory::store store;
    const vouch::outbox outbox(store);
    constexpr std::uint64_t needed = 6'000;
    vouch::transact(store, [&](auto& tx) {
        const auto past = outbox.now() - 1h;
        for (std::uint64_t n = 1; n <= needed; ++n) {
            vouch::draft d{.id = {.high = 7, .low = n}, .queue = "q", .topic = "t", .group = n % 300 == 0 ? "" : "g"};
            tx.enqueue(std::array{d}, past);
            std::ignore = tx.cancel(d.id, "e", past + vouch::duration{static_cast<std::int64_t>(n)});
        }
        const vouch::draft live{.id = {.high = 8, .low = 1}, .queue = "elsewhere", .topic = "t", .group = "g"};
        tx.enqueue(std::array{live}, past);
    });
    vouch::router routes(outbox);
    routes.on("t", [](vouch::delivery&) {});
    vouch::worker worker(outbox, {.purge_every = 1h, .purge_limit = 10}); // so there is one sweep
    worker.serve(routes, {.queue = "q", .retention = {.dead = vouch::purge_rule::immediately()}});
    at_work running(worker);
    CHECK(comes_true([&] { return store.counts("q").total() == needed - needed / 300; }));
    CHECK(running.stop().purged == needed / 300);
}

TEST_CASE("retention: a queue in which entries end all the time does not keep the dead from being swept") {
    silent_store store;
    const vouch::outbox outbox(store);
    store.wire().at_commit = [](const std::function<void()>& commit) {
        commit();
        std::this_thread::sleep_for(5ms);
    };
    vouch::router routes(outbox);
    routes.on("t", [](vouch::delivery&) {});
    const std::vector<vouch::draft> bad(1, {.id = support::id_of(1), .queue = "q", .topic = "bad"});
    vouch::enqueue(store.plain(), bad, outbox.now());
    REQUIRE(vouch::transact(store.plain(), [&](auto& tx) { return tx.cancel(bad[0].id, "bad", outbox.now()); }) ==
            vouch::verdict::applied);
    vouch::worker worker(outbox, {.purge_every = 5ms, .purge_limit = 10});
    worker.serve(routes,
                 {.queue = "q",
                  .retention = {.succeeded = vouch::purge_rule::after(20ms), .dead = vouch::purge_rule::after(20ms)}});
    std::jthread busy([&](const std::stop_token& stop) {
        for (std::uint64_t n = 2; !stop.stop_requested(); ++n) {
            const std::vector<vouch::draft> done(
                1, {.id = support::id_of(n), .queue = "q", .topic = "done", .result = std::string{}});
            vouch::enqueue(store.plain(), done, outbox.now());
            std::this_thread::sleep_for(1ms);
        }
    });
    at_work running(worker);
    CHECK(comes_true([&] { return !store.find(bad[0].id); }, 5s));
}
