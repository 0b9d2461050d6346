// SPDX-License-Identifier: MIT
// The engine with steps in this process: forward, back, and every failure in between.
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include <vouch/saga.hpp>
#include <vouch/testing.hpp>
#include <vouch/vouch.hpp>

#include "catch.hpp"
#include "saga_support.hpp"

namespace saga_local_test {

struct number {
    int value = 0;
};

} // namespace saga_local_test

template <>
struct vouch::codec<saga_local_test::number> {
    static saga_local_test::number decode(std::string_view bytes) { return {std::stoi(std::string(bytes))}; }
};

namespace saga_local_test {

using namespace saga_support;
using vouch::event_kind;
using vouch::state;
using vouch::step_call;

namespace {

/// Three steps; the caller gives one of them.
template <class Forward>
vouch::saga_definition three(stage& on, std::size_t which, Forward&& forward, vouch::step_options how = {},
                             vouch::saga_options options = {}) {
    auto d = define(std::move(options));
    for (std::size_t i = 1; i <= 3; ++i) {
        const auto n = std::to_string(i);
        if (i == which) {
            d.step("s" + n, forward, on.does("undo " + n), how);
        } else {
            d.step("s" + n, on.does("do " + n, "r" + n), on.does("undo " + n));
        }
    }
    return d.build();
}

} // namespace

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

TEST_CASE("requeue: a dead saga repeats its work only after requeue_saga; resume keeps its keys") {
    stage on;
    std::vector<vouch::id> paid;
    const auto d = define({.version = 7})
                       .step(
                           "pay", [&](step_call& call) { paid.push_back(call.key()); }, on.does("refund"))
                       .step("ship", on.does("ship"))
                       .build();
    on.play({d, define({.version = 8}).step("new", on.does("new")).build()});
    const auto id = on.begin(d);
    auto dying = on.runner();
    std::ignore = dying.handle(dying.claim().front()); // it has paid, and crashes before the checkpoint
    on.pass(5min);
    std::ignore = vouch::transact(on.store, [&](auto& tx) { return tx.cancel(id, "abandoned", on.clock()); });
    const auto replaced = [&](vouch::receipt (*how)(vouch::memory::transaction&, const vouch::requeue_request&)) {
        return vouch::transact(on.store, [&](auto& tx) {
            return how(tx, {.dead = id, .successor = on.outbox.fresh_id(), .now = on.clock()});
        });
    };
    CHECK(replaced(vouch::requeue<vouch::memory::transaction>) == vouch::receipt{});
    SECTION("resume") {
        const auto next = replaced(vouch::resume<vouch::memory::transaction>);
        on.run();
        CHECK(paid.size() == 2);
        CHECK(paid.front() == paid.back());
        CHECK(on.status(next.id).origin == id);
    }
    SECTION("requeue_saga: another saga, of the same version") {
        const auto next = replaced(vouch::requeue_saga<vouch::memory::transaction>);
        on.run();
        CHECK(paid.size() == 2);
        CHECK(paid.front() != paid.back());
        CHECK(on.status(next.id).origin == next.id);
        CHECK(on.status(next.id).version == 7);
        CHECK(replaced(vouch::requeue_saga<vouch::memory::transaction>).id == next.id);
    }
    SECTION("requeue_saga refuses an entry that is not a saga, or not dead") {
        const auto plain = on.emit({.queue = "sagas", .topic = "t"});
        for (const auto& other : {plain, on.begin(d), id_of(99)}) {
            CHECK(vouch::transact(on.store, [&](auto& tx) {
                      return vouch::requeue_saga(tx,
                                                 {.dead = other, .successor = on.outbox.fresh_id(), .now = on.clock()});
                  }) == vouch::receipt{});
        }
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

TEST_CASE("saga: one that is resumed in the middle of a step does not know whether it had an effect") {
    stage on;
    const auto d = three(on, 0, on.does(""));
    on.play(d);
    const auto id = on.begin(d);
    on.runner().run_once();
    auto dying = on.runner();
    std::ignore = dying.handle(dying.claim().front()); // it has had its effect
    on.pass(5min);
    const auto next = vouch::transact(on.store, [&](auto& tx) {
        std::ignore = tx.cancel(id, "abandoned", on.clock());
        const auto fresh = vouch::resume(tx, {.dead = id, .successor = on.outbox.fresh_id(), .now = on.clock()});
        std::ignore = vouch::request_cancel(tx, fresh.id, on.clock());
        return fresh.id;
    });
    on.run();
    CHECK(on.log == lines{"do 1", "do 2", "undo 2 <>", "undo 1 <r1>"});
    CHECK(on.status(next).is_compensated());
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

TEST_CASE("saga: a request to cancel makes it compensate, at any moment") {
    stage on;
    const auto request = [&](const vouch::id& id) {
        return vouch::transact(on.store, [&](auto& tx) { return vouch::request_cancel(tx, id, on.clock()); });
    };
    SECTION("before it has begun") {
        const auto d = three(on, 0, on.does(""));
        on.play(d);
        const auto id = on.begin(d);
        CHECK(request(id) == vouch::verdict::repeated); // it was due anyway
        on.run();
        CHECK(on.log.empty());
        CHECK(on.status(id).reason == "cancelled");
    }
    SECTION("between two steps") {
        const auto d = three(on, 0, on.does(""));
        on.play(d);
        const auto id = on.begin(d);
        on.runner().run_once();
        std::ignore = request(id);
        on.run();
        CHECK(on.log == lines{"do 1", "undo 1 <r1>"});
    }
    SECTION("while a step runs: its compensation receives its result") {
        vouch::id id;
        const auto d = three(on, 2, [&](step_call&) {
            on.note("do 2");
            CHECK(request(id) == vouch::verdict::applied);
            CHECK(request(id) == vouch::verdict::repeated);
            return std::string("r2");
        });
        on.play(d);
        id = on.begin(d);
        on.run();
        CHECK(on.log == lines{"do 1", "do 2", "undo 2 <r2>", "undo 1 <r1>"});
        CHECK(on.status(id).is_compensated());
    }
    SECTION("while it completes") {
        const auto d = three(on, 0, on.does(""));
        on.play(d);
        const auto id = on.begin(d);
        for (int steps = 0; steps < 3; ++steps) {
            on.runner().run_once();
        }
        auto runner = on.runner();
        auto handled = runner.handle_all(runner.claim());
        CHECK(request(id) == vouch::verdict::applied);
        CHECK(runner.settle(handled).retried == 1);
        on.run_out();
        CHECK(on.log == lines{"do 1", "do 2", "do 3", "undo 3 <r3>", "undo 2 <r2>", "undo 1 <r1>"});
        CHECK(on.tags() == lines{"compensated"});
    }
    SECTION("but not after it has ended, nor of one that does not exist; then no mark is left") {
        const auto d = three(on, 0, on.does(""));
        on.play(d);
        const auto id = on.begin(d);
        on.run();
        CHECK(request(id) == vouch::verdict::stale);
        CHECK(request(id_of(99)) == vouch::verdict::unknown);
        CHECK(on.store.list(vouch::query::all(std::string(vouch::saga_marks_queue))).empty());
    }
}

TEST_CASE("cancel: a request for an entry that is not a saga is refused, and writes nothing") {
    stage on;
    auto e = vouch::emission{.queue = "mails", .topic = "send"};
    SECTION("without progress") {}
    SECTION("with the progress of another kind of handler") { e.progress = "page 7"; }
    e.due_in = 1h;
    const auto mail = on.emit(e);
    const auto before = on.entry(mail);
    CHECK(vouch::transact(on.store, [&](auto& tx) { return vouch::request_cancel(tx, mail, on.clock() + 1min); }) ==
          vouch::verdict::unknown);
    CHECK(on.entry(mail) == before); // it is not due earlier
    CHECK(on.store.counts(vouch::saga_marks_queue).total() == 0);
}

TEST_CASE("cancel: a saga whose progress cannot be read is refused") {
    stage on;
    const auto d = three(on, 0, on.does(""));
    auto e = d.begin(on.outbox, {.queue = "sagas"}, std::string("p"));
    e.progress.back() = static_cast<char>(e.progress.back() + 1);
    const auto id = on.emit(e);
    CHECK(kind_of([&] {
              vouch::transact(on.store, [&](auto& tx) { return vouch::request_cancel(tx, id, on.clock()); });
          }) == vouch::error_kind::unsupported);
    CHECK(on.store.counts(vouch::saga_marks_queue).total() == 0);
}

TEST_CASE("cancel: a request and a resume before the first checkpoint work together, in either order") {
    stage on;
    const auto d = three(on, 0, on.does(""));
    on.play(d);
    const auto id = on.begin(d);
    const auto request = [&](const vouch::id& saga) {
        std::ignore = vouch::transact(on.store, [&](auto& tx) { return vouch::request_cancel(tx, saga, on.clock()); });
    };
    const auto resumed = [&](const vouch::id& saga) {
        return vouch::transact(on.store, [&](auto& tx) {
            std::ignore = tx.cancel(saga, "abandoned", on.clock());
            return vouch::resume(tx, {.dead = saga, .successor = on.outbox.fresh_id(), .now = on.clock()}).id;
        });
    };
    vouch::id last;
    SECTION("the request first") {
        request(id);
        last = resumed(resumed(id));
    }
    SECTION("the resume first") {
        last = resumed(resumed(id));
        request(last);
    }
    on.run();
    CHECK(on.status(last).reason == "cancelled");
    CHECK(on.status(last).origin == id);
}

TEST_CASE("saga: an unknown definition or version is released for later and reported, never buried or run") {
    stage on;
    const auto v1 = three(on, 0, on.does(""));
    on.play(three(on, 0, on.does(""), {}, {.version = 2}));
    SECTION("of a version that is not here") {
        const auto id = on.begin(v1);
        CHECK(on.run().released == 1);
        CHECK(on.tags() == lines{"unknown_version"});
        CHECK(on.entry(id).state == state::pending);
        CHECK(on.entry(id).attempts == 0);
        CHECK(on.entry(id).due_at == on.start + vouch::detail::saga_recheck_interval);
    }
    SECTION("of another definition") {
        auto e = v1.begin(on.outbox, {.queue = "sagas"}, std::string("p"));
        auto p = *vouch::decode_progress(e.progress);
        p.definition = "invoice";
        e.progress = vouch::encode_progress(p);
        const auto id = on.emit(e);
        CHECK(on.run().released == 1);
        CHECK(on.tags() == lines{"unknown_definition"});
        CHECK(on.entry(id).progress == e.progress);
    }
    SECTION("of the same version with other steps") {
        auto e = v1.begin(on.outbox, {.queue = "sagas"}, std::string("p"));
        e.progress =
            vouch::encode_progress({.definition = "order", .version = 2, .steps = {{.name = "something else"}}});
        on.emit(e);
        CHECK(on.run().released == 1);
        CHECK(on.tags() == lines{"unknown_version"});
    }
    SECTION("also when it has expired") {
        auto e = v1.begin(on.outbox, {.queue = "sagas"}, std::string("p"));
        e.expires_in = 1s;
        const auto id = on.emit(e);
        on.pass(1s);
        CHECK(on.run().released == 1);
        CHECK(on.entry(id).state == state::pending);
    }
    CHECK(on.log.empty());
}

TEST_CASE("saga: versions run side by side; an entry without progress has the newest") {
    stage on;
    const auto v1 = define().step("old", on.does("old")).build();
    const auto v2 = define({.version = 2}).step("new", on.does("new")).build();
    on.play({v2, v1});
    on.begin(v1);
    on.begin(v2);
    on.emit({.queue = "sagas", .topic = "order"});
    on.run();
    CHECK(on.log == lines{"old", "new", "new"});
}

TEST_CASE("saga: progress that cannot be read is left unchanged, and the entry is claimed again later") {
    stage on;
    const auto d = three(on, 0, on.does(""));
    on.play(d);
    auto e = d.begin(on.outbox, {.queue = "sagas"}, std::string("p"));
    e.progress.back() = static_cast<char>(e.progress.back() + 1);
    const auto id = on.emit(e);
    CHECK(on.run().released == 1);
    CHECK(on.tags() == lines{"unreadable_progress"});
    CHECK(on.entry(id).progress == e.progress);
    CHECK(on.log.empty());
}

TEST_CASE("saga: a result that is too large makes it compensate, and its step is undone without it") {
    stage on;
    const std::string large(vouch::limits{}.progress_max - 600, 'x');
    const std::size_t which = GENERATE(2U, 3U);
    const auto d = three(on, which, on.does("do large", large + std::string(300, 'x')));
    on.play(d);
    const auto id = on.begin(d);
    on.run();
    CHECK(on.status(id).reason == "progress_too_large");
    const lines undone =
        which == 2 ? lines{"undo 2 <>", "undo 1 <r1>"} : lines{"undo 3 <>", "undo 2 <r2>", "undo 1 <r1>"};
    CHECK(lines(on.log.end() - static_cast<std::ptrdiff_t>(which), on.log.end()) == undone);
}

TEST_CASE("saga: its end emits its topic, in the settling transaction, with the reason") {
    stage on(vouch::bindings{}.bind("order.#", "mail"));
    const auto d = three(on, 2,
                         [](const std::string& payload) {
                             if (payload == "bad") {
                                 throw vouch::reject("no");
                             }
                         },
                         {}, {.completed = "order.confirmed", .compensated = "order.failed"});
    on.play(d);
    on.begin(d, "good");
    on.begin(d, "bad");
    on.run();
    const auto mails = on.store.list({.by = vouch::query::path::all, .queue = "mail", .payloads = true});
    REQUIRE(mails.size() == 2);
    const bool good_first = mails[0].payload == "good";
    const auto& good = mails[good_first ? 0 : 1];
    const auto& bad = mails[good_first ? 1 : 0];
    CHECK(good.topic == "order.confirmed");
    CHECK(bad.topic == "order.failed");
    CHECK(bad.headers.back() == std::pair<std::string, std::string>("saga-reason", "no"));
}

TEST_CASE("saga: one whose topic is not bound waits until it is") {
    stage on;
    const auto d = three(on, 0, on.does(""), {}, {.completed = "order.confirmed"});
    on.play(d);
    const auto id = on.begin(d);
    CHECK(on.run().released == 1);
    CHECK(on.tags() == lines{"unrouted"});
    CHECK(on.entry(id).state == state::pending);
    CHECK(on.log.size() == 3);
}

TEST_CASE("saga: a payload that does not decode is dead at once, but waits once a step is done") {
    stage on;
    auto d = define().step("s1", on.does("do 1"), on.does("undo 1")).step("s2", on.does("do 2")).build();
    d.check = [](const vouch::delivery& x) {
        if (x.payload() == "bad") {
            throw vouch::reject("undecodable");
        }
    };
    on.play(d);
    const auto bad = on.begin(d, "bad");
    on.run();
    CHECK(on.entry(bad).last_error == "undecodable");

    auto e = d.begin(on.outbox, {.queue = "sagas"}, std::string("bad"));
    e.progress = vouch::encode_progress({.definition = "order", .version = 1, .steps = {{.name = "s1"}}});
    const auto later = on.emit(e);
    on.run();
    CHECK(on.entry(later).state == state::pending);
    CHECK(on.tags() == lines{"undecodable"});
    CHECK(on.log.empty());
}

TEST_CASE("saga: a runner that settles too late changes nothing") {
    stage on;
    const auto d = three(on, 0, on.does(""));
    on.play(d);
    const auto id = on.begin(d);
    auto slow = on.runner();
    auto late = slow.handle_all(slow.claim());
    on.pass(5min);
    on.runner().run_once();
    CHECK(slow.settle(late).stale == 1);
    on.run();
    CHECK(on.log == lines{"do 1", "do 1", "do 2", "do 3"});
    CHECK(on.status(id).is_completed());
}

} // namespace saga_local_test
