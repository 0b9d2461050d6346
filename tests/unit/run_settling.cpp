// SPDX-License-Identifier: MIT
// The settling transaction: its fixed order, and that it is all or nothing.
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

namespace run_settling_test {

using namespace runner_test;
using vouch::testing::sandbox;

TEST_CASE("settling: the order is record, emissions, audit, change of state, group callback") {
    sandbox box;
    std::vector<std::string> log;
    const auto state_in = [](auto& tx, const vouch::id& i) { return std::string(name_of(tx.find(i)->state)); };
    box.on("t", recording_handler{[&] { log.push_back("record"); }});
    box.runner().audit([&](auto& tx, const vouch::audit_line& l) {
        log.push_back("audit " + std::string(name_of(l.what)) + ", entry " + state_in(tx, l.id));
    });
    box.runner().on_group_complete([&](auto& tx, const std::string& group, const vouch::entry& last) {
        log.push_back("group " + group + ", entry " + state_in(tx, last.id));
    });
    box.emit({.topic = "t", .group = "g"});
    box.run_once();
    CHECK(log == std::vector<std::string>{"record", "audit succeeded, entry claimed",
                                          "audit group_completed, entry succeeded", "group g, entry succeeded"});

    sandbox other;
    log.clear();
    other.on("t", [](delivery& d) { d.emit({.queue = "next", .topic = "follow"}); });
    other.runner().audit([&](auto& tx, const vouch::audit_line&) {
        log.push_back(std::to_string(tx.counts("next").total()) + " follow-ups");
    });
    other.emit({.topic = "t"});
    other.run_once();
    CHECK(log == std::vector<std::string>{"1 follow-ups"});
}

TEST_CASE("groups: the callback runs once, in the settle that completes the group; if it throws, nothing is stored") {
    runner_fixture f;
    bool down = true;
    std::vector<std::string> completed;
    f.runner.on_group_complete([&](auto&, const std::string& group, const vouch::entry&) {
        if (down) {
            throw std::runtime_error("not now");
        }
        completed.push_back(group);
    });
    f.put(1, "g");
    f.put(2, "g");
    f.put(3);
    const auto first = f.runner.run_once();
    CHECK(first.succeeded == 2); // the first of the group and the one outside it
    CHECK(first.held_up == 1);
    CHECK(completed.empty());
    CHECK(f.follow_ups() == 2);

    down = false;
    CHECK(f.runner.run_once().succeeded == 1);
    CHECK(f.called == 3);
    CHECK(completed == std::vector<std::string>{"g"});
    CHECK(f.follow_ups() == 3);
}

TEST_CASE("settling: a batch is settled in one commit together with the next claim") {
    runner_fixture f;
    for (std::uint64_t n = 1; n <= 120; ++n) {
        f.put(n);
    }
    CHECK(f.runner.run_until_idle().succeeded == 120);
    CHECK(f.store.plan().commits == 1 + 3); // the first claim, then three settles of 50, 50 and 20
    CHECK(f.called == 120);
}

TEST_CASE("settling: a stale entry does not hold up the others, and no handler is called again") {
    runner_fixture f;
    for (std::uint64_t n = 1; n <= 3; ++n) {
        f.put(n);
    }
    auto batch = f.runner.handle_all(f.runner.claim());
    f.clock.pass(5min);
    const auto other = take(f.store.plain(), f.clock(), {.limit = 1, .only = id_of(2)});
    REQUIRE(other.size() == 1);
    const auto done = f.runner.settle(batch);
    CHECK(done.succeeded == 2);
    CHECK(done.stale == 1);
    CHECK(f.called == 3);
    CHECK(f.follow_ups() == 2);
    CHECK(f.store.find(id_of(2))->state == state::claimed);
    CHECK(settle(f.store.plain(), ticket_of(other.front()), vouch::succeed{}, f.clock()).verdict ==
          vouch::verdict::applied);
}

TEST_CASE("settling: after a conflict the settle is repeated without calling the handler again") {
    runner_fixture f;
    f.put(1);
    f.store.plan().faults = {commit_fault::conflict, commit_fault::none, commit_fault::conflict,
                             commit_fault::conflict};
    CHECK(f.runner.run_once().succeeded == 1);
    CHECK(f.called == 1);
    CHECK(f.follow_ups() == 1);
}

TEST_CASE("settling: all stale entries are separated at once, and the others are settled in one commit") {
    runner_fixture f;
    for (std::uint64_t n = 1; n <= 50; ++n) {
        f.put(n);
    }
    auto batch = f.runner.handle_all(f.runner.claim());
    f.clock.pass(5min);
    for (std::uint64_t n = 1; n <= 20; ++n) {
        REQUIRE(take(f.store.plain(), f.clock(), {.limit = 1, .only = id_of(n)}).size() == 1);
    }
    const auto before = f.store.plan().commits;
    const auto done = f.runner.settle(batch);
    CHECK(done.stale == 20);
    CHECK(done.succeeded == 30);
    CHECK(f.store.plan().commits == before + 1);
}

TEST_CASE("settling: if the settle fails, the outcomes are kept and the next pass settles them") {
    for (const auto fault : {commit_fault::io, commit_fault::rolled_back_in_doubt}) {
        runner_fixture f;
        for (std::uint64_t n = 1; n <= 5; ++n) {
            f.put(n);
        }
        f.store.plan().faults.assign(20, fault);
        f.store.plan().faults.push_front(commit_fault::none); // the claim
        CHECK(error_of([&] { f.runner.run_once(); }));
        CHECK(f.called == 5);
        f.store.plan().faults.clear();
        CHECK(f.runner.run_once().succeeded == 5);
        CHECK(f.called == 5);
        CHECK(f.follow_ups() == 5);
    }
}

TEST_CASE("settling: a batch that keeps conflicting is settled entry by entry") {
    runner_fixture f;
    f.put(1);
    f.put(2);
    auto batch = f.runner.handle_all(f.runner.claim());
    f.store.plan().faults.assign(16, commit_fault::conflict);
    CHECK(f.runner.settle(batch).succeeded == 2);
    CHECK(f.called == 2);
}

TEST_CASE("run_until_idle: continues after a batch that was settled entry by entry") {
    sandbox box;
    int recorded = 0;
    box.on("t", recording_handler{[&] {
               if (++recorded == 1) {
                   throw vouch::reject("first");
               }
           }});
    for (int n = 0; n < 100; ++n) {
        box.emit({.topic = "t"});
    }
    const auto done = box.runner().run_until_idle();
    CHECK(done.succeeded + done.dead == 100);
    CHECK(box.store().counts("test").live() == 0);
}

TEST_CASE("run_until_idle: the next claim finds entries that the settle in the same commit made due") {
    // A clock that advances with every call, as real clocks do.
    auto ticks = std::make_shared<std::int64_t>(0);
    vouch::memory::store store;
    const vouch::outbox outbox(store, {.clock = [ticks] { return t0 + vouch::duration{++*ticks}; }});
    vouch::router router(outbox);
    int steps = 0;
    router.on("t", [&](delivery&) -> vouch::outcome {
        return ++steps < 6 ? vouch::outcome{vouch::advance{.progress = std::to_string(steps)}} : vouch::succeed{};
    });
    outbox.emit({.queue = "q", .topic = "t"});
    CHECK(vouch::runner(outbox, router, {.queue = "q"}).run_until_idle().succeeded == 1);
    CHECK(steps == 6);
}

TEST_CASE("emissions: a duplicate is not reported as enqueued") {
    sandbox box;
    box.on("t", [](delivery& d) { d.emit({.queue = "next", .topic = "follow", .key = "once"}); });
    box.emit({.topic = "t"});
    box.emit({.topic = "t"});
    box.run_once();
    const auto events = box.events();
    CHECK(std::count_if(events.begin(), events.end(), [](const auto& e) { return e.what == event_kind::enqueued; }) ==
          1);
    CHECK(box.emitted("follow") == 1);
}

} // namespace run_settling_test
