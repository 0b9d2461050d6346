// SPDX-License-Identifier: MIT
// Leases while a handler runs: kept by extension, or lost; and the outcome of a lost claim.
#include <atomic>
#include <string>
#include <tuple>

#include <vouch/observe.hpp>

#include "worker_support.hpp"

namespace worker_leases_test {

using namespace worker_test;
using vouch::event_kind;
using vouch::state;

TEST_CASE("lease: a handler that outlives its lease keeps its claim by extension") {
    vouch::memory::store store;
    const vouch::outbox outbox(store);
    std::atomic<int> calls = 0;
    std::atomic<bool> stop_requested = false;
    vouch::router routes(outbox);
    routes.on("t", [&](vouch::delivery& d) {
        ++calls;
        std::this_thread::sleep_for(1500ms);
        stop_requested = d.stop().stop_requested();
    });
    const auto id = outbox.emit({.queue = "q", .topic = "t"}).front().id;
    const vouch::queue_options how{.queue = "q", .lease = 600ms};
    vouch::worker first(outbox, {.name = "first", .poll_interval = 20ms});
    vouch::worker second(outbox, {.name = "second", .poll_interval = 20ms}); // would take it over
    first.serve(routes, how);
    second.serve(routes, how);
    running_worker one(first);
    running_worker two(second);
    CHECK(eventually([&] { return count_of(store, state::succeeded) == 1; }));
    CHECK(calls == 1);
    CHECK_FALSE(stop_requested);
    CHECK(store.find(id)->epoch == 1);
    const auto done = one.stop();
    const auto others = two.stop();
    CHECK(done.lost + others.lost == 0);
    CHECK(done.stale + others.stale == 0);
}

TEST_CASE("lease: the leases of claims that wait for a thread are extended as well") {
    vouch::memory::store store;
    const vouch::outbox outbox(store);
    std::atomic<int> calls = 0;
    std::atomic<bool> is_slow = false;
    vouch::router routes(outbox);
    routes.on("t", [&](vouch::delivery&) {
        ++calls;
        if (is_slow.exchange(false)) {
            std::this_thread::sleep_for(1500ms);
        }
    });
    vouch::worker worker(outbox, {.poll_interval = 20ms, .look_ahead = 10s});
    worker.serve(routes, {.queue = "q", .lease = 600ms});
    running_worker running(worker);
    emit_many(store, outbox, 20, {.queue = "q", .topic = "t"}); // so that it looks ahead
    REQUIRE(eventually([&] { return count_of(store, state::succeeded) == 20; }));
    is_slow = true;
    emit_many(store, outbox, 20, {.queue = "q", .topic = "t"});
    CHECK(eventually([&] { return count_of(store, state::succeeded) == 40; }));
    CHECK(calls == 40);
    for (const auto& e : store.list(vouch::query::all("q"))) {
        CHECK(e.epoch == 1);
    }
    CHECK(running.stop().lost == 0);
}

TEST_CASE("lease: without extension a slow handler's claim is taken over, and its late settle is stale") {
    vouch::memory::store store;
    const vouch::outbox outbox(store);
    std::atomic<int> calls = 0;
    vouch::router routes(outbox);
    routes.on("t", [&](vouch::delivery& d) {
        const int call = ++calls;
        d.emit({.queue = "effects", .topic = "done", .payload = std::to_string(call)});
        if (call == 1) { // until the other worker has finished it
            std::ignore = eventually([&] { return count_of(store, state::succeeded) == 1; });
        }
    });
    const auto id = outbox.emit({.queue = "q", .topic = "t"}).front().id;
    const vouch::queue_options how{.queue = "q", .lease = 150ms, .extend_leases = false};
    vouch::worker first(outbox, {.name = "first", .poll_interval = 20ms});
    vouch::worker second(outbox, {.name = "second", .poll_interval = 20ms});
    first.serve(routes, how);
    second.serve(routes, how);
    running_worker one(first);
    REQUIRE(eventually([&] { return calls == 1; }));
    running_worker two(second);
    CHECK(eventually([&] { return calls == 2; }));
    CHECK(eventually([&] { return count_of(store, state::succeeded) == 1; }));
    const auto late = one.stop(); // waits for the slow handler and its settle
    CHECK(late.stale == 1);
    CHECK(late.succeeded == 0);
    CHECK(two.stop().succeeded == 1);
    CHECK(store.find(id)->worker == "second");
    CHECK(count_of(store, state::pending, "effects") == 1);
}

namespace {

/// Claims an entry as a worker whose clock is two hours ahead.
void take_over(vouch::memory::store& store, const vouch::emitter& outbox, const vouch::id& id) {
    const auto got =
        vouch::claim(store, {.queue = "q", .now = outbox.now() + 2h, .lease = 1h, .worker = "other", .only = id});
    REQUIRE(got.size() == 1);
}

} // namespace

TEST_CASE("lease: a slow stop callback does not keep other leases from being extended") {
    vouch::memory::store store;
    const vouch::outbox outbox(store);
    vouch::testing::recorder seen;
    std::atomic<int> calls = 0;
    std::atomic<bool> stop_called = false;
    std::atomic<bool> may_end = false;
    vouch::router routes(outbox);
    routes.on("lost", [&](vouch::delivery& d) {
        const std::stop_callback slow(d.stop(), [&] {
            stop_called = true;
            std::ignore = eventually([&] { return may_end.load(); });
        });
        ++calls;
        std::ignore = eventually([&] { return may_end.load(); });
    });
    routes.on("kept", [&](vouch::delivery&) {
        ++calls;
        std::ignore = eventually([&] { return may_end.load(); });
    });
    const auto lost = outbox.emit({.queue = "q", .topic = "lost"}).front().id;
    const auto kept = outbox.emit({.queue = "q", .topic = "kept"}).front().id;
    vouch::worker worker(outbox, {.poll_interval = 20ms});
    worker.serve(routes, {.queue = "q", .concurrency = 2, .lease = 150ms});
    worker.observe(seen);
    running_worker running(worker);
    REQUIRE(eventually([&] { return calls == 2; }));
    take_over(store, outbox, lost);
    REQUIRE(eventually([&] { return stop_called.load(); }));
    const auto lease = *store.find(kept)->lease_until;
    CHECK(eventually([&] { return *store.find(kept)->lease_until > lease + 300ms; })); // extended at least twice
    may_end = true;
    CHECK(eventually([&] { return store.find(kept)->state == state::succeeded; }));
    CHECK(store.find(kept)->epoch == 1);
}

TEST_CASE("lease: a lost claim requests a stop of its handler, and the late settle is refused") {
    vouch::memory::store store;
    const vouch::outbox outbox(store);
    vouch::testing::recorder seen;
    std::atomic<int> calls = 0;
    std::atomic<bool> stop_requested = false;
    vouch::router routes(outbox);
    routes.on("t", [&](vouch::delivery& d) {
        ++calls;
        d.emit({.queue = "effects", .topic = "done"});
        stop_requested = eventually([&] { return d.stop().stop_requested(); });
    });
    const auto id = outbox.emit({.queue = "q", .topic = "t"}).front().id;
    vouch::worker worker(outbox, {.poll_interval = 20ms});
    worker.serve(routes, {.queue = "q", .lease = 150ms});
    worker.observe(seen);
    running_worker running(worker);
    REQUIRE(eventually([&] { return calls == 1; }));
    take_over(store, outbox, id);
    CHECK(eventually([&] { return seen.count(event_kind::stale) == 1; }));
    const auto done = running.stop();
    CHECK(stop_requested);
    CHECK(done.lost == 1);
    CHECK(done.stale == 1);
    CHECK(seen.count(event_kind::lease_lost, "#") == 1);
    CHECK(store.find(id)->worker == "other");
    CHECK(store.find(id)->state == state::claimed);
    CHECK(store.counts("effects").total() == 0);
}

TEST_CASE("lease: a claim that is lost before a thread is free is never started") {
    vouch::memory::store store;
    const vouch::outbox outbox(store);
    std::atomic<int> calls = 0;
    std::atomic<bool> blocks = false;
    std::atomic<bool> may_finish = false;
    vouch::router routes(outbox);
    routes.on("t", [&](vouch::delivery&) {
        ++calls;
        if (blocks) {
            std::ignore = eventually([&] { return may_finish.load(); });
        }
    });
    vouch::worker worker(outbox, {.poll_interval = 20ms, .look_ahead = 10s});
    worker.serve(routes, {.queue = "q", .lease = 150ms});
    vouch::metrics counted;
    vouch::testing::recorder seen;
    worker.observe(counted);
    worker.observe(seen);
    running_worker running(worker);
    emit_many(store, outbox, 20, {.queue = "q", .topic = "t"}); // so that it looks ahead
    REQUIRE(eventually([&] { return count_of(store, state::succeeded) == 20; }));
    blocks = true;
    emit_many(store, outbox, 2, {.queue = "q", .topic = "t"}); // one is started, one waits for the thread
    REQUIRE(eventually([&] { return count_of(store, state::claimed) == 2; }));
    take_over(store, outbox, store.list(vouch::query::live("q")).back().id);
    REQUIRE(eventually([&] { return seen.count(event_kind::lease_lost, "#") == 1; }));
    may_finish = true;
    REQUIRE(eventually([&] { return count_of(store, state::succeeded) == 21; }));
    const auto done = running.stop();
    CHECK(calls == 21);
    CHECK(done.lost == 1);
    CHECK(done.stale == 0);
    CHECK(counted.text().find("vouch_leases_lost_total{queue=\"q\"} 1\n") != std::string::npos);
    CHECK(counted.text().find("vouch_active{queue=\"q\"} 0\n") != std::string::npos);
}

} // namespace worker_leases_test
