// SPDX-License-Identifier: MIT
// Sagas that expire or use up their attempts: they compensate, and are never dropped.
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include <vouch/saga.hpp>
#include <vouch/testing.hpp>
#include <vouch/vouch.hpp>

#include "catch.hpp"
#include "saga_three_steps.hpp"

namespace saga_expiry_test {

using namespace saga_support;
using vouch::event_kind;
using vouch::state;
using vouch::step_call;

TEST_CASE("saga: one that expires compensates after its expiry, and is never dropped with work done") {
    stage on;
    const auto d = three(on, 2, on.fails("do 2", "busy"),
                         {.retry = vouch::retry_policy{.backoff = vouch::fixed{1min}, .attempts_max = 100}});
    on.play(d);
    auto e = d.begin(on.outbox, {.queue = "sagas"}, std::string("p"));
    e.expires_in = 90s;
    const auto id = on.emit(e);
    on.run_out();
    CHECK(on.log == lines{"do 1", "do 2", "do 2", "undo 2 <>", "undo 1 <r1>"});
    CHECK(on.status(id).is_compensated());
    CHECK(on.status(id).reason == "expired");
}

TEST_CASE("saga: a step whose next attempt would be after the expiry is unknown") {
    stage on;
    const auto d = three(on, 2, on.fails("do 2", "busy"),
                         {.retry = vouch::retry_policy{.backoff = vouch::fixed{1h}, .attempts_max = 100}});
    on.play(d);
    auto e = d.begin(on.outbox, {.queue = "sagas"}, std::string("p"));
    e.expires_in = 1min;
    const auto id = on.emit(e);
    on.run();
    CHECK(on.log == lines{"do 1", "do 2", "undo 2 <>", "undo 1 <r1>"});
    CHECK(on.status(id).reason == "expired");
}

TEST_CASE("saga: a compensation waits for its next attempt across the expiry, and is called once per claim") {
    stage on;
    const auto d = define()
                       .step("s1", on.does("do 1"), on.fails("undo 1", "bank_down"),
                             {.retry = vouch::retry_policy{.backoff = vouch::fixed{1h}, .attempts_max = 3}})
                       .step("s2", on.rejects("do 2", "no"))
                       .build();
    on.play(d);
    auto e = d.begin(on.outbox, {.queue = "sagas"}, std::string("p"));
    e.expires_in = 1min;
    const auto id = on.emit(e);
    on.run();
    CHECK(on.log == lines{"do 1", "do 2", "undo 1"});
    on.run_out();
    CHECK(on.log == lines{"do 1", "do 2", "undo 1", "undo 1", "undo 1"});
    CHECK(on.clock() >= on.start + 1h);
    CHECK(on.entry(id).last_error == "bank_down");
}

TEST_CASE("saga: one that expires before it has begun undoes nothing") {
    stage on;
    const auto d = three(on, 0, on.does(""));
    on.play(d);
    auto e = d.begin(on.outbox, {.queue = "sagas"}, std::string("p"));
    e.expires_in = 1s;
    const auto id = on.emit(e);
    on.pass(1s);
    on.run();
    CHECK(on.log.empty());
    CHECK(on.status(id).is_compensated());
}

TEST_CASE("saga: an expired one retries its compensation, and is dead when the attempts are used up") {
    stage on;
    const auto d = define()
                       .step("s1", on.does("do 1"), on.fails("undo 1", "bank_down"), {.retry = times(3)})
                       .step("s2", on.does("do 2"))
                       .build();
    on.play(d);
    auto e = d.begin(on.outbox, {.queue = "sagas"}, std::string("p"));
    e.expires_in = 1s;
    const auto id = on.emit(e);
    on.runner().run_once();
    on.pass(1s);
    on.run_out();
    CHECK(on.log == lines{"do 1", "undo 1", "undo 1", "undo 1"});
    CHECK(on.entry(id).last_error == "bank_down");
}

TEST_CASE("saga: an entry's own attempts_max makes it compensate too") {
    stage on;
    const auto d = three(on, 2, on.does("do 2"), {.retry = times(100)});
    on.play(d);
    auto e = d.begin(on.outbox, {.queue = "sagas"}, std::string("p"));
    e.attempts_max = 2;
    const auto id = on.emit(e);
    on.runner().run_once();
    for (int crashes = 0; crashes < 3; ++crashes) {
        on.crash();
        on.pass(5min);
    }
    on.run();
    CHECK(on.log == lines{"do 1", "undo 2 <>", "undo 1 <r1>"});
    CHECK(on.status(id).reason == "attempts_exhausted");
}

} // namespace saga_expiry_test
