// SPDX-License-Identifier: MIT
// Audit sinks and group callbacks: what they see, and what happens while they fail.
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
#include "run_stage.hpp"

namespace run_hooks_test {

using namespace run_stage;
using vouch::testing::sandbox;

TEST_CASE("audit: terminal outcomes and completed groups are told, failed attempts are not") {
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

TEST_CASE("audit: while a sink fails the outcome is kept, and the handler is not called again") {
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

TEST_CASE("audit: a sink that is down for hours costs no entry an attempt, and no handler is called twice") {
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
        CHECK(box.run_once().held_up == 50); // a batch is kept; more is not claimed
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
                        [](const auto& e) { return e.what == event_kind::hook_failed; }) == 50); // once each
}

TEST_CASE("audit: if the process dies while a sink fails, the lease heals the entry") {
    stage s;
    s.runner.audit([](auto&, const vouch::audit_line&) { throw std::runtime_error("gone"); });
    s.put(1);
    CHECK(s.runner.run_once().held_up == 1);
    vouch::runner another(s.outbox, s.router, {.queue = "q"});
    CHECK(another.run_once().claimed == 0);
    s.clock.pass(5min);
    CHECK(another.run_once().succeeded == 1);
    CHECK(s.called == 2);
    CHECK(s.runner.run_once().stale == 1); // the first runner was only slow, and gives up what it has kept
    CHECK(s.follow_ups() == 1);
}

TEST_CASE("hooks: one that fails for one entry does not hold up the others, whatever it throws") {
    using kind = vouch::error_kind;
    for (const auto thrown : {kind::invalid_argument, kind::unrouted, kind::misuse, kind::busy, kind::io}) {
        stage s;
        s.runner.audit([&](auto&, const vouch::audit_line& l) {
            if (l.id == id_of(2)) {
                throw vouch::error(thrown, "from the sink");
            }
        });
        s.put(1);
        s.put(2);
        s.put(3);
        const auto done = s.runner.run_once();
        CHECK(done.succeeded == 2);
        CHECK(done.held_up == 1);
        CHECK(done.trace[1].error == name_of(thrown));
        CHECK(s.called == 3);
        CHECK(s.store.find(id_of(2))->state == state::claimed);
    }
}

TEST_CASE("hooks: one that leaves the transaction unusable costs its own entry only") {
    stage s;
    s.runner.on_group_complete([&](auto& tx, const std::string&, const vouch::entry&) {
        const std::vector<vouch::draft> bad(1);
        tx.enqueue(bad, t0); // invalid: no id
    });
    s.put(1, "g");
    s.put(2);
    const auto done = s.runner.run_once();
    CHECK(done.succeeded == 1);
    CHECK(done.held_up == 1);
}

TEST_CASE("hooks: some that always fail hold up nobody else, however many there are") {
    for (const std::uint64_t bad : {3U, 10U, 30U}) {
        stage s;
        s.runner.audit([&](auto&, const vouch::audit_line& l) {
            if (l.id.low <= bad) {
                throw std::runtime_error("never");
            }
        });
        for (std::uint64_t n = 1; n <= 60; ++n) {
            s.put(n);
        }
        for (int pass = 0; pass < 40; ++pass) {
            s.runner.run_once();
            s.clock.pass(1min);
        }
        CHECK(s.counts()[state::succeeded] == 60 - bad);
        CHECK(s.called == 60);
    }
}

TEST_CASE("hooks: an outcome that is held up is given up when another runner has taken its claim over") {
    stage s;
    s.runner.audit([](auto&, const vouch::audit_line&) { throw std::runtime_error("never"); });
    s.put(1);
    CHECK(s.runner.run_once().held_up == 1);
    s.clock.pass(5min);
    REQUIRE(take(s.store.plain(), s.clock(), {.limit = 1}).size() == 1);
    CHECK(s.runner.run_once().stale == 1);
    CHECK(s.runner.run_once().held_up == 0);
}

} // namespace run_hooks_test
