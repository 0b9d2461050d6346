// SPDX-License-Identifier: MIT
// Remote participants: replies, rejections, timeouts, and replies at unexpected moments.
#include <array>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include <vouch/saga.hpp>
#include <vouch/testing.hpp>
#include <vouch/vouch.hpp>

#include "catch.hpp"
#include "saga_participants.hpp"

namespace saga_replies_test {

using namespace saga_support;
using vouch::delivery;
using vouch::state;
using vouch::verdict;

TEST_CASE("remote: a command carries all it needs, and the saga is not due until the reply") {
    played on;
    be_helpful(on, "a");
    be_helpful(on, "b");
    on.run();
    const auto sent = on.command();
    CHECK(sent.queue == "a");
    CHECK(sent.topic == "do");
    CHECK(sent.parent == on.saga);
    const auto as_seen = vouch::command_of(sent);
    REQUIRE(as_seen);
    CHECK(as_seen->id == sent.id);
    CHECK(as_seen->saga == on.saga);
    CHECK(as_seen->step == "sa");
    CHECK(as_seen->number == 1);
    CHECK(!as_seen->is_compensation);
    CHECK(as_seen->payload == "p");
    CHECK(as_seen->at == on.start);
    CHECK(on.run().claimed == 0);
    CHECK(on.line(on.saga) == "order v1 forward at sa [sa begun], waits for a do pending until 10000ms");

    on.run_all();
    CHECK(on.log == lines{"do a", "do b"});
    CHECK(on.tags() == lines{"completed"});
    CHECK(on.status(on.saga).steps[1].result == "b:p");
    CHECK(!vouch::command_of(on.entry(on.saga)));
}

TEST_CASE("remote: a rejection is a known failure and not undone; the reason is the participant's") {
    played on;
    be_helpful(on, "a");
    on.on("b", "do", [](delivery&) { throw vouch::reject("insufficient_stock"); });
    on.run_all();
    CHECK(on.log == lines{"do a", "undo a <a:p>"});
    CHECK(on.line(on.saga) == "order v1 compensated because insufficient_stock [sa undone, sb failed]");
    const auto undo = on.commands(on.saga).back();
    CHECK(vouch::command_of(undo)->is_compensation);
}

TEST_CASE("remote: a bury with a reply is a rejection too; any other death is unknown, and undone") {
    played on;
    be_helpful(on, "a");
    be_helpful(on, "b");
    SECTION("with a reply") {
        on.router("b") = vouch::router(on.outbox);
        on.on("b", "do", [](delivery&) -> vouch::outcome { return vouch::bury{.error = "no", .result = "sorry"}; });
        on.run_all();
        CHECK(on.log == lines{"do a", "undo a <a:p>"});
    }
    SECTION("without one") {
        on.router("b") = vouch::router(on.outbox);
        on.on("b", "do", [](delivery&) -> vouch::outcome { return vouch::bury{.error = "broken"}; });
        on.on("b", "undo", [&](delivery&) { on.note("undo b"); });
        on.run_all();
        CHECK(on.log == lines{"do a", "undo b", "undo a <a:p>"});
        CHECK(on.status(on.saga).reason == "broken");
    }
    SECTION("out of attempts") {
        on.router("b") = vouch::router(on.outbox);
        on.on("b", "do", [](delivery&) { throw vouch::failure("busy"); });
        on.on("b", "undo", [&](delivery&) { on.note("undo b"); });
        on.run_all();
        CHECK(on.log == lines{"do a", "undo b", "undo a <a:p>"});
    }
    SECTION("with a result too large to be kept: the work was done") {
        on.router("b") = vouch::router(on.outbox);
        on.on("b", "do", [](delivery&) { return std::string(vouch::limits{}.result_max + 1, 'x'); });
        on.on("b", "undo", [&](delivery&) { on.note("undo b"); });
        on.run_all();
        CHECK(on.log == lines{"do a", "undo b", "undo a <a:p>"});
        CHECK(on.status(on.saga).reason == "result_too_large");
    }
}

TEST_CASE("remote: a rejection proves that nothing was done only if the command was claimed once") {
    played on;
    be_helpful(on, "a");
    int calls = 0;
    const bool by_throwing = GENERATE(true, false);
    on.on("b", "do", [&](delivery&) -> vouch::outcome {
        on.note("do b");
        if (++calls == 1) {
            throw vouch::failure("no_answer"); // although it has shipped
        }
        if (by_throwing) {
            throw vouch::reject("shipped_already");
        }
        return vouch::bury{.error = "shipped_already", .result = "sorry"};
    });
    on.on("b", "undo", [&](delivery&) { on.note("undo b"); });
    SECTION("an attempt before it failed") {}
    SECTION("a claim before it lapsed, which counts as no attempt") {
        on.run();
        on.run("a");
        on.run();
        auto b = on.runner("b");
        std::ignore = b.handle(b.claim().front()); // it has shipped, and then crashes
        on.pass(5min);
        auto next = on.runner("b");
        next.run_once();
    }
    on.run_all();
    CHECK(on.log == lines{"do a", "do b", "do b", "undo b", "undo a <a:p>"});
    CHECK(on.line(on.saga) == "order v1 compensated because shipped_already [sa undone, sb undone]");
}

TEST_CASE("timeout: a command that was never claimed is cancelled, and there is nothing to undo") {
    played on;
    be_helpful(on, "a");
    on.run_all();
    on.pass(10s);
    on.run_all();
    CHECK(on.log == lines{"do a", "undo a <a:p>"});
    CHECK(on.line(on.saga) == "order v1 compensated because timed_out [sa undone, sb failed]");
    be_helpful(on, "b");
    CHECK(on.run("b").claimed == 0);
}

TEST_CASE("timeout: if the reply arrives exactly at the deadline, the first settle wins") {
    played on;
    be_helpful(on, "a");
    on.run();
    on.pass(10s);
    SECTION("the participant") {
        on.run("a");
        on.run();
        CHECK(on.log == lines{"do a"});
        CHECK(on.status(on.saga).steps[0].state == vouch::step_state::done);
    }
    SECTION("the saga") {
        on.run();
        on.run("a");
        CHECK(on.log.empty());
        CHECK(on.status(on.saga).is_compensated());
    }
}

TEST_CASE("timeout: a command between two attempts is cancelled, unknown, and undone") {
    played on;
    be_helpful(on, "a");
    on.on("b", "do", [](delivery&) { throw vouch::failure("busy"); }, {.backoff = vouch::fixed{1h}, .attempts_max = 5});
    on.on("b", "undo", [&](delivery&) { on.note("undo b"); });
    on.run_all();
    on.pass(10s);
    on.run_all();
    CHECK(on.log == lines{"do a", "undo b", "undo a <a:p>"});
    CHECK(on.status(on.saga).is_compensated());
}

TEST_CASE("timeout: while a participant holds the command the saga waits, and undoes nothing earlier") {
    played on;
    be_helpful(on, "a");
    be_helpful(on, "b");
    on.run();
    on.run("a");
    on.run();
    auto b = on.runner("b");
    auto held = b.handle_all(b.claim()); // it has had its effect
    on.pass(10s);
    on.run();
    CHECK(on.log == lines{"do a", "do b"});
    CHECK(on.status(on.saga).direction == vouch::saga_direction::back);
    CHECK(on.entry(on.saga).due_at == on.start + 5min); // when the lease ends
    SECTION("a late success is compensated, with its result") {
        b.settle(held);
        on.run_all();
        CHECK(on.log == lines{"do a", "do b", "undo b <b:p>", "undo a <a:p>"});
        CHECK(on.status(on.saga).is_compensated());
    }
    SECTION("a late rejection is a known failure") {
        held.front().outcome = vouch::bury{.error = "no", .result = ""};
        b.settle(held);
        on.run_all();
        CHECK(on.log == lines{"do a", "do b", "undo a <a:p>"});
    }
    SECTION("a retry is called back, and unknown") {
        held.front().outcome = vouch::retry{.error = "busy", .at = on.clock() + 1h};
        b.settle(held);
        on.pass(5min);
        on.run();
        on.run_all();
        CHECK(on.log == lines{"do a", "do b", "undo b <>", "undo a <a:p>"});
    }
    SECTION("a lease that is extended is waited for again") {
        std::ignore = vouch::transact(on.store, [&](auto& tx) {
            const auto ticket = ticket_of(held.front().entry);
            return tx.extend(std::span(&ticket, 1), on.clock(), 1h).front();
        });
        on.pass(5min);
        on.run();
        CHECK(on.entry(on.saga).state == state::pending);
        b.settle(held);
        on.run_all();
        CHECK(on.log == lines{"do a", "do b", "undo b <b:p>", "undo a <a:p>"});
    }
    SECTION("a participant that never comes back is unknown when its lease is over, and too late then") {
        on.pass(5min);
        on.run(); // before another worker claims it
        on.run_all();
        CHECK(on.log == lines{"do a", "do b", "undo b <>", "undo a <a:p>"});
        CHECK(b.settle(held).stale == 1);
        CHECK(on.status(on.saga).is_compensated());
    }
}

TEST_CASE("reply: one that arrives while the saga is claimed is not slept through") {
    played on;
    be_helpful(on, "a");
    be_helpful(on, "b");
    on.run();
    REQUIRE(vouch::transact(on.store, [&](auto& tx) { return tx.nudge(on.saga, on.clock()); }) == verdict::applied);
    auto runner = on.runner();
    auto handled = runner.handle_all(runner.claim()); // it has seen that there is no reply yet
    on.run("a");
    CHECK(runner.settle(handled).released == 1);
    CHECK(on.run().advanced == 1);
    CHECK(on.status(on.saga).step() == "sb");
}

TEST_CASE("reply: nudges, duplicates and replies out of order change nothing") {
    played on;
    be_helpful(on, "a");
    be_helpful(on, "b");
    on.run();
    on.run("a");
    on.run();
    const auto before = on.entry(on.saga).progress;
    for (int again = 0; again < 3; ++again) { // as if the first reply and an unrelated one arrived again
        std::ignore = vouch::transact(on.store, [&](auto& tx) { return tx.nudge(on.saga, on.clock()); });
        on.pass(1s);
        CHECK(on.run().released == 1);
        CHECK(on.entry(on.saga).progress == before);
        CHECK(on.entry(on.saga).attempts == 0);
    }
    auto stranger = vouch::draft{.id = id_of(500), .queue = "b", .topic = "do", .parent = on.saga};
    put(on.store, stranger, on.clock());
    std::ignore = vouch::transact(on.store, [&](auto& tx) { return tx.cancel(stranger.id, "no", on.clock()); });
    CHECK(on.run().released == 1);
    CHECK(on.entry(on.saga).progress == before);
    on.run_all();
    CHECK(on.log == lines{"do a", "do b"});
    CHECK(on.tags() == lines{"completed"});
}

TEST_CASE("reply: an early purge does not remove it before the saga has read it") {
    played on;
    be_helpful(on, "a");
    be_helpful(on, "b");
    const auto purge_all = [&] {
        for (const std::string queue : {"a", "b", "sagas"}) {
            purge(on.store, {.queue = queue, .before = on.clock() + 1s});
        }
    };
    for (int rounds = 0; rounds < 4; ++rounds) {
        on.run();
        on.run("a");
        on.run("b");
        purge_all();
    }
    CHECK(on.log == lines{"do a", "do b"});
    CHECK(on.tags() == lines{"completed"});
    purge_all();
    CHECK(on.store.counts("a").total() + on.store.counts("sagas").total() == 0);
}

TEST_CASE("reply: a step whose reply is lost is unknown, and undone") {
    played on;
    be_helpful(on, "a");
    on.run();
    auto e = on.definition.begin(on.outbox, {.queue = "sagas"}, std::string("p"));
    auto p = *vouch::decode_progress(on.entry(on.saga).progress);
    p.command = id_of(99); // there is no such entry
    p.owner = {};
    e.progress = vouch::encode_progress(p);
    const auto other = on.emit(e);
    on.run_all();
    CHECK(on.status(other).reason == "reply_lost");
    CHECK(on.status(other).is_compensated());
    CHECK(on.log == lines{"do a", "undo a <>"});
}

TEST_CASE("remote: cancel, expiry and exhaustion cancel the command, and wait for a worker that holds it") {
    played on;
    be_helpful(on, "a");
    be_helpful(on, "b");
    on.run();
    const bool is_held = GENERATE(false, true);
    auto a = on.runner("a");
    auto held = is_held ? a.handle_all(a.claim()) : vouch::runner<stage::store_type>::batch{};
    bool crashes_again = false;
    SECTION("a request to cancel") {
        std::ignore =
            vouch::transact(on.store, [&](auto& tx) { return vouch::request_cancel(tx, on.saga, on.clock()); });
        on.run();
    }
    SECTION("attempts spent by crashes") {
        const auto d = two_participants();
        auto e = d.begin(on.outbox, {.queue = "sagas"}, std::string("q"));
        e.attempts_max = 1;
        e.progress = on.entry(on.saga).progress;
        std::ignore = vouch::transact(on.store, [&](auto& tx) { return tx.cancel(on.saga, "abandoned", on.clock()); });
        on.saga = on.emit(e); // takes the command over, as a resume does
        on.crash();
        on.pass(5min - 1s);
        crashes_again = true; // a first lapse costs no attempt
    }
    if (is_held) {
        CHECK(is_live(on.entry(on.saga).state));
        a.settle(held);
    }
    if (crashes_again) {
        on.pass(1s);
        on.crash();
        on.pass(5min);
        on.run();
    }
    on.run_out();
    CHECK(on.status(on.saga).is_compensated());
    CHECK(on.log == (is_held ? lines{"do a", "undo a <a:p>"} : lines{}));
    for (const auto& c : on.commands(on.saga)) {
        CHECK(is_terminal(c.state));
    }
}

TEST_CASE("remote: one that expires while it waits cancels its command and compensates") {
    stage on;
    const auto d = two_participants();
    on.play(d);
    be_helpful(on, "a");
    auto e = d.begin(on.outbox, {.queue = "sagas"}, std::string("p"));
    e.expires_in = 5s;
    const auto id = on.emit(e);
    on.run_all();
    on.pass(10s);
    on.run_all();
    CHECK(on.log == lines{"do a", "undo a <a:p>"});
    CHECK(on.status(id).is_compensated());
    CHECK(on.status(id).reason == "expired");
}

TEST_CASE("remote: the requeue of a command is refused; resume the saga instead") {
    played on;
    be_helpful(on, "a");
    on.on("b", "do", [](delivery&) { throw vouch::reject("no"); });
    on.run_all();
    for (const auto& c : on.commands(on.saga)) {
        CHECK(vouch::transact(on.store, [&](auto& tx) {
                  return vouch::requeue(tx, {.dead = c.id, .successor = on.outbox.fresh_id(), .now = on.clock()});
              }).what == vouch::receipt::kind::refused);
    }
}

TEST_CASE("remote: a failing store costs the saga no attempt and no progress") {
    stage on;
    const auto d = define().step("s1", on.does("do 1"), on.does("undo 1")).step("s2", on.does("do 2")).build();
    on.play(d);
    const auto id = on.begin(d);
    on.runner().run_once();
    vouch::memory::store& store = on.store;
    auto runner = on.runner();
    auto claimed = runner.claim();
    {
        auto open = store.begin(); // on this thread a second transaction is misuse, reads are not
        auto handled = runner.handle(claimed.front());
        CHECK(std::holds_alternative<vouch::advance>(handled.outcome));
    }
    on.pass(5min);
    on.run();
    CHECK(on.status(id).is_completed());
}

} // namespace saga_replies_test
