// SPDX-License-Identifier: MIT
// Requests to cancel, resume and requeue of sagas.
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include <vouch/saga.hpp>
#include <vouch/testing.hpp>
#include <vouch/vouch.hpp>

#include "catch.hpp"
#include "saga_three_steps.hpp"

namespace saga_cancel_test {

using namespace saga_support;
using vouch::event_kind;
using vouch::state;
using vouch::step_call;

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

} // namespace saga_cancel_test
