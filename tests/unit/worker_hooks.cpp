// SPDX-License-Identifier: MIT
// Hooks, records and lapsed entries of a worker: what fails for one entry does not stop the others.
#include <atomic>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>

#include "worker_troubled.hpp"

using namespace worker_test;

TEST_CASE("audit: while a worker's sink fails outcomes are kept past their leases, and no handler is called twice") {
    troubled t({.queue = "q", .batch_size = 10, .lease = 60ms});
    std::atomic<int> lines = 0;
    std::atomic<bool> down = true;
    t.worker.audit([&](tripped_transaction&, const vouch::audit_line&) {
        if (down) {
            throw std::runtime_error("no ink");
        }
        ++lines;
    });
    t.emit(40);
    at_work running(t.worker);
    REQUIRE(comes_true([&] { return t.calls >= 10; }));
    std::this_thread::sleep_for(400ms); // several leases
    const int kept = t.calls;
    CHECK(kept < 40); // it does not go on as if nothing were wrong
    CHECK(t.seen.count(event_kind::hook_failed) == static_cast<std::size_t>(kept));
    down = false;
    CHECK(t.all_succeeded(40));
    const auto done = running.stop();
    CHECK(done.unsettled + done.stale + done.lost == 0);
    CHECK(lines == 40);
    CHECK(t.calls == 40);
    CHECK(t.store.counts("effects").total() == 40);
}

TEST_CASE("hooks: one that always fails for one group does not stop a worker with one thread") {
    troubled t;
    t.worker.on_group_complete(
        [&](tripped_transaction&, const std::string&, const vouch::entry&) { throw std::runtime_error("never"); });
    t.outbox.emit({.queue = "q", .topic = "t", .group = "g"});
    at_work running(t.worker);
    REQUIRE(comes_true([&] { return t.seen.count(event_kind::hook_failed) == 1; }));
    t.emit(20);
    CHECK(t.all_succeeded(20));
    const auto done = running.stop();
    CHECK(done.unsettled == 1); // given up at the stop; its lease heals it
    CHECK(t.calls == 21);
}

TEST_CASE("hooks: while one fails at a stop, the leases of running handlers are extended all the same") {
    troubled t({.queue = "q", .concurrency = 2, .lease = 150ms});
    std::atomic<bool> may_end = false;
    std::atomic<bool> is_running = false;
    t.routes.on("slow", [&](vouch::delivery&) {
        is_running = true;
        std::ignore = comes_true([&] { return may_end.load(); });
    });
    t.worker.audit([](tripped_transaction&, const vouch::audit_line& line) {
        if (line.topic == "t") {
            throw std::runtime_error("never");
        }
    });
    const auto slow = t.outbox.emit({.queue = "q", .topic = "slow"}).front().id;
    t.emit(1);
    at_work running(t.worker);
    REQUIRE(comes_true([&] { return is_running && t.seen.count(event_kind::hook_failed) == 1; }));
    running.ask_to_stop();
    const auto lease = *t.store.find(slow)->lease_until;
    CHECK(comes_true([&] { return *t.store.find(slow)->lease_until > lease + 450ms; }));
    may_end = true;
    const auto done = running.stop();
    CHECK(done.succeeded == 1);
    CHECK(done.unsettled == 1);
    CHECK(t.store.find(slow)->epoch == 1);
}

TEST_CASE(
    "isolation: a lapsed entry whose outcome is held up, or that hangs, does not stop the other queues for good") {
    troubled t({.queue = "q"});
    t.worker.serve(t.routes, {.queue = "r"});
    t.worker.audit([](tripped_transaction&, const vouch::audit_line& line) {
        if (line.queue == "q") {
            throw std::runtime_error("never");
        }
    });
    t.emit(1);
    const auto now = t.outbox.now();
    REQUIRE(vouch::claim(t.store.plain(), {.queue = "q", .now = now - 1h, .lease = 1us}).empty());
    REQUIRE(vouch::claim(t.store.plain(), {.queue = "q", .now = now, .lease = 1us}).size() == 1); // and dies
    at_work running(t.worker);
    REQUIRE(comes_true([&] { return t.seen.count(event_kind::hook_failed) == 1; }));
    emit_many(t.store.plain(), t.outbox, 50, {.queue = "r", .topic = "t"});
    CHECK(comes_true([&] { return count_of(t.store, state::succeeded, "r") == 50; }));
}

TEST_CASE("record: a worker keeps an outcome whose record the store's fault stops, and settles it later") {
    struct recording_faults {
        std::atomic<int>* faults;
        std::atomic<int>* worked;
        void work(vouch::delivery&) { ++*worked; }
        void record(tripped_transaction&) {
            if (--*faults >= 0) {
                throw vouch::error(error_kind::full, "planned");
            }
        }
    };
    troubled t({.queue = "q", .retry = {.attempts_max = 1}});
    std::atomic<int> faults = 6;
    std::atomic<int> worked = 0;
    t.routes.on("records", recording_faults{&faults, &worked});
    t.outbox.emit({.queue = "q", .topic = "records"});
    at_work running(t.worker);
    CHECK(t.all_succeeded(1));
    CHECK(worked == 1);
}

TEST_CASE(
    "record: what follows from a failed one is decided by a handling thread, not by the one that extends leases") {
    struct turning {
        std::atomic<int>* strangers;
        std::shared_ptr<std::thread::id> worked_on = std::make_shared<std::thread::id>();
        void work(vouch::delivery&) { *worked_on = std::this_thread::get_id(); }
        void record(tripped_transaction&) { throw vouch::failure("constraint"); }
        vouch::outcome ended(vouch::delivery&, vouch::ending) {
            *strangers += *worked_on == std::this_thread::get_id() ? 0 : 1;
            return vouch::succeed{};
        }
    };
    troubled t({.queue = "q", .retry = {.attempts_max = 1}});
    std::atomic<int> strangers = 0;
    t.routes.on("turns", turning{&strangers});
    t.outbox.emit({.queue = "q", .topic = "turns"});
    at_work running(t.worker);
    CHECK(t.all_succeeded(1));
    CHECK(strangers == 0); // one thread handles
}
