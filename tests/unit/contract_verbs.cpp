// SPDX-License-Identifier: MIT
// The fields that each verb writes, and its boundary cases. `contract_lifecycle.cpp` tests when a verb is allowed.
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

/// Claimed at t0 for a minute, after `times` - 1 failures.
entry claimed(std::uint32_t times = 1) {
    auto e = fresh();
    apply(e, by("w", t0));
    for (std::uint32_t n = 1; n < times; ++n) {
        REQUIRE(settle_at(e, vouch::retry{"e", t0}, t0) == verdict::applied);
        apply(e, by("w", t0));
    }
    return e;
}

/// Claimed for a minute, at t0 and again after each of `lapses` lapses.
entry lapsed(std::uint32_t lapses) {
    auto e = fresh();
    for (std::uint32_t n = 0; n <= lapses; ++n) {
        apply(e, by("w", t0 + 1min * n));
    }
    return e;
}

} // namespace

TEST_CASE("born: a new entry has its draft's values, and no attempts, lease or result") {
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

TEST_CASE("born: a draft with a result, even an empty one, is stored as succeeded") {
    auto d = draft_of(1);
    d.result = "";
    const auto e = vouch::born(d, t0);
    CHECK(e.state == state::succeeded);
    CHECK(e.result == "");
    CHECK(!gate_of(e));
}

TEST_CASE("claim: increments attempts and epoch, and does not change due_at") {
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

TEST_CASE("claim: the first lapse in a row costs no attempt, every later one does") {
    auto e = fresh();
    for (std::uint32_t n = 0; n < 300; ++n) { // more than a byte can count
        apply(e, by("w", t0 + 1min * n));
        CAPTURE(n);
        CHECK(e.lapses == n);
        CHECK(e.attempts == std::max(n, 1U));
    }
}

TEST_CASE("lapses: an outcome resets them to 0, so the next lapse costs no attempt") {
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

TEST_CASE("lapses: a release keeps them, so a shutdown does not hide an entry that kills its process") {
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

TEST_CASE("lapses: extend, nudge and cancel do not change them") {
    auto e = lapsed(2);
    CHECK(apply(e, vouch::extend{ticket_of(e), 1min}, t0 + 3min) == verdict::applied);
    CHECK(apply(e, vouch::nudge{}, t0 + 3min) == verdict::applied);
    CHECK(apply(e, vouch::cancel{"why"}, t0 + 4min) == verdict::applied);
    CHECK(e.lapses == 2);
    CHECK(e.attempts == 2);
}

TEST_CASE("gate: lease_until if claimed, none if terminal, else due_at") {
    auto e = fresh();
    CHECK(gate_of(e) == t0);
    apply(e, by("w", t0));
    CHECK(gate_of(e) == t0 + 1min);
    REQUIRE(settle_at(e, vouch::retry{"e", t0 + 1h}, t0) == verdict::applied);
    CHECK(gate_of(e) == t0 + 1h);
    REQUIRE(apply(e, vouch::cancel{"e"}, t0) == verdict::applied);
    CHECK(!gate_of(e));
}

TEST_CASE("succeed: stores the result and keeps the last error and the worker") {
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

TEST_CASE("retry: increments failures and makes the entry due at the given time") {
    auto e = claimed();
    CHECK(settle_at(e, vouch::retry{"broken", t0 + 30s}, t0 + 1s) == verdict::applied);
    CHECK(e.state == state::retrying);
    CHECK(e.failures == 1);
    CHECK(e.attempts == 1);
    CHECK(e.due_at == t0 + 30s);
    CHECK(e.last_error == "broken");
}

TEST_CASE("bury: increments failures and replaces the result") {
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

TEST_CASE("release: returns the attempt, and an entry with earlier attempts is retrying instead of pending") {
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

TEST_CASE("release: a given time becomes due_at, even if it has passed") {
    for (const auto at : {t0 + 1h, t0 - 1h}) {
        auto e = claimed();
        CHECK(settle_at(e, vouch::release{at}, t0 + 1s) == verdict::applied);
        CHECK(e.due_at == at);
    }
}

TEST_CASE("advance: replaces the progress and resets attempts to 0") {
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

TEST_CASE("extend: renews an expired lease if no other worker has claimed the entry") {
    auto e = claimed();
    CHECK(apply(e, vouch::extend{ticket_of(e), 1min}, t0 + 1h) == verdict::applied);
    CHECK(e.lease_until == t0 + 1h + 1min);
    CHECK(vouch::detail::column_of(e, t0 + 1h) == verdict_column::held);
}

TEST_CASE("lease: it expires exactly at lease_until") {
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

TEST_CASE("nudge: moves a later due_at to now, and does not change an earlier one") {
    for (const auto due : {t0 - tick, t0, t0 + tick}) {
        auto e = fresh();
        e.due_at = due;
        CHECK(apply(e, vouch::nudge{}, t0) == (due > t0 ? verdict::applied : verdict::repeated));
        CHECK(e.due_at == std::min(due, t0));
        CHECK(!e.woken);
    }
}

TEST_CASE("nudge: a claimed entry becomes due when its claim ends, at the earlier of now and the outcome's time") {
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

TEST_CASE("nudge: the wake mark is cleared by the next claim and by a terminal state") {
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

TEST_CASE("cancel: increments the epoch of a claimed entry, so that its lapsed ticket is stale") {
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

TEST_CASE("settle: an old ticket is stale as soon as another worker claims the entry") {
    auto e = claimed();
    const auto old = ticket_of(e);
    apply(e, by("other", t0 + 1min));
    const auto before = e;
    CHECK(apply(e, vouch::settle{old, vouch::succeed{}}, t0 + 1min) == verdict::stale);
    CHECK(apply(e, vouch::extend{old, 1h}, t0 + 1min) == verdict::stale);
    CHECK(e == before);
}

} // namespace contract_verbs_test
