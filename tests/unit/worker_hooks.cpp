// SPDX-License-Identifier: MIT
// Hooks, records and lapsed entries of a worker: a failure for one entry does not stop the others.
#include <atomic>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>

#include "worker_fixture.hpp"

using namespace worker_test;

TEST_CASE("audit: while a worker's sink fails, outcomes are kept past their leases and no handler is called twice") {
    worker_fixture f({.queue = "q", .batch_size = 10, .lease = 60ms});
    std::atomic<int> lines = 0;
    std::atomic<bool> down = true;
    f.worker.audit([&](faulty_transaction&, const vouch::audit_line&) {
        if (down) {
            throw std::runtime_error("unavailable");
        }
        ++lines;
    });
    f.emit(40);
    running_worker running(f.worker);
    REQUIRE(eventually([&] { return f.calls >= 10; }));
    std::this_thread::sleep_for(400ms); // several leases
    const int kept = f.calls;
    CHECK(kept < 40); // it does not keep claiming
    CHECK(f.seen.count(event_kind::hook_failed) == static_cast<std::size_t>(kept));
    down = false;
    CHECK(f.all_succeeded(40));
    const auto done = running.stop();
    CHECK(done.unsettled + done.stale + done.lost == 0);
    CHECK(lines == 40);
    CHECK(f.calls == 40);
    CHECK(f.store.counts("effects").total() == 40);
}

TEST_CASE("hooks: a callback that always fails for one group does not stop a worker with one thread") {
    worker_fixture f;
    f.worker.on_group_complete(
        [&](faulty_transaction&, const std::string&, const vouch::entry&) { throw std::runtime_error("never"); });
    f.outbox.emit({.queue = "q", .topic = "t", .group = "g"});
    running_worker running(f.worker);
    REQUIRE(eventually([&] { return f.seen.count(event_kind::hook_failed) == 1; }));
    f.emit(20);
    CHECK(f.all_succeeded(20));
    const auto done = running.stop();
    CHECK(done.unsettled == 1); // dropped at the stop; another worker claims it after its lease
    CHECK(f.calls == 21);
}

TEST_CASE("hooks: the leases of running handlers are extended during a stop, even while a hook fails") {
    worker_fixture f({.queue = "q", .concurrency = 2, .lease = 150ms});
    std::atomic<bool> may_end = false;
    std::atomic<bool> is_running = false;
    f.routes.on("slow", [&](vouch::delivery&) {
        is_running = true;
        std::ignore = eventually([&] { return may_end.load(); });
    });
    f.worker.audit([](faulty_transaction&, const vouch::audit_line& line) {
        if (line.topic == "t") {
            throw std::runtime_error("never");
        }
    });
    const auto slow = f.outbox.emit({.queue = "q", .topic = "slow"}).front().id;
    f.emit(1);
    running_worker running(f.worker);
    REQUIRE(eventually([&] { return is_running && f.seen.count(event_kind::hook_failed) == 1; }));
    running.request_stop();
    const auto lease = *f.store.find(slow)->lease_until;
    CHECK(eventually([&] { return *f.store.find(slow)->lease_until > lease + 450ms; }));
    may_end = true;
    const auto done = running.stop();
    CHECK(done.succeeded == 1);
    CHECK(done.unsettled == 1);
    CHECK(f.store.find(slow)->epoch == 1);
}

TEST_CASE("isolation: a lapsed entry whose outcome is held up does not stop the other queues for good") {
    worker_fixture f({.queue = "q"});
    f.worker.serve(f.routes, {.queue = "r"});
    f.worker.audit([](faulty_transaction&, const vouch::audit_line& line) {
        if (line.queue == "q") {
            throw std::runtime_error("never");
        }
    });
    f.emit(1);
    const auto now = f.outbox.now();
    REQUIRE(vouch::claim(f.store.plain(), {.queue = "q", .now = now - 1h, .lease = 1us}).empty());
    // The entry is claimed once by a process that crashes.
    REQUIRE(vouch::claim(f.store.plain(), {.queue = "q", .now = now, .lease = 1us}).size() == 1);
    running_worker running(f.worker);
    REQUIRE(eventually([&] { return f.seen.count(event_kind::hook_failed) == 1; }));
    emit_many(f.store.plain(), f.outbox, 50, {.queue = "r", .topic = "t"});
    CHECK(eventually([&] { return count_of(f.store, state::succeeded, "r") == 50; }));
}

TEST_CASE("record: a worker keeps an outcome whose record fails with a store error, and settles it later") {
    struct recording_faults {
        std::atomic<int>* faults;
        std::atomic<int>* worked;
        void work(vouch::delivery&) { ++*worked; }
        void record(faulty_transaction&) {
            if (--*faults >= 0) {
                throw vouch::error(error_kind::full, "planned");
            }
        }
    };
    worker_fixture f({.queue = "q", .retry = {.attempts_max = 1}});
    std::atomic<int> faults = 6;
    std::atomic<int> worked = 0;
    f.routes.on("records", recording_faults{&faults, &worked});
    f.outbox.emit({.queue = "q", .topic = "records"});
    running_worker running(f.worker);
    CHECK(f.all_succeeded(1));
    CHECK(worked == 1);
}

TEST_CASE("record: `ended` after a failed record runs on a handler thread, not on the one that extends leases") {
    struct turning {
        std::atomic<int>* calls_elsewhere;
        std::shared_ptr<std::thread::id> worked_on = std::make_shared<std::thread::id>();
        void work(vouch::delivery&) { *worked_on = std::this_thread::get_id(); }
        void record(faulty_transaction&) { throw vouch::failure("constraint"); }
        vouch::outcome ended(vouch::delivery&, vouch::ending) {
            *calls_elsewhere += *worked_on == std::this_thread::get_id() ? 0 : 1;
            return vouch::succeed{};
        }
    };
    worker_fixture f({.queue = "q", .retry = {.attempts_max = 1}});
    std::atomic<int> calls_elsewhere = 0;
    f.routes.on("turns", turning{&calls_elsewhere});
    f.outbox.emit({.queue = "q", .topic = "turns"});
    running_worker running(f.worker);
    CHECK(f.all_succeeded(1));
    CHECK(calls_elsewhere == 0); // there is one handler thread
}
