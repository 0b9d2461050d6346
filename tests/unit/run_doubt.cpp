// SPDX-License-Identifier: MIT
// Faults and commits in doubt of the settling transaction.
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

namespace run_doubt_test {

using namespace run_stage;
using vouch::testing::sandbox;

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
        // Landed: ten are claimed by nobody, and wait for the lease. Lost: they are claimed after all.
        const std::size_t at_once = fate == commit_fate::landed_in_doubt ? 50 : 60;
        CHECK(s.runner.run_until_idle().succeeded == at_once);
        CHECK(s.called == static_cast<int>(at_once));
        s.clock.pass(5min);
        CHECK(s.runner.run_until_idle().succeeded == 60 - at_once);
        CHECK(s.called == 60);
        CHECK(s.follow_ups() == 60);
    }
}

TEST_CASE("in doubt: what a group's completion brought is told once, also when the commit had landed") {
    stage s;
    int completed = 0;
    s.runner.on_group_complete([&](auto&, const std::string&, const vouch::entry&) { ++completed; });
    vouch::testing::recorder seen;
    s.runner.observe(seen);
    s.put(1, "g");
    s.store.plan().fates = {commit_fate::fine, commit_fate::landed_in_doubt};
    CHECK(s.runner.run_once().succeeded == 1);
    CHECK(completed == 1);
    CHECK(seen.count(event_kind::group_completed) == 1);
    CHECK(seen.count(event_kind::enqueued, "follow") == 1);
}

TEST_CASE("in doubt: an enqueue by itself is repeated with the same ids, and lands once") {
    for (const auto fate : {commit_fate::lost_in_doubt, commit_fate::landed_in_doubt}) {
        stage s;
        s.store.plan().fates = {fate, fate};
        const auto got = s.outbox.emit({{.queue = "q", .topic = "t"}, {.queue = "q", .topic = "t"}});
        REQUIRE(got.size() == 2);
        CHECK(got[0].what == vouch::receipt::kind::inserted);
        CHECK(got[1].what == vouch::receipt::kind::inserted);
        CHECK(s.counts().total() == 2);
    }
    stage s;
    s.store.plan().fates.assign(100, commit_fate::lost_in_doubt);
    CHECK(error_of([&] { s.outbox.emit({.queue = "q", .topic = "t"}); })->is_in_doubt());
}

TEST_CASE("settling: a fault of the store goes to the caller, who may settle the same batch again") {
    stage s;
    s.put(1);
    s.put(2);
    auto batch = s.runner.handle_all(s.runner.claim());
    s.store.plan().fates = {commit_fate::io};
    CHECK(kind_of([&] { s.runner.settle(batch); }) == vouch::error_kind::io);
    CHECK(s.counts()[state::claimed] == 2);
    // In doubt, and when that is resolved the store fails.
    s.store.plan().fates = {commit_fate::lost_in_doubt, commit_fate::io};
    CHECK(kind_of([&] { s.runner.settle(batch); }) == vouch::error_kind::io);
    CHECK(s.counts()[state::claimed] == 2);
    const auto done = s.runner.settle(batch);
    CHECK(done.succeeded == 2);
    CHECK(done.stale == 0);
    CHECK(s.called == 2);
    CHECK(s.follow_ups() == 2);
}

} // namespace run_doubt_test
