// SPDX-License-Identifier: MIT
// What each verb writes, and where its edges are. Which verb is allowed when is `contract_lifecycle.cpp`.
#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include <vouch/vouch.hpp>

#include "catch.hpp"
#include "support.hpp"

namespace contract_verbs_test {

using namespace support;
using vouch::entry;
using vouch::state;
using vouch::verdict;
using vouch::detail::verdict_column;

namespace {

vouch::claim_request by(const std::string& worker, vouch::time_point now, vouch::duration lease = 1min) {
    return {.queue = "q", .now = now, .lease = lease, .worker = worker};
}

entry fresh() { return vouch::born(draft_of(1), t0); }

verdict settle_at(entry& e, const vouch::outcome& outcome, vouch::time_point now) {
    return apply(e, vouch::settle{ticket_of(e), outcome}, now);
}

/// Claimed at t0 for a minute, for the n-th time, after failures.
entry claimed(std::uint32_t times = 1) {
    auto e = fresh();
    apply(e, by("w", t0));
    for (std::uint32_t n = 1; n < times; ++n) {
        REQUIRE(settle_at(e, vouch::retry{"e", t0}, t0) == verdict::applied);
        apply(e, by("w", t0));
    }
    return e;
}

/// Claimed at t0 plus a minute for each lapse, for a minute.
entry lapsed(std::uint32_t lapses) {
    auto e = fresh();
    for (std::uint32_t n = 0; n <= lapses; ++n) {
        apply(e, by("w", t0 + 1min * n));
    }
    return e;
}

} // namespace

TEST_CASE("born: an entry brings what its draft says, and nothing of a life yet") {
    auto d = draft_of(1);
    d.due_at = t0 + 1h;
    d.progress = "begin";
    const auto e = vouch::born(d, t0);
    CHECK(e.state == state::pending);
    CHECK(e.due_at == t0 + 1h);
    CHECK(e.progress == "begin");
    CHECK(e.created_at == t0);
    CHECK(e.updated_at == t0);
    CHECK(e.generation == 1);
    CHECK(e.attempts + e.lapses + e.failures + e.epoch == 0);
    CHECK(!e.lease_until);
    CHECK(!e.last_attempt_at);
    CHECK(!e.result);
    CHECK(fresh().due_at == t0);
}

TEST_CASE("born: a draft with a result is born succeeded, even an empty one") {
    auto d = draft_of(1);
    d.result = "";
    const auto e = vouch::born(d, t0);
    CHECK(e.state == state::succeeded);
    CHECK(e.result == "");
    CHECK(!gate_of(e));
}

TEST_CASE("claim: counts the attempt and the epoch, and leaves due_at alone") {
    auto e = fresh();
    apply(e, by("first", t0 + 5min));
    CHECK(e.state == state::claimed);
    CHECK(e.attempts == 1);
    CHECK(e.lapses == 0);
    CHECK(e.epoch == 1);
    CHECK(e.lease_until == t0 + 6min);
    CHECK(e.worker == "first");
    CHECK(e.last_attempt_at == t0 + 5min);
    CHECK(e.due_at == t0);

    apply(e, by("second", t0 + 6min, 2min));
    CHECK(e.attempts == 1);
    CHECK(e.lapses == 1);
    CHECK(e.epoch == 2);
    CHECK(e.lease_until == t0 + 8min);
    CHECK(e.worker == "second");
}

TEST_CASE("claim: the first lapse in a row is no attempt, the second and every later one is") {
    auto e = fresh();
    for (std::uint32_t n = 0; n < 300; ++n) { // more than a byte can count
        apply(e, by("w", t0 + 1min * n));
        CAPTURE(n);
        CHECK(e.lapses == n);
        CHECK(e.attempts == std::max(n, 1U));
    }
}

TEST_CASE("lapses: an outcome sets them to 0, and the next lapse is a first one again") {
    const vouch::outcome outcomes[] = {vouch::succeed{}, vouch::bury{"e", {}}, vouch::retry{"e", t0},
                                       vouch::advance{"p", t0}};
    for (const auto& outcome : outcomes) {
        auto e = lapsed(2);
        CAPTURE(outcome.index());
        REQUIRE(settle_at(e, outcome, t0) == verdict::applied);
        CHECK(e.lapses == 0);
        const auto attempts = e.attempts;
        if (is_live(e.state)) {
            apply(e, by("w", t0));
            apply(e, by("w", t0 + 1min));
            CHECK(e.lapses == 1);
            CHECK(e.attempts == attempts + 1);
        }
    }
}

TEST_CASE("lapses: a release keeps them, so that a shutdown does not hide an entry that kills its process") {
    auto e = lapsed(1);
    CHECK(settle_at(e, vouch::release{}, t0) == verdict::applied);
    CHECK(e.state == state::pending);
    CHECK(e.attempts == 0);
    CHECK(e.lapses == 1);
    apply(e, by("w", t0));
    CHECK(e.lapses == 1);
    apply(e, by("w", t0 + 1min));
    CHECK(e.lapses == 2);
    CHECK(e.attempts == 2);
}

TEST_CASE("lapses: an extend, a nudge and a cancel leave them") {
    auto e = lapsed(2);
    CHECK(apply(e, vouch::extend{ticket_of(e), 1min}, t0 + 3min) == verdict::applied);
    CHECK(apply(e, vouch::nudge{}, t0 + 3min) == verdict::applied);
    CHECK(apply(e, vouch::cancel{"why"}, t0 + 4min) == verdict::applied);
    CHECK(e.lapses == 2);
    CHECK(e.attempts == 2);
}

TEST_CASE("gate: the lease's end if claimed, none if terminal, else due_at") {
    auto e = fresh();
    CHECK(gate_of(e) == t0);
    apply(e, by("w", t0));
    CHECK(gate_of(e) == t0 + 1min);
    REQUIRE(settle_at(e, vouch::retry{"e", t0 + 1h}, t0) == verdict::applied);
    CHECK(gate_of(e) == t0 + 1h);
    REQUIRE(apply(e, vouch::cancel{"e"}, t0) == verdict::applied);
    CHECK(!gate_of(e));
}

TEST_CASE("succeed: keeps the result, the last error and the worker") {
    auto e = claimed();
    e.last_error = "before";
    CHECK(settle_at(e, vouch::succeed{"done"}, t0 + 1s) == verdict::applied);
    CHECK(e.state == state::succeeded);
    CHECK(e.result == "done");
    CHECK(e.last_error == "before");
    CHECK(e.worker == "w");
    CHECK(e.attempts == 1);
    CHECK(e.failures == 0);
    CHECK(!e.lease_until);
}

TEST_CASE("retry: counts the failure and waits until the time given") {
    auto e = claimed();
    CHECK(settle_at(e, vouch::retry{"broken", t0 + 30s}, t0 + 1s) == verdict::applied);
    CHECK(e.state == state::retrying);
    CHECK(e.failures == 1);
    CHECK(e.attempts == 1);
    CHECK(e.due_at == t0 + 30s);
    CHECK(e.last_error == "broken");
}

TEST_CASE("bury: counts the failure, and its result is whatever it says") {
    auto e = claimed();
    e.result = "before";
    auto with_reply = e;
    CHECK(settle_at(e, vouch::bury{"broken", {}}, t0) == verdict::applied);
    CHECK(e.state == state::dead);
    CHECK(e.failures == 1);
    CHECK(e.last_error == "broken");
    CHECK(!e.result);
    CHECK(settle_at(with_reply, vouch::bury{"broken", "reply"}, t0) == verdict::applied);
    CHECK(with_reply.result == "reply");
}

TEST_CASE("release: gives the attempt back, and only the first makes it pending again") {
    auto once = claimed(1);
    CHECK(settle_at(once, vouch::release{}, t0 + 1s) == verdict::applied);
    CHECK(once.state == state::pending);
    CHECK(once.attempts == 0);
    CHECK(once.failures == 0);
    CHECK(once.due_at == t0);
    CHECK(once.epoch == 1);

    auto twice = claimed(2);
    CHECK(settle_at(twice, vouch::release{}, t0 + 1s) == verdict::applied);
    CHECK(twice.state == state::retrying);
    CHECK(twice.attempts == 1);
    CHECK(twice.epoch == 2);
}

TEST_CASE("release: a time given is a snooze, also one that has passed") {
    for (const auto at : {t0 + 1h, t0 - 1h}) {
        auto e = claimed();
        CHECK(settle_at(e, vouch::release{at}, t0 + 1s) == verdict::applied);
        CHECK(e.due_at == at);
    }
}

TEST_CASE("advance: replaces the progress and gives all attempts back") {
    auto e = claimed(3);
    e.failures = 2;
    CHECK(settle_at(e, vouch::advance{"step 2", t0 + 1h}, t0 + 1s) == verdict::applied);
    CHECK(e.state == state::pending);
    CHECK(e.progress == "step 2");
    CHECK(e.attempts == 0);
    CHECK(e.failures == 2);
    CHECK(e.epoch == 3);
    CHECK(e.due_at == t0 + 1h);

    auto at_once = claimed();
    CHECK(settle_at(at_once, vouch::advance{"step 2", {}}, t0 + 1s) == verdict::applied);
    CHECK(at_once.due_at == t0 + 1s);
}

TEST_CASE("extend: never shortens a lease") {
    struct {
        vouch::duration lease;
        vouch::time_point until;
    } const cases[] = {{1us, t0 + 1min},
                       {50s - tick, t0 + 1min},
                       {50s, t0 + 1min},
                       {50s + tick, t0 + 1min + tick},
                       {2h, t0 + 2h + 10s}};
    for (const auto& [lease, until] : cases) {
        auto e = claimed();
        CAPTURE(lease.count());
        CHECK(apply(e, vouch::extend{ticket_of(e), lease}, t0 + 10s) == verdict::applied);
        CHECK(e.lease_until == until);
        CHECK(e.epoch == 1);
    }
}

TEST_CASE("extend: brings a lease that is over back to life if nobody has taken it over") {
    auto e = claimed();
    CHECK(apply(e, vouch::extend{ticket_of(e), 1min}, t0 + 1h) == verdict::applied);
    CHECK(e.lease_until == t0 + 1h + 1min);
    CHECK(vouch::detail::column_of(e, t0 + 1h) == verdict_column::held);
}

TEST_CASE("lease: it is over exactly when its end is reached") {
    const auto e = claimed();
    CHECK(vouch::detail::column_of(e, t0 + 1min - tick) == verdict_column::held);
    CHECK(vouch::detail::column_of(e, t0 + 1min) == verdict_column::lapsed);
    CHECK(vouch::detail::column_of(e, t0 + 1min + tick) == verdict_column::lapsed);
    for (const auto now : {t0 + 1min - tick, t0 + 1min, t0 + 1min + tick}) {
        auto settled = e;
        auto cancelled = e;
        CHECK(settle_at(settled, vouch::succeed{}, now) == verdict::applied); // by ticket alone, never by time
        CHECK(apply(cancelled, vouch::cancel{"c"}, now) == (now < t0 + 1min ? verdict::stale : verdict::applied));
    }
}

TEST_CASE("nudge: brings a later due_at to now, and leaves one that has come alone") {
    for (const auto due : {t0 - tick, t0, t0 + tick}) {
        auto e = fresh();
        e.due_at = due;
        CHECK(apply(e, vouch::nudge{}, t0) == (due > t0 ? verdict::applied : verdict::repeated));
        CHECK(e.due_at == std::min(due, t0));
        CHECK(!e.woken);
    }
}

TEST_CASE("nudge: one that meets a claim makes the entry due when the claim ends, at the earlier of both times") {
    const auto now = t0 + 10s;
    const std::pair<vouch::outcome, vouch::time_point> cases[] = {
        {vouch::retry{"e", now + 1h}, now},
        {vouch::retry{"e", now - tick}, now - tick},
        {vouch::retry{"e", now + tick}, now},
        {vouch::release{}, t0},
        {vouch::release{now + 1h}, now},
        {vouch::release{now - 1h}, now - 1h},
        {vouch::advance{"p", {}}, now},
        {vouch::advance{"p", now + 1h}, now},
        {vouch::advance{"p", now - 1h}, now - 1h},
    };
    for (const auto& [outcome, due] : cases) {
        auto e = claimed();
        CAPTURE(outcome.index());
        CHECK(apply(e, vouch::nudge{}, t0 + 1s) == verdict::applied);
        CHECK(e.woken);
        CHECK(e.due_at == t0);
        CHECK(e.lease_until == t0 + 1min);
        CHECK(apply(e, vouch::nudge{}, t0 + 2s) == verdict::repeated);
        CHECK(settle_at(e, outcome, now) == verdict::applied);
        CHECK(e.due_at == due);
        CHECK(!e.woken);
    }
}

TEST_CASE("nudge: its mark is not kept for the next claim, nor after the end") {
    auto e = claimed();
    REQUIRE(apply(e, vouch::nudge{}, t0) == verdict::applied);
    auto ended = e;
    CHECK(settle_at(ended, vouch::succeed{}, t0) == verdict::applied);
    CHECK(!ended.woken);
    auto dropped = e;
    CHECK(apply(dropped, vouch::cancel{"c"}, t0 + 1min) == verdict::applied);
    CHECK(!dropped.woken);

    apply(e, by("other", t0 + 1min));
    CHECK(!e.woken);
    CHECK(settle_at(e, vouch::retry{"e", t0 + 1h}, t0 + 1min) == verdict::applied);
    CHECK(e.due_at == t0 + 1h);
}

TEST_CASE("cancel: the epoch moves on only if the entry was claimed, so that a lapsed ticket is stale") {
    auto waiting = fresh();
    CHECK(apply(waiting, vouch::cancel{"why"}, t0) == verdict::applied);
    CHECK(waiting.state == state::dead);
    CHECK(waiting.epoch == 0);
    CHECK(waiting.last_error == "why");
    CHECK(waiting.failures == 0);
    CHECK(apply(waiting, vouch::cancel{"again"}, t0 + 1s) == verdict::repeated);
    CHECK(waiting.last_error == "why");

    auto lapsed = claimed();
    const auto ticket = ticket_of(lapsed);
    CHECK(apply(lapsed, vouch::cancel{"why"}, t0 + 1min) == verdict::applied);
    CHECK(lapsed.epoch == 2);
    CHECK(!lapsed.lease_until);
    CHECK(apply(lapsed, vouch::settle{ticket, vouch::succeed{}}, t0 + 1min) == verdict::stale);
}

TEST_CASE("settle: a ticket works once, whatever the first outcome was") {
    const vouch::outcome outcomes[] = {vouch::succeed{}, vouch::retry{"e", t0}, vouch::bury{"e", {}}, vouch::release{},
                                       vouch::advance{"p", {}}};
    for (const auto& first : outcomes) {
        for (const auto& second : outcomes) {
            auto e = claimed();
            const auto ticket = ticket_of(e);
            REQUIRE(apply(e, vouch::settle{ticket, first}, t0) == verdict::applied);
            CHECK(apply(e, vouch::settle{ticket, second}, t0) == verdict::repeated);
            CHECK(apply(e, vouch::extend{ticket, 1h}, t0) == verdict::repeated);
        }
    }
}

TEST_CASE("settle: an old ticket is stale from the moment somebody else claims") {
    auto e = claimed();
    const auto old = ticket_of(e);
    apply(e, by("other", t0 + 1min));
    const auto before = e;
    CHECK(apply(e, vouch::settle{old, vouch::succeed{}}, t0 + 1min) == verdict::stale);
    CHECK(apply(e, vouch::extend{old, 1h}, t0 + 1min) == verdict::stale);
    CHECK(e == before);
}

} // namespace contract_verbs_test
