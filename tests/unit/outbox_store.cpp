// SPDX-License-Identifier: MIT
// The outbox as the application's handle on its store: transactions of its own, sagas, requeue, cancel, observers.
#include <array>
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

#include "support.hpp"

namespace outbox_store_test {

using namespace support;
using vouch::event_kind;
using vouch::state;
using vouch::verdict;
using kind = vouch::receipt::kind;

namespace {

struct desk {
    vouch::manual_clock clock{t0};
    vouch::memory::store store{};
    vouch::outbox<vouch::memory::store> outbox{store, {.clock = clock, .ids = vouch::counting_ids{}}};
    vouch::testing::recorder seen{};

    desk() { outbox.observe(seen); }

    [[nodiscard]] vouch::entry entry(const vouch::id& id) const { return store.find(id).value(); }
    [[nodiscard]] vouch::id dead_entry() {
        const auto id = outbox.emit({.queue = "q", .topic = "t", .payload = "p"}).front().id;
        REQUIRE(outbox.cancel(id) == verdict::applied);
        return id;
    }
};

vouch::saga_definition two_steps() {
    return vouch::define_saga<std::string>("order")
        .step(
            "one", [] {}, [] {})
        .step("two", [] { throw vouch::failure("not_yet"); })
        .build();
}

} // namespace

TEST_CASE("outbox: emits in a transaction of its own, or in the caller's") {
    desk d;
    CHECK(d.outbox.emit({.queue = "q", .topic = "t"}).size() == 1);
    CHECK(d.outbox.emit({{.queue = "q", .topic = "t"}, {.queue = "r", .topic = "t"}}).size() == 2);
    {
        auto tx = d.store.begin();
        d.outbox.emit(tx, {.queue = "q", .topic = "t"});
    } // rolled back
    CHECK(d.store.counts("q").total() == 2);
    CHECK(d.seen.count(event_kind::enqueued) == 3);
}

TEST_CASE("outbox: a saga is started in a transaction of its own, or in the caller's") {
    desk d;
    const auto saga = two_steps();
    const auto alone = d.outbox.start(saga, "orders", std::string("a lamp"));
    CHECK(d.entry(alone).topic == "order");
    CHECK(d.entry(alone).payload == "a lamp");
    CHECK(is_saga(d.entry(alone)));

    const auto keyed = d.outbox.start(saga, {.queue = "orders", .key = "7", .lane = "ada"}, std::string("a chair"));
    CHECK(d.entry(keyed).lane == "ada");
    CHECK(d.outbox.start(saga, {.queue = "orders", .key = "7"}, std::string("again")) == keyed); // a duplicate

    auto tx = d.store.begin();
    const auto joined = d.outbox.start(tx, saga, "orders", std::string("a piano"));
    CHECK(!d.store.find(joined));
    tx.commit();
    CHECK(d.entry(joined).payload == "a piano");
    CHECK(d.store.counts("orders").total() == 3);
}

TEST_CASE("outbox: requeue starts a dead entry again, once, and resume continues it") {
    desk d;
    const auto dead = d.dead_entry();
    const auto first = d.outbox.requeue(dead);
    CHECK(first.what == kind::inserted);
    CHECK(d.entry(first.id).predecessor == dead);
    CHECK(d.entry(first.id).payload == "p");
    const auto second = d.outbox.requeue(dead);
    CHECK(second.what == kind::duplicate);
    CHECK(second.id == first.id);
    CHECK(d.outbox.requeue(first.id).what == kind::refused);  // it is not dead
    CHECK(d.outbox.requeue(id_of(99)).what == kind::refused); // there is none
    CHECK(d.seen.count(event_kind::enqueued) == 2);           // the entry and its one successor

    const auto advanced = d.outbox.emit({.queue = "q", .topic = "t", .progress = "half"}).front().id;
    REQUIRE(d.outbox.cancel(advanced) == verdict::applied);
    CHECK(d.entry(d.outbox.resume(advanced).id).progress == "half");
}

TEST_CASE("outbox: cancel ends an entry, and asks a saga to undo what it has done") {
    desk d;
    const auto plain = d.outbox.emit({.queue = "q", .topic = "t"}).front().id;
    CHECK(d.outbox.cancel(plain, "no_longer_wanted") == verdict::applied);
    CHECK(d.entry(plain).last_error == "no_longer_wanted");
    CHECK(d.outbox.cancel(plain) == verdict::repeated);
    CHECK(d.outbox.cancel(id_of(99)) == verdict::unknown);

    vouch::router router(d.outbox);
    router.on(two_steps());
    const auto saga = d.outbox.start(two_steps(), "orders", std::string("a lamp"));
    vouch::runner runner(d.outbox, router, {.queue = "orders"});
    runner.run_until_idle(); // step one is done, step two is retried later
    REQUIRE(d.entry(saga).state != state::dead);
    const auto asked = d.outbox.cancel(saga);
    CHECK((asked == verdict::applied || asked == verdict::repeated));
    CHECK(d.entry(saga).state != state::dead); // it is not killed
    runner.run_until_idle();
    CHECK(vouch::inspect(d.store, saga)->is_compensated());
    CHECK(d.outbox.cancel(saga) == verdict::stale);
}

TEST_CASE("outbox: its observers see what is emitted, run by a runner, and run by a worker") {
    desk d;
    vouch::router router(d.outbox);
    router.on("t", [](vouch::delivery& delivery) { delivery.emit({.queue = "next", .topic = "follow"}); });
    d.outbox.emit({.queue = "q", .topic = "t"});
    vouch::testing::recorder own;
    vouch::runner runner(d.outbox, router, {.queue = "q"});
    runner.observe(own);
    runner.run_once();
    CHECK(d.seen.count(event_kind::succeeded) == 1);
    CHECK(d.seen.count(event_kind::enqueued, "follow") == 1);
    CHECK(own.count(event_kind::succeeded) == 1);
    CHECK(own.count(event_kind::enqueued, "t") == 0); // emitted before, and not through the runner

    d.outbox.emit({.queue = "q", .topic = "t"});
    vouch::worker worker(d.outbox);
    worker.serve(router, {.queue = "q"});
    std::stop_source stop;
    std::jthread running([&] { worker.run(stop.get_token()); });
    while (d.store.counts("q").live() > 0) {
        std::this_thread::sleep_for(1ms);
    }
    stop.request_stop();
    running.join();
    CHECK(d.seen.count(event_kind::succeeded) == 2);
    CHECK(own.count(event_kind::succeeded) == 1); // the runner's alone
}

TEST_CASE("router: a second saga of the same name is refused") {
    desk d;
    vouch::router router(d.outbox);
    router.on(two_steps());
    CHECK(router.has_route("order"));
    CHECK(!router.has_route("invoice"));
    CHECK(kind_of([&] { router.on(two_steps()); }) == vouch::error_kind::invalid_argument);
}

} // namespace outbox_store_test
