// SPDX-License-Identifier: MIT
// The settling transaction: its fixed order, that it is all or nothing, and what happens when it cannot be had.
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include <vouch/testing.hpp>
#include <vouch/vouch.hpp>

#include "catch.hpp"
#include "scripted_store.hpp"
#include "support.hpp"

using namespace support;
using vouch::delivery;
using vouch::event_kind;
using vouch::state;
using vouch::testing::sandbox;

namespace {

/// A runner on a scripted store, whose handler counts its calls and emits a follow-up.
struct stage {
    scripted_store store{};
    vouch::manual_clock clock{t0};
    vouch::outbox outbox{{.clock = clock, .ids = vouch::counting_ids{}}};
    vouch::router<scripted_store> router{};
    int called = 0;
    std::vector<std::string> log{};
    vouch::runner<scripted_store> runner{store, outbox, router, {.queue = "q"}};

    stage() {
        router.on("t", [this](delivery& d) {
            ++called;
            d.emit({.queue = "next", .topic = "follow"});
        });
    }
    void put(std::uint64_t n, std::string group = {}) {
        auto d = draft_of(n);
        d.group = std::move(group);
        vouch::enqueue(store.plain(), std::span(&d, 1), clock());
    }
    [[nodiscard]] vouch::state_counts counts() const { return store.counts("q"); }
    [[nodiscard]] std::size_t follow_ups() const { return store.counts("next").total(); }
};

struct recording {
    std::function<void()> then;
    std::string work(delivery&) { return "r"; }
    void record(vouch::memory::transaction&, const std::string&) { then(); }
};

} // namespace

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

TEST_CASE("audit: terminal outcomes and completed groups are told, failed attempts are not") {
    sandbox box({.retry = {.backoff = vouch::fixed{1s}, .attempts_max = 2}});
    std::vector<std::string> lines;
    box.on("bad", [] { throw vouch::failure("broken"); });
    box.on("good", [] {});
    box.runner().audit([&](auto&, const vouch::audit_line& l) {
        lines.push_back(std::string(name_of(l.what)) + ' ' + l.topic + ' ' + std::to_string(l.attempts) + ' ' + l.error);
    });
    box.emit({.topic = "bad"});
    box.emit({.topic = "good"});
    box.run_until_idle();
    CHECK(lines == std::vector<std::string>{"succeeded good 1 ", "dead bad 2 broken"});
}

TEST_CASE("audit: a sink that fails leaves the entry claimed, and the lease heals it") {
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
    CHECK(done.unsettled == 1);
    CHECK(done.trace.front().error == "std::runtime_error");
    CHECK(box.find(got.id)->state == state::claimed);
    CHECK(box.run_once().claimed == 0);

    down = false;
    box.pass(5min);
    CHECK(box.run_once().succeeded == 1);
    CHECK(called == 2);
    CHECK(lines == std::vector{got.id});
}

TEST_CASE("groups: the callback runs once, with the settle that completes the group; if it throws nothing is recorded") {
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
    CHECK(first.succeeded == 2); // one by one: the first of the group and the one outside it
    CHECK(first.unsettled == 1);
    CHECK(completed.empty());
    CHECK(s.follow_ups() == 2);

    down = false;
    s.clock.pass(5min);
    CHECK(s.runner.run_once().succeeded == 1);
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

TEST_CASE("in doubt: a claim is forgotten, never run, and healed by its lease") {
    for (const auto fate : {commit_fate::lost_in_doubt, commit_fate::landed_in_doubt}) {
        stage s;
        s.put(1);
        s.store.plan().fates = {fate};
        CHECK(error_of([&] { s.runner.run_once(); })->is_in_doubt());
        CHECK(s.called == 0);
        s.clock.pass(5min);
        CHECK(s.runner.run_once().succeeded == 1);
        CHECK(s.called == 1);
    }
}

TEST_CASE("in doubt: a settle is repeated under the same tickets, and lands exactly once either way") {
    for (const auto fate : {commit_fate::lost_in_doubt, commit_fate::landed_in_doubt}) {
        stage s;
        int audited = 0;
        s.runner.audit([&](auto& tx, const vouch::audit_line& l) {
            const vouch::draft line{.id = derive(l.id, "audit"), .queue = "audit", .topic = "line"};
            tx.enqueue(std::span(&line, 1), t0);
            ++audited;
        });
        s.put(1);
        s.put(2);
        s.store.plan().fates = {commit_fate::fine, fate};
        const auto done = s.runner.run_once();
        CHECK(done.succeeded == 2);
        CHECK(s.called == 2);
        CHECK(s.counts()[state::succeeded] == 2);
        CHECK(s.follow_ups() == 2);
        CHECK(s.store.counts("audit").total() == 2);
        CHECK(audited == (fate == commit_fate::lost_in_doubt ? 4 : 2));
    }
}

TEST_CASE("in doubt: of settle and claim in one commit, the settle is repeated and the claim forgotten") {
    for (const auto fate : {commit_fate::lost_in_doubt, commit_fate::landed_in_doubt}) {
        stage s;
        for (std::uint64_t n = 1; n <= 60; ++n) {
            s.put(n);
        }
        s.store.plan().fates = {commit_fate::fine, fate};
        const auto done = s.runner.run_until_idle();
        CHECK(done.succeeded == 50);
        CHECK(s.called == 50);
        s.clock.pass(5min);
        CHECK(s.runner.run_until_idle().succeeded == 10);
        CHECK(s.called == 60);
        CHECK(s.follow_ups() == 60);
    }
}

TEST_CASE("settling: a fault of the store goes to the caller, who may settle the same batch again") {
    stage s;
    s.put(1);
    s.put(2);
    auto batch = s.runner.handle_all(s.runner.claim());
    s.store.plan().fates = {commit_fate::io};
    CHECK(kind_of([&] { s.runner.settle(batch); }) == vouch::error_kind::io);
    CHECK(s.counts()[state::claimed] == 2);
    // In doubt, then the first lands alone, then the store fails.
    s.store.plan().fates = {commit_fate::lost_in_doubt, commit_fate::fine, commit_fate::io};
    CHECK(kind_of([&] { s.runner.settle(batch); }) == vouch::error_kind::io);
    CHECK(s.counts()[state::succeeded] == 1);
    const auto done = s.runner.settle(batch);
    CHECK(done.succeeded == 2);
    CHECK(done.stale == 0);
    CHECK(s.called == 2);
    CHECK(s.follow_ups() == 2);
}

TEST_CASE("record: what it throws is the handler's failure, and nothing of the attempt is kept") {
    sandbox box({.retry = {.backoff = vouch::fixed{1s}, .attempts_max = 3}});
    int tried = 0;
    box.on("t", recording{[&] {
        ++tried;
        throw vouch::failure("constraint");
    }});
    box.on("fine", [] {});
    const auto got = box.emit({.topic = "t"});
    const auto other = box.emit({.topic = "fine"});
    const auto done = box.run_once();
    CHECK(done.retried == 1);
    CHECK(done.succeeded == 1);
    CHECK(box.find(got.id)->last_error == "constraint");
    CHECK(box.find(got.id)->due_at == box.clock()() + 1s);
    CHECK(box.find(other.id)->state == state::succeeded);
    box.run_until_idle();
    CHECK(box.find(got.id)->state == state::dead);
    CHECK(box.find(got.id)->attempts == 3);

    box.on("never", recording{[] { throw vouch::reject("no_such_row"); }});
    const auto rejected = box.emit({.topic = "never"});
    box.run_once();
    CHECK(box.find(rejected.id)->last_error == "no_such_row");
}
