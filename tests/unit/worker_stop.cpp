// SPDX-License-Identifier: MIT
// The graceful stop: nothing new is claimed, what runs finishes, what has not started goes back, no attempt is spent.
#include <array>
#include <atomic>
#include <chrono>
#include <tuple>

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "worker_support.hpp"

using namespace worker_test;
using vouch::state;

namespace {

/// A queue whose first entries are quick, so that the worker looks ahead, and whose next ones wait to be let go on.
struct waiting_room {
    vouch::memory::store store{};
    vouch::outbox<vouch::memory::store> outbox{store};
    std::atomic<int> waiting = 0;
    std::atomic<bool> holds = false;
    std::atomic<bool> go_on = false;
    vouch::router<vouch::memory::store> routes{outbox};

    waiting_room() {
        routes.on("t", [this](vouch::delivery&) {
            if (holds) {
                ++waiting;
                std::ignore = comes_true([&] { return go_on.load(); });
            }
        });
    }

    /// Ten entries claimed, of which `running` have started.
    void fill(int running) {
        emit_many(store, outbox, 20, {.queue = "q", .topic = "t"});
        REQUIRE(comes_true([&] { return count_of(store, state::succeeded) == 20; }));
        holds = true;
        emit_many(store, outbox, 10, {.queue = "q", .topic = "t"});
        REQUIRE(comes_true([&] { return count_of(store, state::claimed) == 10 && waiting == running; }));
    }
};

} // namespace

TEST_CASE("stop: running handlers finish, unstarted claims go back untouched, nothing waits for a lease") {
    waiting_room room;
    vouch::worker worker(room.outbox);
    worker.serve(room.routes, {.queue = "q", .concurrency = 2, .lease = 1h});
    at_work running(worker);
    room.fill(2);
    running.ask_to_stop();
    CHECK(comes_true([&] { return count_of(room.store, state::pending) == 8; })); // before the others have finished
    emit_many(room.store, room.outbox, 1, {.queue = "q", .topic = "t"});
    room.go_on = true;
    const auto done = running.stop();
    CHECK(done.succeeded == 22);
    CHECK(done.released == 8);
    CHECK(done.claimed == 30); // not the one that came later
    CHECK(done.abandoned == 0);
    CHECK(count_of(room.store, state::claimed) == 0);
    for (const auto& e : room.store.list(vouch::query::live("q"))) {
        CHECK(e.state == state::pending);
        CHECK(e.attempts == 0);
        CHECK(e.failures == 0);
        CHECK(e.due_at <= room.outbox.now());
    }
}

TEST_CASE("stop: a handler that looks at its stop token may hand its entry back, and no attempt is spent") {
    vouch::memory::store store;
    const vouch::outbox outbox(store);
    std::atomic<bool> started = false;
    vouch::router routes(outbox);
    routes.on("t", [&](vouch::delivery& d) -> vouch::outcome {
        started = true;
        return comes_true([&] { return d.stop().stop_requested(); }) ? vouch::outcome{vouch::release{}}
                                                                     : vouch::succeed{};
    });
    const auto id = outbox.emit({.queue = "q", .topic = "t"}).front().id;
    vouch::worker worker(outbox);
    worker.serve(routes, {.queue = "q"});
    at_work running(worker);
    REQUIRE(comes_true([&] { return started.load(); }));
    CHECK(running.stop().released == 1);
    CHECK(store.find(id)->state == state::pending);
    CHECK(store.find(id)->attempts == 0);
}

TEST_CASE("stop: when its time is over the handlers that still run are left behind, and their leases heal them") {
    waiting_room room;
    vouch::testing::recorder seen;
    vouch::worker worker(room.outbox, {.stop_within = 100ms});
    worker.observe(seen);
    worker.serve(room.routes, {.queue = "q", .concurrency = 2, .lease = 300ms});
    {
        at_work running(worker);
        room.fill(2);
        const auto start = ticking::now();
        const auto done = running.stop();
        CHECK(ticking::now() - start >= 100ms);
        CHECK(ticking::now() - start < 5s);
        CHECK(done.abandoned == 2);
        CHECK(done.released == 8);
        CHECK(seen.count(vouch::event_kind::unsettled) == 2);
    }
    CHECK(count_of(room.store, state::claimed) == 2);
    CHECK(count_of(room.store, state::pending) == 8);
    room.go_on = true; // they finish now, and nobody listens
    at_work again(worker);
    CHECK(comes_true([&] { return count_of(room.store, state::succeeded) == 30; }));
    CHECK(again.stop().succeeded == 10);
}

TEST_CASE("stop: with no time at all unstarted claims still go back") {
    waiting_room room;
    vouch::worker worker(room.outbox, {.stop_within = 0ms});
    worker.serve(room.routes, {.queue = "q", .lease = 1h});
    at_work running(worker);
    room.fill(1);
    const auto done = running.stop();
    CHECK(done.abandoned == 1);
    CHECK(done.released == 9);
    CHECK(count_of(room.store, state::pending) == 9);
    room.go_on = true;
}

TEST_CASE("stop: requested before it began, nothing is claimed; and observers are flushed") {
    struct counting {
        std::atomic<int> flushed = 0;
        void on(const vouch::event&) noexcept {}
        void flush() noexcept { ++flushed; }
    };
    vouch::memory::store store;
    const vouch::outbox outbox(store);
    counting seen;
    const vouch::router routes(outbox);
    outbox.emit({.queue = "q", .topic = "t"});
    vouch::worker worker(outbox);
    worker.serve(routes, {.queue = "q"});
    worker.observe(seen);
    std::stop_source stop;
    stop.request_stop();
    CHECK(worker.run(stop.get_token()) == vouch::worker_report{});
    CHECK(count_of(store, state::pending) == 1);
    CHECK(seen.flushed == 1);
}

TEST_CASE("stop: the first signal requests a stop, and then the system's default is back") {
    struct sigaction before {};
    sigaction(SIGTERM, nullptr, &before);
    {
        const vouch::stop_signals signals;
        CHECK(support::kind_of([] { const vouch::stop_signals second; }) == vouch::error_kind::misuse);
        CHECK_FALSE(signals.token().stop_requested());
        raise(SIGTERM);
        CHECK(comes_true([&] { return signals.token().stop_requested(); }));
        for (const int s : {SIGINT, SIGTERM}) {
            struct sigaction now {};
            sigaction(s, nullptr, &now);
            CHECK(now.sa_handler == SIG_DFL);
        }
    }
    struct sigaction after {};
    sigaction(SIGTERM, nullptr, &after);
    CHECK(after.sa_handler == before.sa_handler);
    const vouch::stop_signals another;
    CHECK_FALSE(another.token().stop_requested());
}

TEST_CASE("stop: a signal handled after its object is gone writes to no other file, and stops no later object") {
    struct sigaction ours {};
    {
        const vouch::stop_signals signals;
        sigaction(SIGTERM, nullptr, &ours);
    }
    std::array<int, 2> others{}; // would get the numbers of descriptors that were closed
    REQUIRE(pipe2(others.data(), O_NONBLOCK) == 0);
    struct sigaction before {};
    sigaction(SIGTERM, nullptr, &before);
    ours.sa_handler(SIGTERM); // as on a thread that was interrupted in the handler and goes on only now
    sigaction(SIGTERM, &before, nullptr);
    sigaction(SIGINT, &before, nullptr);
    char got = 0;
    CHECK(read(others[0], &got, 1) == -1); // nothing was written there
    close(others[0]);
    close(others[1]);
    const vouch::stop_signals later;
    std::this_thread::sleep_for(20ms);
    CHECK_FALSE(later.token().stop_requested());
}
