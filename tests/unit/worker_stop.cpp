// SPDX-License-Identifier: MIT
// The graceful stop: no new claim, running handlers finish, unstarted entries are released, and no attempt is spent.
#include <array>
#include <atomic>
#include <chrono>
#include <tuple>

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "worker_support.hpp"

namespace worker_stop_test {

using namespace worker_test;
using vouch::state;

namespace {

/// A queue whose first entries are quick, so that the worker looks ahead. The handlers of later ones block until
/// `may_finish` is set.
struct stop_fixture {
    vouch::memory::store store{};
    vouch::outbox<vouch::memory::store> outbox{store};
    std::atomic<int> blocked = 0;
    std::atomic<bool> blocks = false;
    std::atomic<bool> may_finish = false;
    vouch::router<vouch::memory::store> routes{outbox};

    stop_fixture() {
        routes.on("t", [this](vouch::delivery&) {
            if (blocks) {
                ++blocked;
                std::ignore = eventually([&] { return may_finish.load(); });
            }
        });
    }

    /// Waits until ten entries are claimed, of which `running` have started.
    void fill(int running) {
        emit_many(store, outbox, 20, {.queue = "q", .topic = "t"});
        REQUIRE(eventually([&] { return count_of(store, state::succeeded) == 20; }));
        blocks = true;
        emit_many(store, outbox, 10, {.queue = "q", .topic = "t"});
        REQUIRE(eventually([&] { return count_of(store, state::claimed) == 10 && blocked == running; }));
    }
};

} // namespace

TEST_CASE("stop: running handlers finish, unstarted claims are released unchanged, and nothing waits for a lease") {
    stop_fixture f;
    vouch::worker worker(f.outbox);
    worker.serve(f.routes, {.queue = "q", .concurrency = 2, .lease = 1h});
    running_worker running(worker);
    f.fill(2);
    running.request_stop();
    CHECK(eventually([&] { return count_of(f.store, state::pending) == 8; })); // before the running ones have finished
    emit_many(f.store, f.outbox, 1, {.queue = "q", .topic = "t"});
    f.may_finish = true;
    const auto done = running.stop();
    CHECK(done.succeeded == 22);
    CHECK(done.released == 8);
    CHECK(done.claimed == 30); // not the one emitted later
    CHECK(done.abandoned == 0);
    CHECK(count_of(f.store, state::claimed) == 0);
    for (const auto& e : f.store.list(vouch::query::live("q"))) {
        CHECK(e.state == state::pending);
        CHECK(e.attempts == 0);
        CHECK(e.failures == 0);
        CHECK(e.due_at <= f.outbox.now());
    }
}

TEST_CASE("stop: a handler can check its stop token and release its entry, which costs no attempt") {
    vouch::memory::store store;
    const vouch::outbox outbox(store);
    std::atomic<bool> started = false;
    vouch::router routes(outbox);
    routes.on("t", [&](vouch::delivery& d) -> vouch::outcome {
        started = true;
        return eventually([&] { return d.stop().stop_requested(); }) ? vouch::outcome{vouch::release{}}
                                                                     : vouch::succeed{};
    });
    const auto id = outbox.emit({.queue = "q", .topic = "t"}).front().id;
    vouch::worker worker(outbox);
    worker.serve(routes, {.queue = "q"});
    running_worker running(worker);
    REQUIRE(eventually([&] { return started.load(); }));
    CHECK(running.stop().released == 1);
    CHECK(store.find(id)->state == state::pending);
    CHECK(store.find(id)->attempts == 0);
}

TEST_CASE(
    "stop: handlers that run longer than stop_within are abandoned, and their entries are claimed after the lease") {
    stop_fixture f;
    vouch::testing::recorder seen;
    vouch::worker worker(f.outbox, {.stop_within = 100ms});
    worker.observe(seen);
    worker.serve(f.routes, {.queue = "q", .concurrency = 2, .lease = 300ms});
    {
        running_worker running(worker);
        f.fill(2);
        const auto start = steady_clock::now();
        const auto done = running.stop();
        CHECK(steady_clock::now() - start >= 100ms);
        CHECK(steady_clock::now() - start < 5s);
        CHECK(done.abandoned == 2);
        CHECK(done.released == 8);
        CHECK(seen.count(vouch::event_kind::unsettled) == 2);
    }
    CHECK(count_of(f.store, state::claimed) == 2);
    CHECK(count_of(f.store, state::pending) == 8);
    f.may_finish = true; // they finish now, and their outcomes are dropped
    running_worker again(worker);
    CHECK(eventually([&] { return count_of(f.store, state::succeeded) == 30; }));
    CHECK(again.stop().succeeded == 10);
}

TEST_CASE("stop: unstarted claims are released even if stop_within is 0") {
    stop_fixture f;
    vouch::worker worker(f.outbox, {.stop_within = 0ms});
    worker.serve(f.routes, {.queue = "q", .lease = 1h});
    running_worker running(worker);
    f.fill(1);
    const auto done = running.stop();
    CHECK(done.abandoned == 1);
    CHECK(done.released == 9);
    CHECK(count_of(f.store, state::pending) == 9);
    f.may_finish = true;
}

TEST_CASE("stop: after a stop request before the run nothing is claimed, and observers are flushed") {
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

TEST_CASE("stop: the first signal requests a stop and restores the default action") {
    struct sigaction before {};
    sigaction(SIGTERM, nullptr, &before);
    {
        const vouch::stop_signals signals;
        CHECK(support::kind_of([] { const vouch::stop_signals second; }) == vouch::error_kind::misuse);
        CHECK_FALSE(signals.token().stop_requested());
        raise(SIGTERM);
        CHECK(eventually([&] { return signals.token().stop_requested(); }));
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

TEST_CASE("stop: a signal handled after its object is destroyed writes to no other file and stops no later object") {
    struct sigaction ours {};
    {
        const vouch::stop_signals signals;
        sigaction(SIGTERM, nullptr, &ours);
    }
    std::array<int, 2> others{}; // would get the numbers of closed descriptors
    REQUIRE(pipe2(others.data(), O_NONBLOCK) == 0);
    struct sigaction before {};
    sigaction(SIGTERM, nullptr, &before);
    ours.sa_handler(SIGTERM); // as on a thread that was interrupted in the handler and continues now
    sigaction(SIGTERM, &before, nullptr);
    sigaction(SIGINT, &before, nullptr);
    char got = 0;
    CHECK(read(others[0], &got, 1) == -1); // nothing was written
    close(others[0]);
    close(others[1]);
    const vouch::stop_signals later;
    std::this_thread::sleep_for(20ms);
    CHECK_FALSE(later.token().stop_requested());
}

} // namespace worker_stop_test
