// SPDX-License-Identifier: MIT
// The outbox bound to a store: transactions of its own, sagas, requeue, cancel, observers.
#include <array>
#include <atomic>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <vouch/observe.hpp>
#include <vouch/saga.hpp>
#include <vouch/testing.hpp>
#include <vouch/vouch.hpp>
#include <vouch/worker.hpp>

#include "commit_fault_store.hpp"
#include "support.hpp"

namespace outbox_store_test {

using namespace support;
using vouch::event_kind;
using vouch::state;
using vouch::verdict;
using kind = vouch::receipt::kind;

namespace {

struct outbox_fixture {
    vouch::manual_clock clock{t0};
    vouch::memory::store store{};
    vouch::outbox<vouch::memory::store> outbox{store, {.clock = clock, .ids = vouch::counting_ids{}}};
    vouch::testing::recorder seen{};

    outbox_fixture() { outbox.observe(seen); }

    [[nodiscard]] vouch::entry entry(const vouch::id& id) const { return store.find(id).value(); }
    [[nodiscard]] vouch::id dead_entry() {
        const auto id = outbox.emit({.queue = "q", .topic = "t", .payload = "p"}).front().id;
        REQUIRE(outbox.cancel(id) == verdict::applied);
        return id;
    }
};

/// Counts its flushes, and the dead entries it would log.
struct buffered_log {
    static constexpr bool writes_log = true;
    std::atomic<int> flushes = 0;
    std::atomic<int> warnings = 0;
    void on(const vouch::event& e) noexcept { warnings += e.what == event_kind::dead ? 1 : 0; }
    void flush() noexcept { ++flushes; }
};

vouch::saga_definition two_steps() {
    return vouch::define_saga<std::string>("order")
        .step(
            "one", [] {}, [] {})
        .step("two", [] { throw vouch::failure("not_yet"); })
        .build();
}

} // namespace

TEST_CASE("outbox: emit uses a transaction of its own or the caller's") {
    outbox_fixture f;
    CHECK(f.outbox.emit({.queue = "q", .topic = "t"}).size() == 1);
    CHECK(f.outbox.emit({{.queue = "q", .topic = "t"}, {.queue = "r", .topic = "t"}}).size() == 2);
    {
        auto tx = f.store.begin();
        f.outbox.emit(tx, {.queue = "q", .topic = "t"});
    } // rolled back
    CHECK(f.store.counts("q").total() == 2);
    CHECK(f.seen.count(event_kind::enqueued) == 3);
}

TEST_CASE("outbox: start uses a transaction of its own or the caller's") {
    outbox_fixture f;
    const auto saga = two_steps();
    const auto alone = f.outbox.start(saga, "orders", std::string("a lamp"));
    CHECK(f.entry(alone).topic == "order");
    CHECK(f.entry(alone).payload == "a lamp");
    CHECK(is_saga(f.entry(alone)));

    const auto keyed = f.outbox.start(saga, {.queue = "orders", .key = "7", .lane = "ada"}, std::string("a chair"));
    CHECK(f.entry(keyed).lane == "ada");
    CHECK(f.outbox.start(saga, {.queue = "orders", .key = "7"}, std::string("again")) == keyed); // a duplicate

    auto tx = f.store.begin();
    const auto joined = f.outbox.start(tx, saga, "orders", std::string("a piano"));
    CHECK(!f.store.find(joined));
    tx.commit();
    CHECK(f.entry(joined).payload == "a piano");
    CHECK(f.store.counts("orders").total() == 3);
}

TEST_CASE("outbox: requeue starts a dead entry again, at most once, and resume continues it") {
    outbox_fixture f;
    const auto dead = f.dead_entry();
    const auto first = f.outbox.requeue(dead);
    CHECK(first.what == kind::inserted);
    CHECK(f.entry(first.id).predecessor == dead);
    CHECK(f.entry(first.id).payload == "p");
    const auto second = f.outbox.requeue(dead);
    CHECK(second.what == kind::duplicate);
    CHECK(second.id == first.id);
    CHECK(f.outbox.requeue(first.id).what == kind::refused);  // it is not dead
    CHECK(f.outbox.requeue(id_of(99)).what == kind::refused); // no such entry
    CHECK(f.seen.count(event_kind::enqueued) == 2);           // the entry and its one successor

    const auto advanced = f.outbox.emit({.queue = "q", .topic = "t", .progress = "half"}).front().id;
    REQUIRE(f.outbox.cancel(advanced) == verdict::applied);
    CHECK(f.entry(f.outbox.resume(advanced).id).progress == "half");
}

TEST_CASE("outbox: cancel ends an entry and makes a saga compensate") {
    outbox_fixture f;
    const auto plain = f.outbox.emit({.queue = "q", .topic = "t"}).front().id;
    CHECK(f.outbox.cancel(plain, "no_longer_wanted") == verdict::applied);
    CHECK(f.entry(plain).last_error == "no_longer_wanted");
    CHECK(f.outbox.cancel(plain) == verdict::repeated);
    CHECK(f.outbox.cancel(id_of(99)) == verdict::unknown);

    vouch::router router(f.outbox);
    router.on(two_steps());
    const auto saga = f.outbox.start(two_steps(), "orders", std::string("a lamp"));
    vouch::runner runner(f.outbox, router, {.queue = "orders"});
    runner.run_until_idle(); // step one is done, step two is retried later
    REQUIRE(f.entry(saga).state != state::dead);
    const auto asked = f.outbox.cancel(saga);
    CHECK((asked == verdict::applied || asked == verdict::repeated));
    CHECK(f.entry(saga).state != state::dead); // it is not ended at once
    runner.run_until_idle();
    CHECK(vouch::inspect(f.store, saga)->is_compensated());
    CHECK(f.outbox.cancel(saga) == verdict::stale);
}

TEST_CASE("outbox: its observers see the events of the outbox, of its runners and of its workers") {
    outbox_fixture f;
    vouch::router router(f.outbox);
    router.on("t", [](vouch::delivery& delivery) { delivery.emit({.queue = "next", .topic = "follow"}); });
    f.outbox.emit({.queue = "q", .topic = "t"});
    vouch::testing::recorder own;
    vouch::runner runner(f.outbox, router, {.queue = "q"});
    runner.observe(own);
    runner.run_once();
    CHECK(f.seen.count(event_kind::succeeded) == 1);
    CHECK(f.seen.count(event_kind::enqueued, "follow") == 1);
    CHECK(own.count(event_kind::succeeded) == 1);
    CHECK(own.count(event_kind::enqueued, "t") == 0); // emitted by the outbox, not by the runner

    f.outbox.emit({.queue = "q", .topic = "t"});
    vouch::worker worker(f.outbox);
    worker.serve(router, {.queue = "q"});
    std::stop_source stop;
    std::jthread running([&] { worker.run(stop.get_token()); });
    while (f.store.counts("q").live() > 0) {
        std::this_thread::sleep_for(1ms);
    }
    stop.request_stop();
    running.join();
    CHECK(f.seen.count(event_kind::succeeded) == 2);
    CHECK(own.count(event_kind::succeeded) == 1); // only the runner's events
}

TEST_CASE("events: an outcome is reported before the claim that shares its commit") {
    outbox_fixture d;
    vouch::router router(d.outbox);
    router.on("t", [](vouch::delivery& delivery) -> vouch::outcome {
        return delivery.entry().progress.empty() ? vouch::outcome{vouch::advance{.progress = "half"}}
                                                 : vouch::succeed{};
    });
    d.outbox.emit({.queue = "q", .topic = "t"});
    vouch::runner(d.outbox, router, {.queue = "q"}).run_until_idle();
    std::vector<event_kind> seen;
    for (const auto& e : d.seen.events()) {
        seen.push_back(e.what);
    }
    CHECK(seen == std::vector{event_kind::enqueued, event_kind::claimed, event_kind::started, event_kind::advanced,
                              event_kind::claimed, event_kind::started, event_kind::succeeded});
}

TEST_CASE("outbox: a requeue whose commit is in doubt is repeated under the same id, and inserted once") {
    for (const auto fault : {commit_fault::rolled_back_in_doubt, commit_fault::committed_in_doubt}) {
        commit_fault_store store;
        vouch::testing::recorder seen;
        vouch::outbox outbox(store, {.ids = vouch::counting_ids{}});
        outbox.observe(seen);
        const auto dead = outbox.emit({.queue = "q", .topic = "t"}).front().id;
        REQUIRE(outbox.cancel(dead) == verdict::applied);
        store.plan().faults = {fault};
        const auto got = outbox.requeue(dead);
        CHECK(got.what == kind::inserted);
        CHECK(store.find(got.id)->predecessor == dead);
        CHECK(store.counts("q").total() == 2);
        CHECK(seen.count(event_kind::enqueued) == 2);
        CHECK(outbox.requeue(dead).what == kind::duplicate);
    }
}

TEST_CASE("outbox: a worker that stops flushes the outbox's observers, and their log replaces its own") {
    buffered_log log;
    vouch::memory::store store;
    vouch::outbox outbox(store);
    outbox.observe(log);
    CHECK(outbox.observers().has_log());
    vouch::router router(outbox);
    router.on("t", [](vouch::delivery&) { throw vouch::reject("no"); });
    outbox.emit({.queue = "q", .topic = "t"});
    vouch::worker worker(outbox);
    worker.serve(router, {.queue = "q"});
    std::stop_source stop;
    std::jthread running([&] { worker.run(stop.get_token()); });
    while (store.counts("q").live() > 0) {
        std::this_thread::sleep_for(1ms);
    }
    CHECK(log.flushes == 0);
    stop.request_stop();
    running.join();
    CHECK(log.flushes == 1);
    CHECK(log.warnings == 1);
}

TEST_CASE("delivery: a follow-up continues the delivery's trail, or the trail it names") {
    outbox_fixture d;
    vouch::router router(d.outbox);
    router.on("t", [](vouch::delivery& delivery) {
        delivery.emit({.queue = "next", .topic = "own"});
        delivery.emit({.queue = "next", .topic = "named", .trail = {id_of(77)}});
    });
    const auto first = d.outbox.emit({.queue = "q", .topic = "t"}).front().id;
    vouch::runner(d.outbox, router, {.queue = "q"}).run_once();
    const auto next = d.store.list(vouch::query::live("next"));
    REQUIRE(next.size() == 2);
    CHECK(next[0].trail == vouch::id_list{first, next[0].id});
    CHECK(next[1].trail == vouch::id_list{id_of(77), next[1].id});
}

TEST_CASE("router: a second saga of the same name is refused") {
    outbox_fixture f;
    vouch::router router(f.outbox);
    router.on(two_steps());
    CHECK(router.has_route("order"));
    CHECK(!router.has_route("invoice"));
    CHECK(kind_of([&] { router.on(two_steps()); }) == vouch::error_kind::invalid_argument);
}

} // namespace outbox_store_test
