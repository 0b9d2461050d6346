// SPDX-License-Identifier: MIT
// The engine with steps in this process: forward, back, retries and timeouts.
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include <vouch/saga.hpp>
#include <vouch/testing.hpp>
#include <vouch/vouch.hpp>

#include "catch.hpp"
#include "saga_three_steps.hpp"

namespace saga_steps_test {

struct number {
    int value = 0;
};

} // namespace saga_steps_test

template <>
struct vouch::codec<saga_steps_test::number> {
    static saga_steps_test::number decode(std::string_view bytes) { return {std::stoi(std::string(bytes))}; }
};

namespace saga_steps_test {

using namespace saga_support;
using vouch::event_kind;
using vouch::state;
using vouch::step_call;

TEST_CASE("saga: it runs its steps in order, one per claim, and then is completed") {
    stage on;
    const auto d = three(on, 0, on.does(""));
    on.play(d);
    const auto id = on.begin(d);
    auto runner = on.runner();
    for (std::size_t i = 1; i <= 3; ++i) {
        CHECK(runner.run_once().advanced == 1);
        CHECK(on.log.size() == i);
    }
    CHECK(runner.run_once().succeeded == 1);
    CHECK(on.log == lines{"do 1", "do 2", "do 3"});
    CHECK(on.tags() == lines{"completed"});
    CHECK(on.status(id).is_completed());
    CHECK(on.status(id).steps[1].result == "r2");
}

TEST_CASE("saga: a rejected step is not undone; earlier steps are, in reverse, each with its own result") {
    stage on;
    const auto d = three(on, 3, on.rejects("do 3", "address_undeliverable"));
    on.play(d);
    const auto id = on.begin(d);
    on.run();
    CHECK(on.log == lines{"do 1", "do 2", "do 3", "undo 2 <r2>", "undo 1 <r1>"});
    CHECK(on.tags() == lines{"compensated"});
    CHECK(on.entry(id).state == state::succeeded);
    CHECK(on.line(id) == "order v1 compensated because address_undeliverable [s1 undone, s2 undone, s3 failed]");
}

TEST_CASE("saga: a rejection proves that nothing was done only in the first attempt of its step") {
    stage on;
    bool has_paid = false;
    const auto d = three(on, 2, [&](step_call&) -> std::string {
        on.note("do 2");
        if (has_paid) {
            throw vouch::reject("paid_already");
        }
        has_paid = true;
        throw vouch::failure("no_answer");
    });
    on.play(d);
    const auto id = on.begin(d);
    on.runner().run_once();
    SECTION("a try before it failed: what that has done is undone") {
        on.run_out();
        CHECK(on.log == lines{"do 1", "do 2", "do 2", "undo 2 <>", "undo 1 <r1>"});
        CHECK(on.status(id).reason == "paid_already");
    }
    SECTION("the claim before it lapsed, which counts as no attempt: what that has done is undone") {
        auto dying = on.runner();
        std::ignore = dying.handle(dying.claim().front()); // it has paid, and then crashes
        on.pass(5min);
        SECTION("at once") { on.run_out(); }
        SECTION("also if the next claim is released unhandled") {
            auto stopping = on.runner();
            const auto ticket = ticket_of(stopping.claim().front());
            settle(on.store, ticket, vouch::release{}, on.clock());
            on.run_out();
        }
        CHECK(on.log == lines{"do 1", "do 2", "do 2", "undo 2 <>", "undo 1 <r1>"});
    }
    SECTION("the claim before it was released unhandled: there is nothing to undo") {
        has_paid = true;
        auto stopping = on.runner();
        const auto ticket = ticket_of(stopping.claim().front());
        settle(on.store, ticket, vouch::release{}, on.clock());
        on.run_out();
        CHECK(on.log == lines{"do 1", "do 2", "undo 1 <r1>"});
        CHECK(on.line(id) == "order v1 compensated because paid_already [s1 undone, s2 failed]");
    }
}

TEST_CASE("saga: a compensation decodes the result of its step; bytes that do not decode leave it stuck") {
    stage on;
    const bool is_valid = GENERATE(true, false);
    const auto d = define()
                       .step(
                           "s1", [&] { return is_valid ? "7" : "seven"; },
                           [&](step_call& call) { on.note("undo " + std::to_string(call.result_as<number>().value)); })
                       .step("s2", on.rejects("do 2", "no"))
                       .build();
    on.play(d);
    const auto id = on.begin(d);
    on.run();
    CHECK(on.status(id).is_compensated() == is_valid);
    CHECK(on.log == (is_valid ? lines{"do 2", "undo 7"} : lines{"do 2"}));
    CHECK(on.entry(id).last_error == (is_valid ? "" : "undecodable_result"));
}

TEST_CASE("saga: if the first step rejects, there is nothing to undo") {
    stage on;
    const auto d = three(on, 1, on.rejects("do 1", "no"));
    on.play(d);
    const auto id = on.begin(d);
    CHECK(on.run().succeeded == 1);
    CHECK(on.log == lines{"do 1"});
    CHECK(on.status(id).is_compensated());
    CHECK(on.status(id).reason == "no");
}

TEST_CASE("saga: a step that fails is retried by its policy; each step has its own attempts") {
    stage on;
    const auto flaky = [&](step_call& call) {
        on.note("do 2 attempt " + std::to_string(call.attempt()));
        if (call.attempt() < 3) {
            throw vouch::failure("busy");
        }
    };
    const auto d = three(on, 2, flaky, {.retry = vouch::retry_policy{.backoff = vouch::fixed{10s}, .attempts_max = 3}});
    on.play(d);
    const auto id = on.begin(d);
    on.run();
    CHECK(on.entry(id).state == state::retrying);
    CHECK(on.entry(id).due_at == on.start + 10s);
    CHECK(on.line(id) == "order v1 forward at s2 [s1 done, s2 begun], attempt 1");
    on.run_out();
    CHECK(on.log == lines{"do 1", "do 2 attempt 1", "do 2 attempt 2", "do 2 attempt 3", "do 3"});
    CHECK(on.clock() == on.start + 20s);
}

TEST_CASE("saga: a step that has used up its attempts is unknown, and undone too, without a result") {
    stage on;
    const auto d = three(on, 2, on.fails("do 2", "bank_timeout"), {.retry = times(2)});
    on.play(d);
    const auto id = on.begin(d);
    on.run_out();
    CHECK(on.log == lines{"do 1", "do 2", "do 2", "undo 2 <>", "undo 1 <r1>"});
    CHECK(on.line(id) == "order v1 compensated because bank_timeout [s1 undone, s2 undone]");
}

TEST_CASE("saga: a step that crashes its runner every time ends unknown, and is undone") {
    stage on;
    const auto d = three(on, 2, on.does("do 2"), {.retry = times(2)});
    on.play(d);
    const auto id = on.begin(d);
    on.runner().run_once();
    for (int crashes = 0; crashes < 3; ++crashes) {
        on.crash();
        on.pass(5min);
    }
    on.run();
    CHECK(on.log == lines{"do 1", "undo 2 <>", "undo 1 <r1>"});
    CHECK(on.status(id).reason == "attempts_exhausted");
}

TEST_CASE("saga: a crash between the effect and the checkpoint repeats the step, under the same key") {
    stage on;
    std::vector<vouch::id> keys;
    const auto d = three(on, 2, [&](step_call& call) { keys.push_back(call.key()); });
    on.play(d);
    on.begin(d);
    on.runner().run_once();
    auto dying = on.runner();
    for (auto& e : dying.claim()) {
        std::ignore = dying.handle(e); // it has had its effect, and then crashes
    }
    on.pass(5min);
    on.run();
    REQUIRE(keys.size() == 2);
    CHECK(keys[0] == keys[1]);
    CHECK(on.log == lines{"do 1", "do 3"});
    CHECK(on.tags() == lines{"completed"});
}

TEST_CASE("saga: a step that is not done before its timeout is unknown, with or without retries") {
    stage on;
    const auto d =
        three(on, 2, on.fails("do 2", "busy"),
              {.retry = vouch::retry_policy{.backoff = vouch::fixed{10s}, .attempts_max = 100}, .timeout = 25s});
    on.play(d);
    const auto id = on.begin(d);
    on.pass(1h); // time in the queue does not count
    on.run_out();
    CHECK(on.log == lines{"do 1", "do 2", "do 2", "do 2", "undo 2 <>", "undo 1 <r1>"});
    CHECK(on.status(id).reason == "timed_out");
}

TEST_CASE("saga: a compensation is retried; without attempts left the saga is dead and shows where it is stuck") {
    stage on;
    bool bank_is_back = false;
    const auto d = define()
                       .step("s1", on.does("do 1", "r1"), on.does("undo 1"))
                       .step("s2", on.does("do 2", "r2"),
                             [&](step_call& call) {
                                 on.note("undo 2 <" + std::string(call.result()) + ">");
                                 if (!bank_is_back) {
                                     throw vouch::failure("bank_down");
                                 }
                             },
                             {.retry = times(2)})
                       .step("s3", on.rejects("do 3", "no"))
                       .build();
    on.play(d);
    const auto id = on.begin(d);
    on.run_out();
    CHECK(on.log == lines{"do 1", "do 2", "do 3", "undo 2 <r2>", "undo 2 <r2>"});
    CHECK(on.entry(id).state == state::dead);
    CHECK(on.line(id) == "order v1 dead, back at s2 because no [s1 done, s2 done, s3 failed], stuck with bank_down");
    CHECK(on.tags().empty());

    SECTION("and resume continues from there, with all its retries, under the same keys") {
        on.log.clear();
        bank_is_back = true;
        const auto next = vouch::transact(on.store, [&](auto& tx) {
            return vouch::resume(tx, {.dead = id, .successor = on.outbox.fresh_id(), .now = on.clock()});
        });
        REQUIRE(next.what == vouch::receipt::kind::inserted);
        on.run_out();
        CHECK(on.log == lines{"undo 2 <r2>", "undo 1 <r1>"});
        CHECK(on.status(next.id).is_compensated());
        CHECK(on.status(next.id).origin == id);
        CHECK(on.entry(id).state == state::dead);
    }
    SECTION("and resumed too early it is tried as often again") {
        on.log.clear();
        std::ignore = vouch::transact(on.store, [&](auto& tx) {
            return vouch::resume(tx, {.dead = id, .successor = on.outbox.fresh_id(), .now = on.clock()});
        });
        on.run_out();
        CHECK(on.log == lines{"undo 2 <r2>", "undo 2 <r2>"});
    }
}

TEST_CASE("saga: a compensation that rejects, or crashes its runner every time, is stuck too") {
    stage on;
    const bool by_crash = GENERATE(false, true);
    const auto d = define()
                       .step("s1", on.does("do 1", "r1"), on.rejects("undo 1", "refund_refused"), {.retry = times(2)})
                       .step("s2", on.rejects("do 2", "no"))
                       .build();
    on.play(d);
    const auto id = on.begin(d);
    on.runner().run_once();
    on.runner().run_once();
    for (int crashes = 0; by_crash && crashes < 3; ++crashes) {
        on.crash();
        on.pass(5min);
    }
    on.run();
    CHECK(on.entry(id).state == state::dead);
    CHECK(on.entry(id).last_error == (by_crash ? "attempts_exhausted" : "refund_refused"));
    CHECK(on.status(id).step() == "s1");
}

TEST_CASE("saga: a step without a compensation is kept") {
    stage on;
    const auto d = define()
                       .step("s1", on.does("do 1"), on.does("undo 1"))
                       .step("s2", on.does("do 2"))
                       .step("s3", on.rejects("do 3", "no"))
                       .build();
    on.play(d);
    const auto id = on.begin(d);
    on.run();
    CHECK(on.log == lines{"do 1", "do 2", "do 3", "undo 1 <>"});
    CHECK(on.line(id) == "order v1 compensated because no [s1 undone, s2 kept, s3 failed]");
}

} // namespace saga_steps_test
