// SPDX-License-Identifier: MIT
// A store that fails: transient errors are retried, commits in doubt are resolved, permanent errors stop the worker.
#include <array>
#include <atomic>
#include <deque>
#include <functional>
#include <stdexcept>
#include <string>
#include <tuple>

#include "worker_fixture.hpp"

using namespace worker_test;

TEST_CASE("store errors: transient errors are retried with growing delays, and each is reported") {
    for (const auto kind : {error_kind::io, error_kind::busy, error_kind::full}) {
        worker_fixture f;
        f.emit(5);
        const failure_plan plan(f.store.hooks(), std::deque<fault>(6, fault::begin_fails), kind);
        const auto start = steady_clock::now();
        running_worker running(f.worker);
        CHECK(f.all_succeeded(5));
        CHECK(steady_clock::now() - start >= 40ms); // 1 + 2 + 4 + 8 + 16 + 20, less the jitter
        CHECK(running.stop().store_errors == 6);
        CHECK(f.calls == 5);
        CHECK(f.seen.count(event_kind::store_error) == 6);
        for (const auto& e : f.seen.events()) {
            if (e.what == event_kind::store_error) {
                CHECK(e.error == name_of(kind));
                CHECK(e.queue == "q");
            }
        }
    }
}

TEST_CASE("store errors: while the store fails, a handler's outcome is kept and settled later") {
    worker_fixture f;
    f.emit(1);
    const failure_plan plan(f.store.hooks(), {fault::none, fault::begin_fails, fault::begin_fails, fault::begin_fails});
    running_worker running(f.worker);
    CHECK(f.all_succeeded(1));
    const auto done = running.stop();
    CHECK(f.calls == 1);
    CHECK(done.succeeded == 1);
    CHECK(done.store_errors == 3);
}

TEST_CASE("in doubt: a worker's claim is discarded, and the entry is claimed again, after its lease if necessary") {
    for (const auto what : {fault::rolled_back_in_doubt, fault::committed_in_doubt}) {
        const bool committed = what == fault::committed_in_doubt;
        worker_fixture f({.queue = "q", .lease = 300ms});
        f.emit(1);
        const failure_plan plan(f.store.hooks(), {what});
        const auto start = steady_clock::now();
        running_worker running(f.worker);
        CHECK(f.all_succeeded(1));
        CHECK(f.calls == 1);
        const auto e = f.store.list(vouch::query::all("q")).front();
        CHECK(e.epoch == (committed ? 3U : 1U)); // the discarded claim, one that handed it back, and one alone
        if (committed) {
            CHECK(steady_clock::now() - start >= 295ms);
        }
        CHECK(running.stop().claimed == 1);
    }
}

TEST_CASE("in doubt: a worker's settle is repeated with the same ticket, and its effects are stored once") {
    for (const auto what : {fault::rolled_back_in_doubt, fault::committed_in_doubt}) {
        worker_fixture f;
        f.emit(1);
        const failure_plan plan(f.store.hooks(), {fault::none, what});
        running_worker running(f.worker);
        CHECK(f.all_succeeded(1));
        const auto done = running.stop();
        CHECK(plan.is_over());
        CHECK(f.calls == 1);
        CHECK(done.succeeded == 1);
        CHECK(done.stale == 0);
        CHECK(f.store.counts("effects").total() == 1);
    }
}

TEST_CASE("store errors: a permanent error stops the worker cleanly, and run throws it") {
    for (const auto kind : {error_kind::read_only, error_kind::corrupt, error_kind::misuse, error_kind::unsupported}) {
        worker_fixture f;
        f.emit(3);
        const failure_plan plan(f.store.hooks(), {fault::begin_fails}, kind);
        running_worker running(f.worker);
        const auto thrown = support::error_of([&] { running.wait(); });
        REQUIRE(thrown);
        CHECK(thrown->kind() == kind);
        CHECK(f.calls == 0);
        CHECK(count_of(f.store, state::pending) == 3);
    }
    for (const auto kind : {error_kind::read_only, error_kind::corrupt}) {
        worker_fixture f;
        f.emit(3);
        // The claim of one entry succeeds; its settle, with the next claim, fails; later transactions succeed.
        const failure_plan plan(f.store.hooks(), {fault::none, fault::begin_fails}, kind);
        running_worker running(f.worker);
        const auto thrown = support::error_of([&] { running.wait(); });
        REQUIRE(thrown);
        CHECK(thrown->kind() == kind);
        CHECK(f.seen.count(event_kind::store_error) == 1);
        CHECK(count_of(f.store, state::claimed) == 0); // held claims were settled before run returned
        CHECK(count_of(f.store, state::succeeded) == 1);
        CHECK(f.calls == 1);

        running_worker again(f.worker); // the worker can run again
        CHECK(f.all_succeeded(3));
        CHECK(again.stop().succeeded == 2);
    }
}

TEST_CASE("store errors: a stop does not wait for a store that keeps failing") {
    worker_fixture f;
    std::atomic<bool> broken = false;
    f.store.hooks().at_begin = [&] {
        if (broken) {
            throw vouch::error(error_kind::full, "planned");
        }
    };
    f.routes.on("breaks", [&](vouch::delivery&) { broken = true; });
    f.outbox.emit({.queue = "q", .topic = "breaks"});
    running_worker running(f.worker);
    REQUIRE(eventually([&] { return f.seen.count(event_kind::store_error) >= 3; }));
    const auto done = running.stop();
    CHECK(done.unsettled == 1);
    CHECK(count_of(f.store, state::claimed) == 1); // another worker can claim it after its lease
}

TEST_CASE("store errors: an exception other than vouch::error stops the worker") {
    worker_fixture f;
    f.emit(1);
    f.store.hooks().at_begin = [&] { throw std::runtime_error("other"); };
    running_worker running(f.worker);
    CHECK_THROWS_AS(running.wait(), std::runtime_error);
    CHECK(count_of(f.store, state::pending) == 1);
}

TEST_CASE("store errors: a stop keeps trying to settle while a handler runs, however long the store fails") {
    worker_fixture f({.queue = "q", .concurrency = 2});
    std::atomic<bool> broken = false;
    std::atomic<bool> may_end = false;
    std::atomic<bool> is_running = false;
    f.store.hooks().at_begin = [&] {
        if (broken) {
            throw vouch::error(error_kind::full, "planned");
        }
    };
    f.routes.on("slow", [&](vouch::delivery&) {
        is_running = true;
        std::ignore = eventually([&] { return may_end.load(); });
    });
    f.routes.on("breaks", [&](vouch::delivery&) {
        std::ignore = eventually([&] { return is_running.load(); });
        broken = true;
    });
    f.outbox.emit({.queue = "q", .topic = "slow"});
    f.outbox.emit({.queue = "q", .topic = "breaks"});
    running_worker running(f.worker);
    REQUIRE(eventually([&] { return broken.load(); }));
    running.request_stop();
    // More failed tries than `stop_tries`.
    REQUIRE(eventually([&] { return f.seen.count(event_kind::store_error) >= 20; }));
    broken = false;
    CHECK(eventually([&] { return count_of(f.store, state::succeeded) == 1; })); // while the other handler still runs
    may_end = true;
    const auto done = running.stop();
    CHECK(done.succeeded == 2);
    CHECK(done.unsettled == 0);
}

TEST_CASE("store errors: a stored outcome is never reported as unsettled") {
    worker_fixture f({.queue = "q", .batch_size = 2});
    std::atomic<bool> broken = false;
    f.store.hooks().at_commit = [&](const std::function<void()>& commit) {
        if (broken) {
            throw vouch::error(error_kind::full, "planned");
        }
        commit();
        broken = f.calls == 2; // the settle is committed, and nothing after it will be
    };
    f.emit(2);
    running_worker running(f.worker);
    REQUIRE(eventually([&] { return broken.load(); }));
    const auto done = running.stop();
    CHECK(done.succeeded == count_of(f.store, state::succeeded));
    CHECK(done.unsettled == 2 - done.succeeded);
}
