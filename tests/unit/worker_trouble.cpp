// SPDX-License-Identifier: MIT
// A store that fails: transient errors are outlasted, commits in doubt are resolved, permanent errors stop the worker.
#include <array>
#include <atomic>
#include <deque>
#include <functional>
#include <stdexcept>
#include <string>
#include <tuple>

#include "worker_troubled.hpp"

using namespace worker_test;

TEST_CASE("store errors: transient ones are retried with growing waits, and each is reported") {
    for (const auto kind : {error_kind::io, error_kind::busy, error_kind::full}) {
        troubled t;
        t.emit(5);
        const bad_luck luck(t.store.wire(), std::deque<fate>(6, fate::begin_fails), kind);
        const auto start = ticking::now();
        at_work running(t.worker);
        CHECK(t.all_succeeded(5));
        CHECK(ticking::now() - start >= 40ms); // 1 + 2 + 4 + 8 + 16 + 20, some of which jitter may take off
        CHECK(running.stop().store_errors == 6);
        CHECK(t.calls == 5);
        CHECK(t.seen.count(event_kind::store_error) == 6);
        for (const auto& e : t.seen.events()) {
            if (e.what == event_kind::store_error) {
                CHECK(e.error == name_of(kind));
                CHECK(e.queue == "q");
            }
        }
    }
}

TEST_CASE("store errors: while the store fails, a handler's outcome is kept and settled later") {
    troubled t;
    t.emit(1);
    const bad_luck luck(t.store.wire(), {fate::fine, fate::begin_fails, fate::begin_fails, fate::begin_fails});
    at_work running(t.worker);
    CHECK(t.all_succeeded(1));
    const auto done = running.stop();
    CHECK(t.calls == 1);
    CHECK(done.succeeded == 1);
    CHECK(done.store_errors == 3);
}

TEST_CASE("in doubt: a worker's claim is forgotten, whether it landed or not, and the lease heals it") {
    for (const auto what : {fate::lost_in_doubt, fate::landed_in_doubt}) {
        const bool landed = what == fate::landed_in_doubt;
        troubled t({.queue = "q", .lease = 300ms});
        t.emit(1);
        const bad_luck luck(t.store.wire(), {what});
        const auto start = ticking::now();
        at_work running(t.worker);
        CHECK(t.all_succeeded(1));
        CHECK(t.calls == 1);
        const auto e = t.store.list(vouch::query::all("q")).front();
        CHECK(e.epoch == (landed ? 3U : 1U)); // the forgotten one, one that handed it back, and the one alone
        if (landed) {
            CHECK(ticking::now() - start >= 295ms);
        }
        CHECK(running.stop().claimed == 1);
    }
}

TEST_CASE("in doubt: a worker's settle is repeated under the same ticket, and its effects land once") {
    for (const auto what : {fate::lost_in_doubt, fate::landed_in_doubt}) {
        troubled t;
        t.emit(1);
        const bad_luck luck(t.store.wire(), {fate::fine, what});
        at_work running(t.worker);
        CHECK(t.all_succeeded(1));
        const auto done = running.stop();
        CHECK(luck.is_over());
        CHECK(t.calls == 1);
        CHECK(done.succeeded == 1);
        CHECK(done.stale == 0);
        CHECK(t.store.counts("effects").total() == 1);
    }
}

TEST_CASE("store errors: one that no repeat can cure stops the worker cleanly, and run throws it") {
    for (const auto kind : {error_kind::read_only, error_kind::corrupt, error_kind::misuse, error_kind::unsupported}) {
        troubled t;
        t.emit(3);
        const bad_luck luck(t.store.wire(), {fate::begin_fails}, kind);
        at_work running(t.worker);
        const auto thrown = support::error_of([&] { running.wait(); });
        REQUIRE(thrown);
        CHECK(thrown->kind() == kind);
        CHECK(t.calls == 0);
        CHECK(count_of(t.store, state::pending) == 3);
    }
    for (const auto kind : {error_kind::read_only, error_kind::corrupt}) {
        troubled t;
        t.emit(3);
        // The claim of one goes well; its settle, with the next claim, does not; then the store is in order again.
        const bad_luck luck(t.store.wire(), {fate::fine, fate::begin_fails}, kind);
        at_work running(t.worker);
        const auto thrown = support::error_of([&] { running.wait(); });
        REQUIRE(thrown);
        CHECK(thrown->kind() == kind);
        CHECK(t.seen.count(event_kind::store_error) == 1);
        CHECK(count_of(t.store, state::claimed) == 0); // what was in hand was settled on the way out
        CHECK(count_of(t.store, state::succeeded) == 1);
        CHECK(t.calls == 1);

        at_work again(t.worker); // and it may be run again
        CHECK(t.all_succeeded(3));
        CHECK(again.stop().succeeded == 2);
    }
}

TEST_CASE("store errors: a stop does not wait for a store that fails for good") {
    troubled t;
    std::atomic<bool> broken = false;
    t.store.wire().at_begin = [&] {
        if (broken) {
            throw vouch::error(error_kind::full, "planned");
        }
    };
    t.routes.on("breaks", [&](vouch::delivery&) { broken = true; });
    t.outbox.emit({.queue = "q", .topic = "breaks"});
    at_work running(t.worker);
    REQUIRE(comes_true([&] { return t.seen.count(event_kind::store_error) >= 3; }));
    const auto done = running.stop();
    CHECK(done.unsettled == 1);
    CHECK(count_of(t.store, state::claimed) == 1); // its lease heals it
}

TEST_CASE("store errors: an exception of somebody else's stops the worker, too") {
    troubled t;
    t.emit(1);
    t.store.wire().at_begin = [&] { throw std::runtime_error("not ours"); };
    at_work running(t.worker);
    CHECK_THROWS_AS(running.wait(), std::runtime_error);
    CHECK(count_of(t.store, state::pending) == 1);
}

TEST_CASE("store errors: a stop goes on trying while a handler runs, however long the store fails") {
    troubled t({.queue = "q", .concurrency = 2});
    std::atomic<bool> broken = false;
    std::atomic<bool> may_end = false;
    std::atomic<bool> is_running = false;
    t.store.wire().at_begin = [&] {
        if (broken) {
            throw vouch::error(error_kind::full, "planned");
        }
    };
    t.routes.on("slow", [&](vouch::delivery&) {
        is_running = true;
        std::ignore = comes_true([&] { return may_end.load(); });
    });
    t.routes.on("breaks", [&](vouch::delivery&) {
        std::ignore = comes_true([&] { return is_running.load(); });
        broken = true;
    });
    t.outbox.emit({.queue = "q", .topic = "slow"});
    t.outbox.emit({.queue = "q", .topic = "breaks"});
    at_work running(t.worker);
    REQUIRE(comes_true([&] { return broken.load(); }));
    running.ask_to_stop();
    // More tries than `stop_tries`, all in vain.
    REQUIRE(comes_true([&] { return t.seen.count(event_kind::store_error) >= 20; }));
    broken = false;
    CHECK(comes_true([&] { return count_of(t.store, state::succeeded) == 1; })); // while the other still runs
    may_end = true;
    const auto done = running.stop();
    CHECK(done.succeeded == 2);
    CHECK(done.unsettled == 0);
}

TEST_CASE("store errors: an outcome that has landed is never reported as unsettled") {
    troubled t({.queue = "q", .batch_size = 2});
    std::atomic<bool> broken = false;
    t.store.wire().at_commit = [&](const std::function<void()>& commit) {
        if (broken) {
            throw vouch::error(error_kind::full, "planned");
        }
        commit();
        broken = t.calls == 2; // the settle has landed, and nothing after it will
    };
    t.emit(2);
    at_work running(t.worker);
    REQUIRE(comes_true([&] { return broken.load(); }));
    const auto done = running.stop();
    CHECK(done.succeeded == count_of(t.store, state::succeeded));
    CHECK(done.unsettled == 2 - done.succeeded);
}
