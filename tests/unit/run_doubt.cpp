// SPDX-License-Identifier: MIT
// The settling transaction with store faults and commits in doubt.
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

namespace run_doubt_test {

using namespace runner_test;
using vouch::testing::sandbox;

TEST_CASE("in doubt: a claim is discarded, and the entry runs only after another claim") {
    for (const auto fault : {commit_fault::rolled_back_in_doubt, commit_fault::committed_in_doubt}) {
        runner_fixture f;
        f.put(1);
        f.store.plan().faults = {fault};
        CHECK(error_of([&] { f.runner.run_once(); })->is_in_doubt());
        CHECK(f.called == 0);
        f.clock.pass(5min);
        CHECK(f.runner.run_once().succeeded == 1);
        CHECK(f.called == 1);
    }
}

TEST_CASE("in doubt: a settle is repeated with the same tickets and applied exactly once") {
    for (const auto fault : {commit_fault::rolled_back_in_doubt, commit_fault::committed_in_doubt}) {
        runner_fixture f;
        int audited = 0;
        f.runner.audit([&](auto& tx, const vouch::audit_line& l) {
            const vouch::draft line{.id = derive(l.id, "audit"), .queue = "audit", .topic = "line"};
            tx.enqueue(std::span(&line, 1), t0);
            ++audited;
        });
        f.put(1);
        f.put(2);
        f.store.plan().faults = {commit_fault::none, fault};
        const auto done = f.runner.run_once();
        CHECK(done.succeeded == 2);
        CHECK(f.called == 2);
        CHECK(f.counts()[state::succeeded] == 2);
        CHECK(f.follow_ups() == 2);
        CHECK(f.store.counts("audit").total() == 2);
        CHECK(audited == (fault == commit_fault::rolled_back_in_doubt ? 4 : 2));
    }
}

TEST_CASE("in doubt: after a settle and a claim in one commit, the settle is repeated and the claim discarded") {
    for (const auto fault : {commit_fault::rolled_back_in_doubt, commit_fault::committed_in_doubt}) {
        runner_fixture f;
        for (std::uint64_t n = 1; n <= 60; ++n) {
            f.put(n);
        }
        f.store.plan().faults = {commit_fault::none, fault};
        // If committed, ten claims are discarded and wait for the lease; if rolled back, they are claimed again.
        const std::size_t at_once = fault == commit_fault::committed_in_doubt ? 50 : 60;
        CHECK(f.runner.run_until_idle().succeeded == at_once);
        CHECK(f.called == static_cast<int>(at_once));
        f.clock.pass(5min);
        CHECK(f.runner.run_until_idle().succeeded == 60 - at_once);
        CHECK(f.called == 60);
        CHECK(f.follow_ups() == 60);
    }
}

TEST_CASE("in doubt: a group's completion is reported once, even if the commit had taken effect") {
    runner_fixture f;
    int completed = 0;
    f.runner.on_group_complete([&](auto&, const std::string&, const vouch::entry&) { ++completed; });
    vouch::testing::recorder seen;
    f.runner.observe(seen);
    f.put(1, "g");
    f.store.plan().faults = {commit_fault::none, commit_fault::committed_in_doubt};
    CHECK(f.runner.run_once().succeeded == 1);
    CHECK(completed == 1);
    CHECK(seen.count(event_kind::group_completed) == 1);
    CHECK(seen.count(event_kind::enqueued, "follow") == 1);
}

TEST_CASE("in doubt: an emit is repeated with the same ids and stored once") {
    for (const auto fault : {commit_fault::rolled_back_in_doubt, commit_fault::committed_in_doubt}) {
        runner_fixture f;
        f.store.plan().faults = {fault, fault};
        const auto got = f.outbox.emit({{.queue = "q", .topic = "t"}, {.queue = "q", .topic = "t"}});
        REQUIRE(got.size() == 2);
        CHECK(got[0].what == vouch::receipt::kind::inserted);
        CHECK(got[1].what == vouch::receipt::kind::inserted);
        CHECK(f.counts().total() == 2);
    }
    runner_fixture f;
    f.store.plan().faults.assign(100, commit_fault::rolled_back_in_doubt);
    CHECK(error_of([&] { f.outbox.emit({.queue = "q", .topic = "t"}); })->is_in_doubt());
}

TEST_CASE("settling: a store error is thrown, and the caller can settle the same batch again") {
    runner_fixture f;
    f.put(1);
    f.put(2);
    auto batch = f.runner.handle_all(f.runner.claim());
    f.store.plan().faults = {commit_fault::io};
    CHECK(kind_of([&] { f.runner.settle(batch); }) == vouch::error_kind::io);
    CHECK(f.counts()[state::claimed] == 2);
    // The commit is in doubt, and the repeat fails.
    f.store.plan().faults = {commit_fault::rolled_back_in_doubt, commit_fault::io};
    CHECK(kind_of([&] { f.runner.settle(batch); }) == vouch::error_kind::io);
    CHECK(f.counts()[state::claimed] == 2);
    const auto done = f.runner.settle(batch);
    CHECK(done.succeeded == 2);
    CHECK(done.stale == 0);
    CHECK(f.called == 2);
    CHECK(f.follow_ups() == 2);
}

} // namespace run_doubt_test
