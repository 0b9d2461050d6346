// SPDX-License-Identifier: MIT
// Conditional steps: what a condition receives, that its answer is stored and final, and how the steps around it behave.
#include <string>
#include <tuple>
#include <vector>

#include <vouch/saga.hpp>
#include <vouch/testing.hpp>
#include <vouch/vouch.hpp>

#include "catch.hpp"
#include "saga_support.hpp"

namespace saga_conditions_test {

using namespace saga_support;
using vouch::state;
using vouch::step_call;
using vouch::step_results;

namespace {

/// Three steps, of which the second has a condition and the third rejects a payload that says so.
template <class Condition>
vouch::saga_definition second_if(stage& on, Condition&& condition) {
    return define()
        .step("s1", on.does("do 1", "r1"), on.does("undo 1"))
        .step("s2", on.does("do 2", "r2"), on.does("undo 2"), {.retry = times(2)})
        .when(std::forward<Condition>(condition))
        .step("s3",
              [&on](const std::string& payload) {
                  on.note("do 3");
                  if (payload == "bad") {
                      throw vouch::reject("no");
                  }
              })
        .build();
}

} // namespace

TEST_CASE("condition: a step whose condition is false is not done, not undone, and shown as skipped") {
    stage on;
    const bool answer = GENERATE(true, false);
    const auto d = second_if(on, [&](const std::string&) { return answer; });
    on.play(d);
    SECTION("in a saga that completes") {
        const auto id = on.begin(d);
        on.run();
        CHECK(on.log == (answer ? lines{"do 1", "do 2", "do 3"} : lines{"do 1", "do 3"}));
        CHECK(on.line(id) ==
              std::string("order v1 completed [s1 done, s2 ") + (answer ? "done" : "skipped") + ", s3 done]");
        CHECK(on.tags() == (answer ? lines{"completed"} : lines{"skipped s2", "completed"}));
    }
    SECTION("in a saga that is compensated") {
        const auto id = on.begin(d, "bad");
        on.run();
        CHECK(on.log == (answer ? lines{"do 1", "do 2", "do 3", "undo 2 <r2>", "undo 1 <r1>"}
                                : lines{"do 1", "do 3", "undo 1 <r1>"}));
        CHECK(on.line(id) == std::string("order v1 compensated because no [s1 undone, s2 ") +
                                 (answer ? "undone" : "skipped") + ", s3 failed]");
    }
}

TEST_CASE("condition: it receives the context and the results of the earlier steps, in any of its forms") {
    stage on;
    const auto d = define()
                       .step("a", [] { return "7"; })
                       .step("b", on.does("b"))
                       .when([](const std::string& payload) { return payload == "gift"; })
                       .step("c", on.does("c"))
                       .when([](const step_results& r) { return r.of("a") == "7" && !r.of("b") && r.is_skipped("b"); })
                       .step("d", on.does("d"))
                       .when([](const std::string& payload, const step_results& r) {
                           return payload == "gift" && r.as<std::string>("a") == "7" && !r.as<std::string>("nothing");
                       })
                       .build();
    on.play(d);
    on.begin(d, "gift");
    on.run();
    CHECK(on.log == lines{"b", "d"});
    on.log.clear();
    on.begin(d, "plain");
    on.run();
    CHECK(on.log == lines{"c"});
}

TEST_CASE("condition: of a step and its alternative exactly one runs") {
    stage on;
    const auto d = define()
                       .step("parcel", on.does("parcel"), on.does("no parcel"))
                       .when([](const std::string& payload) { return payload == "a lamp"; })
                       .command("freight", {.queue = "freight", .topic = "do", .undo = "undo"})
                       .otherwise()
                       .step("bill", on.rejects("bill", "no"))
                       .build();
    on.play(d);
    on.on("freight", "do", [&](vouch::delivery&) { on.note("freight"); });
    on.on("freight", "undo", [&](vouch::delivery&) { on.note("no freight"); });
    SECTION("the first") {
        const auto id = on.begin(d, "a lamp");
        on.run_all();
        CHECK(on.log == lines{"parcel", "bill", "no parcel <>"});
        CHECK(on.commands(id).empty());
        CHECK(on.line(id) == "order v1 compensated because no [parcel undone, freight skipped, bill failed]");
    }
    SECTION("the second") {
        const auto id = on.begin(d, "a piano");
        on.run_all();
        CHECK(on.log == lines{"freight", "bill", "no freight"});
        CHECK(on.line(id) == "order v1 compensated because no [parcel skipped, freight undone, bill failed]");
    }
}

TEST_CASE("condition: a stored answer is final, whatever the function returns later") {
    stage on;
    bool answer = GENERATE(true, false);
    int asked = 0;
    const auto d = second_if(on, [&](const std::string&) {
        asked += 1;
        return answer;
    });
    on.play(d);
    const auto id = on.begin(d, "bad");
    on.runner().run_once();
    on.runner().run_once();
    REQUIRE(asked == 1);
    answer = !answer;
    auto dying = on.runner();
    std::ignore = dying.handle(dying.claim().front()); // does the second step, or the third
    on.pass(5min);
    on.run();
    CHECK(asked == 1);
    CHECK(on.log == (answer ? lines{"do 1", "do 3", "do 3", "undo 1 <r1>"}
                            : lines{"do 1", "do 2", "do 2", "do 3", "undo 2 <r2>", "undo 1 <r1>"}));
    CHECK(on.status(id).is_compensated());
}

TEST_CASE("condition: adding or removing one does not change what a running saga has done") {
    stage on;
    const auto always = define().step("s1", on.does("do 1"), on.does("undo 1")).build();
    const auto never =
        define().step("s1", on.does("do 1"), on.does("undo 1")).when([](const std::string&) { return false; }).build();
    SECTION("added after the step has begun: it is gone through with") {
        auto e = never.begin(on.outbox, {.queue = "sagas"}, std::string("p"));
        e.progress = vouch::encode_progress({.definition = "order", .version = 1, .steps = {{.name = "s1"}}});
        on.play(never);
        on.emit(e);
        on.run();
        CHECK(on.log == lines{"do 1"});
    }
    SECTION("taken away before its answer: the step is done") {
        auto e = always.begin(on.outbox, {.queue = "sagas"}, std::string("p"));
        e.progress = vouch::encode_progress(
            {.definition = "order", .version = 1, .steps = {{.name = "s1", .state = vouch::step_state::undecided}}});
        on.play(always);
        on.emit(e);
        on.run();
        CHECK(on.log == lines{"do 1"});
    }
    SECTION("taken away after the step was skipped: it stays skipped") {
        on.play(never);
        const auto id = on.begin(never);
        on.runner().run_once();
        on.router("sagas") = vouch::router(on.outbox);
        on.play(always);
        on.run();
        CHECK(on.log.empty());
        CHECK(on.line(id) == "order v1 completed [s1 skipped]");
    }
}

TEST_CASE("condition: one that throws fails its step, which has had no effect") {
    stage on;
    SECTION("rejecting: at once") {
        const auto d = second_if(on, [](const std::string&) -> bool { throw vouch::reject("undecided"); });
        on.play(d);
        const auto id = on.begin(d);
        on.run();
        CHECK(on.line(id) == "order v1 compensated because undecided [s1 undone, s2 failed]");
    }
    SECTION("failing: by the step's policy") {
        int asked = 0;
        const auto d = second_if(on, [&](const std::string&) -> bool {
            asked += 1;
            throw vouch::failure("busy");
        });
        on.play(d);
        const auto id = on.begin(d);
        on.run_out();
        CHECK(asked == 2);
        CHECK(on.line(id) == "order v1 compensated because busy [s1 undone, s2 failed]");
    }
    CHECK(on.log == lines{"do 1", "undo 1 <r1>"});
}

TEST_CASE("condition: a saga cancelled before the answer has nothing of this step to undo") {
    stage on;
    const auto d = second_if(on, [](const std::string&) { return true; });
    on.play(d);
    const auto id = on.begin(d);
    on.runner().run_once();
    on.crash(); // a claim that would have asked the condition
    on.pass(5min);
    std::ignore = vouch::transact(on.store, [&](auto& tx) { return vouch::request_cancel(tx, id, on.clock()); });
    on.run();
    CHECK(on.log == lines{"do 1", "undo 1 <r1>"});
    CHECK(on.line(id) == "order v1 compensated because cancelled [s1 undone, s2 failed]");
}

TEST_CASE("condition: one without a step, a second one, and an alternative to an unconditional step are refused") {
    const auto refused = [](const auto& make) {
        const auto e = error_of([&] { std::ignore = make().build(); });
        REQUIRE(e);
        CHECK(e->kind() == vouch::error_kind::invalid_argument);
        return std::string(e->what());
    };
    const auto nothing = [] {};
    const auto yes = [](const std::string&) { return true; };
    CHECK(refused([&] { return define().when(yes); }) == "saga step 0: when has no step before it");
    CHECK(refused([&] { return define().step("a", nothing).when(yes).when(yes); }) ==
          "saga step 0: when is a second condition");
    CHECK(refused([&] { return define().step("a", nothing).when(yes).step("b", nothing).otherwise().otherwise(); }) ==
          "saga step 1: otherwise is a second condition");
    CHECK(refused([&] { return define().step("a", nothing).otherwise(); }) ==
          "saga step 0: otherwise needs a step with a condition before it");
    CHECK(refused([&] { return define().step("a", nothing).step("b", nothing).otherwise(); }) ==
          "saga step 1: otherwise needs a step with a condition before it");
}

} // namespace saga_conditions_test
