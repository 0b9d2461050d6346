// SPDX-License-Identifier: MIT
// Audit sinks and group callbacks: the lines they get, and outcomes that are held up while they fail.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <vouch/testing.hpp>
#include <vouch/vouch.hpp>

#include "catch.hpp"
#include "runner_fixture.hpp"

namespace run_hooks_test {

using namespace runner_test;
using vouch::testing::sandbox;

TEST_CASE("audit: terminal outcomes are reported, failed attempts are not") {
    sandbox box({.retry = {.backoff = vouch::fixed{1s}, .attempts_max = 2}});
    std::vector<std::string> lines;
    box.on("bad", [] { throw vouch::failure("broken"); });
    box.on("good", [] {});
    box.runner().audit([&](auto&, const vouch::audit_line& l) {
        lines.push_back(std::string(name_of(l.what)) + ' ' + l.topic + ' ' + std::to_string(l.attempts) + ' ' +
                        l.error);
    });
    box.emit({.topic = "bad"});
    box.emit({.topic = "good"});
    box.run_until_idle();
    CHECK(lines == std::vector<std::string>{"succeeded good 1 ", "dead bad 2 broken"});
}

TEST_CASE("audit: while a sink fails, the outcome is kept and the handler is not called again") {
    sandbox box;
    int called = 0;
    bool down = true;
    std::vector<vouch::id> lines;
    box.on("t", [&] { ++called; });
    box.runner().audit([&](auto&, const vouch::audit_line& l) {
        if (down) {
            throw std::runtime_error("disk of the audit log is gone");
        }
        lines.push_back(l.id);
    });
    const auto got = box.emit({.topic = "t"});
    const auto done = box.run_once();
    CHECK(done.held_up == 1);
    CHECK(done.trace.front().error == "std::runtime_error");
    CHECK(box.find(got.id)->state == state::claimed);
    CHECK(box.run_once().claimed == 0);

    down = false;
    box.pass(5min);
    CHECK(box.run_once().succeeded == 1);
    CHECK(called == 1);
    CHECK(lines == std::vector{got.id});
}

TEST_CASE("audit: a sink that fails for hours costs no attempt, and no handler is called twice") {
    sandbox box;
    int called = 0;
    bool down = true;
    box.on("t", [&] { ++called; });
    box.runner().audit([&](auto&, const vouch::audit_line&) {
        if (down) {
            throw std::runtime_error("gone");
        }
    });
    for (int n = 0; n < 200; ++n) {
        box.emit({.topic = "t"});
    }
    for (int minute = 0; minute < 180; ++minute) {
        CHECK(box.run_once().held_up == 50); // a batch is kept; no more is claimed
        box.pass(1min);
    }
    CHECK(called == 50);
    CHECK(box.runner().run_until_idle().held_up == 50);
    down = false;
    CHECK(box.runner().run_until_idle().succeeded == 200);
    CHECK(called == 200);
    for (const auto& e : box.entries()) {
        CHECK(e.attempts == 1);
        CHECK(e.state == state::succeeded);
    }
    const auto events = box.events();
    CHECK(std::count_if(events.begin(), events.end(),
                        [](const auto& e) { return e.what == event_kind::hook_failed; }) == 50); // one per entry
}

TEST_CASE("audit: if the process crashes while a sink fails, another runner claims the entry after its lease") {
    runner_fixture f;
    f.runner.audit([](auto&, const vouch::audit_line&) { throw std::runtime_error("gone"); });
    f.put(1);
    CHECK(f.runner.run_once().held_up == 1);
    vouch::runner another(f.outbox, f.router, {.queue = "q"});
    CHECK(another.run_once().claimed == 0);
    f.clock.pass(5min);
    CHECK(another.run_once().succeeded == 1);
    CHECK(f.called == 2);
    CHECK(f.runner.run_once().stale == 1); // the first runner was only slow, and drops the outcome it kept
    CHECK(f.follow_ups() == 1);
}

TEST_CASE("hooks: a hook that throws for one entry does not hold up the others, whatever it throws") {
    using kind = vouch::error_kind;
    for (const auto thrown : {kind::invalid_argument, kind::unrouted, kind::misuse, kind::busy, kind::io}) {
        runner_fixture f;
        f.runner.audit([&](auto&, const vouch::audit_line& l) {
            if (l.id == id_of(2)) {
                throw vouch::error(thrown, "from the sink");
            }
        });
        f.put(1);
        f.put(2);
        f.put(3);
        const auto done = f.runner.run_once();
        CHECK(done.succeeded == 2);
        CHECK(done.held_up == 1);
        CHECK(done.trace[1].error == name_of(thrown));
        CHECK(f.called == 3);
        CHECK(f.store.find(id_of(2))->state == state::claimed);
    }
}

TEST_CASE("hooks: a hook that makes the transaction unusable holds up only its own entry") {
    runner_fixture f;
    f.runner.on_group_complete([&](auto& tx, const std::string&, const vouch::entry&) {
        const std::vector<vouch::draft> bad(1);
        tx.enqueue(bad, t0); // invalid: no id
    });
    f.put(1, "g");
    f.put(2);
    const auto done = f.runner.run_once();
    CHECK(done.succeeded == 1);
    CHECK(done.held_up == 1);
}

TEST_CASE("hooks: entries whose hook always fails never hold up the others, however many there are") {
    for (const std::uint64_t bad : {3U, 10U, 30U}) {
        runner_fixture f;
        f.runner.audit([&](auto&, const vouch::audit_line& l) {
            if (l.id.low <= bad) {
                throw std::runtime_error("never");
            }
        });
        for (std::uint64_t n = 1; n <= 60; ++n) {
            f.put(n);
        }
        for (int pass = 0; pass < 40; ++pass) {
            f.runner.run_once();
            f.clock.pass(1min);
        }
        CHECK(f.counts()[state::succeeded] == 60 - bad);
        CHECK(f.called == 60);
    }
}

TEST_CASE("hooks: a held-up outcome is dropped when another runner has claimed the entry") {
    runner_fixture f;
    f.runner.audit([](auto&, const vouch::audit_line&) { throw std::runtime_error("never"); });
    f.put(1);
    CHECK(f.runner.run_once().held_up == 1);
    f.clock.pass(5min);
    REQUIRE(take(f.store.plain(), f.clock(), {.limit = 1}).size() == 1);
    CHECK(f.runner.run_once().stale == 1);
    CHECK(f.runner.run_once().held_up == 0);
}

} // namespace run_hooks_test
