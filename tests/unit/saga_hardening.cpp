// SPDX-License-Identifier: MIT
// Sagas in a faulty environment: an unbound topic, a definition with an added step, a payload that no longer decodes,
// slow actions, a progress that is full.
#include <string>
#include <vector>

#include <vouch/saga.hpp>
#include <vouch/testing.hpp>
#include <vouch/vouch.hpp>

#include "catch.hpp"
#include "saga_support.hpp"

namespace saga_hardening_test {

using namespace saga_support;
using vouch::state;

TEST_CASE("saga: while its final topic is not bound it waits, and calls no action again") {
    stage on;
    const auto d = define({.compensated = "order.undone"}).step("pay", on.rejects("charge", "declined")).build();
    on.play(d);
    const auto id = on.begin(d);
    for (int minute = 0; minute < 60; ++minute) {
        on.run();
        on.pass(1min);
    }
    CHECK(on.log == lines{"charge"});
    CHECK(is_live(on.entry(id).state));
}

TEST_CASE("saga: a definition with an added step and the same version counts as another version") {
    stage on;
    const auto pay = on.does("charge");
    const auto was = define({.completed = "order.done"}).step("pay", pay).build();
    on.play(was);
    const auto id = on.begin(was);
    on.run(); // all steps are done; it waits for its topic to be bound
    vouch::router grown(on.outbox);
    grown.on(define({.completed = "order.done"}).step("pay", pay).step("ship", on.does("ship")).build());
    on.pass(1min);
    vouch::runner runner(on.outbox, grown, {.queue = "sagas"});
    runner.observe(on.recorder);
    CHECK(runner.run_once().released == 1);
    CHECK(on.tags().back() == "unknown_version");
    CHECK(on.log == lines{"charge"});
    CHECK(is_live(on.entry(id).state));
}

TEST_CASE("saga: the timeout of the first step counts from its first attempt") {
    stage on;
    const auto d =
        define()
            .step("pay", on.fails("charge", "down"), on.does("refund"),
                  {.retry = vouch::retry_policy{.backoff = vouch::fixed{10s}, .attempts_max = 1000}, .timeout = 60s})
            .build();
    on.play(d);
    const auto id = on.begin(d);
    on.run_out();
    CHECK(on.log.size() <= 8);
    CHECK(on.status(id).reason == "timed_out");
}

TEST_CASE("saga: a payload that does not decode ends it only if no step can have had an effect") {
    stage on;
    const auto d = define().step("pay", on.does("charge")).build();
    on.play(d);
    const auto id = on.begin(d);
    on.crash(); // the action may have been called
    on.pass(5min);
    vouch::router other(on.outbox);
    auto strict = d;
    strict.check = [](const vouch::delivery&) { throw vouch::reject("undecodable"); };
    other.on(strict);
    vouch::runner runner(on.outbox, other, {.queue = "sagas"});
    CHECK(runner.run_once().released == 1);
    CHECK(is_live(on.entry(id).state));
    const auto fresh = on.begin(d);
    runner.run_once();
    CHECK(on.entry(fresh).last_error == "undecodable");
}

TEST_CASE("saga: the delay after a failed action counts from the end of the action") {
    stage on;
    const auto d =
        define()
            .step("pay",
                  [&](vouch::step_call&) -> std::string {
                      on.pass(60s);
                      throw vouch::failure("down");
                  },
                  on.does("refund"), {.retry = vouch::retry_policy{.backoff = vouch::fixed{30s}, .attempts_max = 3}})
            .build();
    on.play(d);
    const auto id = on.begin(d);
    on.run();
    CHECK(on.entry(id).due_at == on.start + 90s);
}

TEST_CASE("saga: skipped steps that overflow its progress make it compensate") {
    stage on;
    auto steps = define().step(
        "big", [&](vouch::step_call&) { return std::string(1024 * 1024 - 700, 'x'); }, on.does("undo"));
    for (int n = 0; n < 40; ++n) {
        steps = std::move(steps).step("skipped" + std::to_string(n), on.does("never")).when([](const std::string&) {
            return false;
        });
    }
    const auto d = std::move(steps).build();
    on.play(d);
    const auto id = on.begin(d);
    on.run_out();
    CHECK(on.entry(id).state == state::succeeded);
    CHECK(on.status(id).reason == "progress_too_large");
    CHECK(on.log.size() == 1);
}

} // namespace saga_hardening_test
