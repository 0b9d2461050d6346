// SPDX-License-Identifier: MIT
// Passes of the runner: what they claim, how they end, and that they are deterministic.
#include <chrono>
#include <cstdint>
#include <stop_token>
#include <string>
#include <vector>

#include <vouch/testing.hpp>
#include <vouch/vouch.hpp>

#include "catch.hpp"
#include "support.hpp"

namespace run_passes_test {

using namespace support;
using vouch::delivery;
using vouch::event_kind;
using vouch::state;
using vouch::testing::sandbox;

namespace {

/// The trace of a run with failures, follow-ups, snoozes, lanes, groups and a crash, all from one seed.
std::string trace_of_run(std::uint64_t seed) {
    vouch::manual_clock clock{t0};
    const vouch::uuid7_source ids(clock, seed);
    vouch::memory::store store;
    const vouch::outbox outbox(store, {.clock = clock, .ids = ids});
    vouch::router router(outbox);
    const vouch::retry_policy jittered{.backoff = vouch::exponential{.base = 1s, .max = 1h, .jitter = 0.5}};
    const auto chance = [](const delivery& d, std::uint64_t of) { return (d.id().low ^ d.entry().epoch) % of == 0; };
    router.on(
        "work.*",
        [&](delivery& d) -> vouch::outcome {
            if (chance(d, 3)) {
                throw vouch::failure("third");
            }
            if (chance(d, 7)) {
                return vouch::release{.at = d.now() + 17s};
            }
            if (d.trail().size() < 3) {
                d.emit({.queue = "q", .topic = "work.more", .lane = "l"});
            }
            return vouch::succeed{to_string(d.id())};
        },
        jittered);
    vouch::runner runner(outbox, router, {.queue = "q", .batch_size = 3});
    vouch::testing::recorder seen;
    runner.observe(seen);
    vouch::transact(store, [&](auto& tx) {
        for (int n = 0; n < 10; ++n) {
            outbox.emit(tx, {.queue = "q", .topic = "work." + std::to_string(n), .group = "g"});
        }
    });
    std::ignore = runner.claim(); // a process that crashes right after its claim
    auto out = to_string(runner.run_until_idle(clock));
    for (const auto& e : seen.events()) {
        out += std::string(name_of(e.what)) + ' ' + to_string(e.id) + ' ' +
               std::to_string(e.at.time_since_epoch().count());
        out += '\n';
    }
    return out;
}

} // namespace

TEST_CASE("run_once: handles one batch and reports the outcome of each entry") {
    sandbox box({.batch_size = 2});
    box.on("good", [] {});
    box.on("bad", [] { throw vouch::failure("x"); });
    box.emit({.topic = "good"});
    box.emit({.topic = "bad"});
    box.emit({.topic = "good"});
    const auto first = box.run_once();
    CHECK(first.claimed == 2);
    CHECK(first.succeeded == 1);
    CHECK(first.retried == 1);
    CHECK(to_string(first) == "00000000-0000-0000-0000-000000000001 good attempt 1: succeeded\n"
                              "00000000-0000-0000-0000-000000000002 bad attempt 1: retried (x)\n");
    CHECK(box.run_once().claimed == 1);
    CHECK(box.run_once() == vouch::report{});
}

TEST_CASE("run_only: handles the given entry if it is due") {
    sandbox box;
    box.on("t", [] {});
    box.emit({.topic = "t"});
    const auto wanted = box.emit({.topic = "t"});
    const auto later = box.emit({.topic = "t", .due_in = 1s});
    CHECK(box.runner().run_only(wanted.id).succeeded == 1);
    CHECK(box.find(wanted.id)->state == state::succeeded);
    CHECK(box.runner().run_only(later.id).claimed == 0);
    CHECK(box.store().counts("test")[state::pending] == 2);
}

TEST_CASE("run_until_idle: leaves entries that are due later, or moves a manual clock to them") {
    sandbox box;
    box.on("t", [] {});
    box.emit({.topic = "t"});
    box.emit({.topic = "t", .due_in = 3h});
    CHECK(box.runner().run_until_idle().succeeded == 1);
    CHECK(box.run_until_idle().succeeded == 1);
    CHECK(box.clock()() == box.start() + 3h);
}

TEST_CASE("run_until_idle: throws misuse after passes_max passes") {
    vouch::memory::store store;
    vouch::manual_clock clock{t0};
    vouch::outbox outbox(store, {.clock = clock});
    vouch::router router(outbox);
    router.on("t", [](delivery&) { return vouch::release{}; });
    vouch::transact(store, [&](auto& tx) { outbox.emit(tx, {.queue = "q", .topic = "t"}); });
    vouch::runner runner(outbox, router, {.queue = "q", .passes_max = 100});
    CHECK(kind_of([&] { runner.run_until_idle(); }) == vouch::error_kind::misuse);
    CHECK(store.counts("q")[state::pending] == 1); // settled before the throw
}

TEST_CASE("run_until_idle: a clock that is not the outbox's is refused") {
    vouch::memory::store store;
    vouch::manual_clock clock{t0};
    vouch::outbox outbox(store, {.clock = clock});
    vouch::router router(outbox);
    outbox.emit({.queue = "q", .topic = "t", .due_in = 1h});
    vouch::runner runner(outbox, router, {.queue = "q"});
    CHECK(kind_of([&] { runner.run_until_idle(vouch::manual_clock{t0}); }) == vouch::error_kind::misuse);
}

TEST_CASE("claim: returns at most the given number of entries") {
    sandbox box;
    for (int n = 0; n < 3; ++n) {
        box.emit({.topic = "t"});
    }
    CHECK(box.runner().claim(2).size() == 2);
    CHECK(box.runner().claim(0).empty());
    CHECK(box.runner().claim().size() == 1);
}

TEST_CASE("observer: an entry whose handler is not called is not reported as started") {
    sandbox box;
    box.on("t", [] {});
    box.emit({.topic = "unhandled"});
    box.emit({.topic = "t", .expires_in = 1s});
    box.pass(1s);
    box.run_once();
    for (const auto& e : box.events()) {
        CHECK(e.what != event_kind::started);
    }
}

TEST_CASE("stop: unstarted entries are released unchanged, started ones are finished") {
    sandbox box;
    std::stop_source stop;
    int called = 0;
    box.on("t", [&] {
        ++called;
        stop.request_stop();
    });
    const auto first = box.emit({.topic = "t"});
    const auto second = box.emit({.topic = "t"});
    const auto before = box.find(second.id);
    const auto done = box.runner().run_until_idle(stop.get_token());
    CHECK(called == 1);
    CHECK(done.succeeded == 1);
    CHECK(done.released == 1);
    CHECK(box.find(first.id)->state == state::succeeded);
    const auto after = box.find(second.id);
    CHECK(after->state == state::pending);
    CHECK(after->attempts == 0);
    CHECK(after->due_at == before->due_at);
    CHECK(box.run_once().succeeded == 1);
}

TEST_CASE("observer: sees each entry claimed, started and ended, in that order") {
    sandbox box;
    box.on("t", [](delivery& d) { d.emit({.queue = "other", .topic = "follow"}); });
    box.emit({.topic = "t", .group = "g"});
    box.run_once();
    std::string seen;
    for (const auto& e : box.events()) {
        seen += std::string(name_of(e.what)) + ' ' + e.topic + '\n';
    }
    CHECK(seen == "claimed t\nstarted t\nsucceeded t\nenqueued follow\ngroup_completed t\n");
}

TEST_CASE("runner: the same seed gives the same trace, byte for byte") {
    for (const std::uint64_t seed : {1U, 2U, 3U}) {
        const auto once = trace_of_run(seed);
        CHECK(once.size() > 1000);
        CHECK(once == trace_of_run(seed));
    }
    CHECK(trace_of_run(1) != trace_of_run(2));
}

TEST_CASE("runner: options that would make every claim invalid are refused in the constructor") {
    vouch::memory::store store;
    vouch::outbox outbox(store);
    vouch::router router(outbox);
    const auto kind = [&](vouch::runner_options options) {
        return kind_of([&] { vouch::runner(outbox, router, std::move(options)); });
    };
    CHECK_FALSE(kind({.queue = "q"}));
    CHECK(kind({.queue = ""}) == vouch::error_kind::invalid_argument);
    CHECK(kind({.queue = "q", .worker = "a\nb"}) == vouch::error_kind::invalid_argument);
    CHECK(kind({.queue = "q", .batch_size = 0}) == vouch::error_kind::invalid_argument);
    CHECK(kind({.queue = "q", .batch_size = 10'001}) == vouch::error_kind::invalid_argument);
    CHECK(kind({.queue = "q", .lease = 0s}) == vouch::error_kind::invalid_argument);
}

} // namespace run_passes_test
