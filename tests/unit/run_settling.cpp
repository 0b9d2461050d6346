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
#include "run_stage.hpp"

namespace run_settling_test {

using namespace run_stage;
using vouch::testing::sandbox;

TEST_CASE("settling: records, then emissions, then audit, then the change of state, then the group's callback") {
    sandbox box;
    std::vector<std::string> log;
    const auto state_in = [](auto& tx, const vouch::id& i) { return std::string(name_of(tx.find(i)->state)); };
    box.on("t", recording{[&] { log.push_back("record"); }});
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

TEST_CASE(
    "groups: the callback runs once, with the settle that completes the group; if it throws nothing is recorded") {
    stage s;
    bool down = true;
    std::vector<std::string> completed;
    s.runner.on_group_complete([&](auto&, const std::string& group, const vouch::entry&) {
        if (down) {
            throw std::runtime_error("not now");
        }
        completed.push_back(group);
    });
    s.put(1, "g");
    s.put(2, "g");
    s.put(3);
    const auto first = s.runner.run_once();
    CHECK(first.succeeded == 2); // the first of the group and the one outside it
    CHECK(first.held_up == 1);
    CHECK(completed.empty());
    CHECK(s.follow_ups() == 2);

    down = false;
    CHECK(s.runner.run_once().succeeded == 1);
    CHECK(s.called == 3);
    CHECK(completed == std::vector<std::string>{"g"});
    CHECK(s.follow_ups() == 3);
}

TEST_CASE("settling: a batch is settled in one commit, and fused with the next claim") {
    stage s;
    for (std::uint64_t n = 1; n <= 120; ++n) {
        s.put(n);
    }
    CHECK(s.runner.run_until_idle().succeeded == 120);
    CHECK(s.store.plan().commits == 1 + 3); // the first claim, then three settles of 50, 50 and 20
    CHECK(s.called == 120);
}

TEST_CASE("settling: one late entry does not hold up the others, and no handler is called again") {
    stage s;
    for (std::uint64_t n = 1; n <= 3; ++n) {
        s.put(n);
    }
    auto batch = s.runner.handle_all(s.runner.claim());
    s.clock.pass(5min);
    const auto other = take(s.store.plain(), s.clock(), {.limit = 1, .only = id_of(2)});
    REQUIRE(other.size() == 1);
    const auto done = s.runner.settle(batch);
    CHECK(done.succeeded == 2);
    CHECK(done.stale == 1);
    CHECK(s.called == 3);
    CHECK(s.follow_ups() == 2);
    CHECK(s.store.find(id_of(2))->state == state::claimed);
    CHECK(settle(s.store.plain(), ticket_of(other.front()), vouch::succeed{}, s.clock()).verdict ==
          vouch::verdict::applied);
}

TEST_CASE("settling: a conflict is repeated without calling the handler again") {
    stage s;
    s.put(1);
    s.store.plan().fates = {commit_fate::conflict, commit_fate::fine, commit_fate::conflict, commit_fate::conflict};
    CHECK(s.runner.run_once().succeeded == 1);
    CHECK(s.called == 1);
    CHECK(s.follow_ups() == 1);
}

TEST_CASE("settling: late entries are set apart all at once, and the others are settled together") {
    stage s;
    for (std::uint64_t n = 1; n <= 50; ++n) {
        s.put(n);
    }
    auto batch = s.runner.handle_all(s.runner.claim());
    s.clock.pass(5min);
    for (std::uint64_t n = 1; n <= 20; ++n) {
        REQUIRE(take(s.store.plain(), s.clock(), {.limit = 1, .only = id_of(n)}).size() == 1);
    }
    const auto before = s.store.plan().commits;
    const auto done = s.runner.settle(batch);
    CHECK(done.stale == 20);
    CHECK(done.succeeded == 30);
    CHECK(s.store.plan().commits == before + 1);
}

TEST_CASE("settling: a pass whose settle fails keeps its outcomes, and the next one settles them") {
    for (const auto fate : {commit_fate::io, commit_fate::lost_in_doubt}) {
        stage s;
        for (std::uint64_t n = 1; n <= 5; ++n) {
            s.put(n);
        }
        s.store.plan().fates.assign(20, fate);
        s.store.plan().fates.push_front(commit_fate::fine); // the claim
        CHECK(error_of([&] { s.runner.run_once(); }));
        CHECK(s.called == 5);
        s.store.plan().fates.clear();
        CHECK(s.runner.run_once().succeeded == 5);
        CHECK(s.called == 5);
        CHECK(s.follow_ups() == 5);
    }
}

TEST_CASE("settling: conflicts that do not end for a batch are tried one by one") {
    stage s;
    s.put(1);
    s.put(2);
    auto batch = s.runner.handle_all(s.runner.claim());
    s.store.plan().fates.assign(16, commit_fate::conflict);
    CHECK(s.runner.settle(batch).succeeded == 2);
    CHECK(s.called == 2);
}

TEST_CASE("run_until_idle: goes on after a batch that had to be settled one by one") {
    sandbox box;
    int recorded = 0;
    box.on("t", recording{[&] {
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

TEST_CASE("run_until_idle: the next claim sees what the settle in the same commit made due") {
    // A clock that moves on whenever it is asked, as real ones do.
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

TEST_CASE("emissions: a duplicate is not told as enqueued") {
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
