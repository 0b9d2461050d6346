// SPDX-License-Identifier: MIT
// Leases while a handler runs: kept by extension, or lost; and what becomes of a claim that was lost.
#include <atomic>
#include <string>
#include <tuple>

#include <vouch/observe.hpp>

#include "worker_support.hpp"

using namespace worker_test;
using vouch::event_kind;
using vouch::state;

TEST_CASE("lease: a handler longer than its lease keeps its claim by extension") {
    vouch::memory::store store;
    const vouch::outbox outbox(store);
    std::atomic<int> calls = 0;
    std::atomic<bool> told = false;
    vouch::router routes(outbox);
    routes.on("t", [&](vouch::delivery& d) {
        ++calls;
        std::this_thread::sleep_for(1500ms);
        told = d.stop().stop_requested();
    });
    const auto id = outbox.emit({.queue = "q", .topic = "t"}).front().id;
    const vouch::queue_options how{.queue = "q", .lease = 600ms};
    vouch::worker first(outbox, {.name = "first", .poll_interval = 20ms});
    vouch::worker second(outbox, {.name = "second", .poll_interval = 20ms}); // would take it over
    first.serve(routes, how);
    second.serve(routes, how);
    at_work one(first);
    at_work two(second);
    CHECK(comes_true([&] { return count_of(store, state::succeeded) == 1; }));
    CHECK(calls == 1);
    CHECK_FALSE(told);
    CHECK(store.find(id)->epoch == 1);
    const auto done = one.stop();
    const auto others = two.stop();
    CHECK(done.lost + others.lost == 0);
    CHECK(done.stale + others.stale == 0);
}

TEST_CASE("lease: claims that wait for a thread are kept, too") {
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
    at_work running(worker);
    emit_many(store, outbox, 20, {.queue = "q", .topic = "t"}); // so that it looks ahead
    REQUIRE(comes_true([&] { return count_of(store, state::succeeded) == 20; }));
    is_slow = true;
    emit_many(store, outbox, 20, {.queue = "q", .topic = "t"});
    CHECK(comes_true([&] { return count_of(store, state::succeeded) == 40; }));
    CHECK(calls == 40);
    for (const auto& e : store.list(vouch::query::all("q"))) {
        CHECK(e.epoch == 1);
    }
    CHECK(running.stop().lost == 0);
}

TEST_CASE("lease: without extension a slow handler's claim is taken over, its settle is stale and recorded once") {
    vouch::memory::store store;
    const vouch::outbox outbox(store);
    std::atomic<int> calls = 0;
    vouch::router routes(outbox);
    routes.on("t", [&](vouch::delivery& d) {
        const int call = ++calls;
        d.emit({.queue = "effects", .topic = "done", .payload = std::to_string(call)});
        if (call == 1) { // until the other one has done it
            std::ignore = comes_true([&] { return count_of(store, state::succeeded) == 1; });
        }
    });
    const auto id = outbox.emit({.queue = "q", .topic = "t"}).front().id;
    const vouch::queue_options how{.queue = "q", .lease = 150ms, .extend_leases = false};
    vouch::worker first(outbox, {.name = "first", .poll_interval = 20ms});
    vouch::worker second(outbox, {.name = "second", .poll_interval = 20ms});
    first.serve(routes, how);
    second.serve(routes, how);
    at_work one(first);
    REQUIRE(comes_true([&] { return calls == 1; }));
    at_work two(second);
    CHECK(comes_true([&] { return calls == 2; }));
    CHECK(comes_true([&] { return count_of(store, state::succeeded) == 1; }));
    const auto late = one.stop(); // waits for the slow handler and its settle
    CHECK(late.stale == 1);
    CHECK(late.succeeded == 0);
    CHECK(two.stop().succeeded == 1);
    CHECK(store.find(id)->worker == "second");
    CHECK(count_of(store, state::pending, "effects") == 1);
}

namespace {

/// Takes an entry over as somebody would whose clock is hours ahead.
void steal(vouch::memory::store& store, const vouch::emitter& outbox, const vouch::id& id) {
    const auto got =
        vouch::claim(store, {.queue = "q", .now = outbox.now() + 2h, .lease = 1h, .worker = "thief", .only = id});
    REQUIRE(got.size() == 1);
}

} // namespace

TEST_CASE("lease: a stop callback that takes its time does not keep other leases from being extended") {
    vouch::memory::store store;
    const vouch::outbox outbox(store);
    vouch::testing::recorder seen;
    std::atomic<int> calls = 0;
    std::atomic<bool> is_told = false;
    std::atomic<bool> may_end = false;
    vouch::router routes(outbox);
    routes.on("stolen", [&](vouch::delivery& d) {
        const std::stop_callback slow(d.stop(), [&] {
            is_told = true;
            std::ignore = comes_true([&] { return may_end.load(); });
        });
        ++calls;
        std::ignore = comes_true([&] { return may_end.load(); });
    });
    routes.on("kept", [&](vouch::delivery&) {
        ++calls;
        std::ignore = comes_true([&] { return may_end.load(); });
    });
    const auto stolen = outbox.emit({.queue = "q", .topic = "stolen"}).front().id;
    const auto kept = outbox.emit({.queue = "q", .topic = "kept"}).front().id;
    vouch::worker worker(outbox, {.poll_interval = 20ms});
    worker.serve(routes, {.queue = "q", .concurrency = 2, .lease = 150ms});
    worker.observe(seen);
    at_work running(worker);
    REQUIRE(comes_true([&] { return calls == 2; }));
    steal(store, outbox, stolen);
    REQUIRE(comes_true([&] { return is_told.load(); }));
    const auto lease = *store.find(kept)->lease_until;
    CHECK(comes_true([&] { return *store.find(kept)->lease_until > lease + 300ms; })); // twice over
    may_end = true;
    CHECK(comes_true([&] { return store.find(kept)->state == state::succeeded; }));
    CHECK(store.find(kept)->epoch == 1);
}

TEST_CASE("lease: a handler whose claim is lost is told by its stop token, and its late settle is refused") {
    vouch::memory::store store;
    const vouch::outbox outbox(store);
    vouch::testing::recorder seen;
    std::atomic<int> calls = 0;
    std::atomic<bool> told = false;
    vouch::router routes(outbox);
    routes.on("t", [&](vouch::delivery& d) {
        ++calls;
        d.emit({.queue = "effects", .topic = "done"});
        told = comes_true([&] { return d.stop().stop_requested(); });
    });
    const auto id = outbox.emit({.queue = "q", .topic = "t"}).front().id;
    vouch::worker worker(outbox, {.poll_interval = 20ms});
    worker.serve(routes, {.queue = "q", .lease = 150ms});
    worker.observe(seen);
    at_work running(worker);
    REQUIRE(comes_true([&] { return calls == 1; }));
    steal(store, outbox, id);
    CHECK(comes_true([&] { return seen.count(event_kind::stale) == 1; }));
    const auto done = running.stop();
    CHECK(told);
    CHECK(done.lost == 1);
    CHECK(done.stale == 1);
    CHECK(seen.count(event_kind::lease_lost, "#") == 1);
    CHECK(store.find(id)->worker == "thief");
    CHECK(store.find(id)->state == state::claimed);
    CHECK(store.counts("effects").total() == 0);
}

TEST_CASE("lease: a claim that is lost before a thread was free is never started") {
    vouch::memory::store store;
    const vouch::outbox outbox(store);
    std::atomic<int> calls = 0;
    std::atomic<bool> holds = false;
    std::atomic<bool> go_on = false;
    vouch::router routes(outbox);
    routes.on("t", [&](vouch::delivery&) {
        ++calls;
        if (holds) {
            std::ignore = comes_true([&] { return go_on.load(); });
        }
    });
    vouch::worker worker(outbox, {.poll_interval = 20ms, .look_ahead = 10s});
    worker.serve(routes, {.queue = "q", .lease = 150ms});
    vouch::metrics counted;
    vouch::testing::recorder seen;
    worker.observe(counted);
    worker.observe(seen);
    at_work running(worker);
    emit_many(store, outbox, 20, {.queue = "q", .topic = "t"}); // so that it looks ahead
    REQUIRE(comes_true([&] { return count_of(store, state::succeeded) == 20; }));
    holds = true;
    emit_many(store, outbox, 2, {.queue = "q", .topic = "t"}); // one is started, one waits for the thread
    REQUIRE(comes_true([&] { return count_of(store, state::claimed) == 2; }));
    steal(store, outbox, store.list(vouch::query::live("q")).back().id);
    REQUIRE(comes_true([&] { return seen.count(event_kind::lease_lost, "#") == 1; }));
    go_on = true;
    REQUIRE(comes_true([&] { return count_of(store, state::succeeded) == 21; }));
    const auto done = running.stop();
    CHECK(calls == 21);
    CHECK(done.lost == 1);
    CHECK(done.stale == 0);
    CHECK(counted.text().find("vouch_leases_lost_total{queue=\"q\"} 1\n") != std::string::npos);
    CHECK(counted.text().find("vouch_active{queue=\"q\"} 0\n") != std::string::npos);
}
