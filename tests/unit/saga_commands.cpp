// SPDX-License-Identifier: MIT
// Commands to remote participants: keys, lanes, compensating commands.
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

namespace saga_commands_test {

using namespace saga_support;
using vouch::delivery;
using vouch::state;
using vouch::verdict;

TEST_CASE("commands: an entry with the same id is not mistaken for the command") {
    played on;
    be_helpful(on, "a");
    be_helpful(on, "b");
    // The saga's first command will get the next id, which an entry that has succeeded already has.
    put(on.store, {.id = {.high = 0, .low = on.saga.low + 1}, .queue = "x", .topic = "t", .result = "stolen"});
    on.run();
    on.pass(10s);
    on.run_all();
    CHECK(on.status(on.saga).is_compensated());
    CHECK(on.status(on.saga).reason == "reply_lost");
    CHECK(on.log == lines{"undo a <>"});
}

TEST_CASE("commands: one that the store refuses makes the saga compensate, or leaves it stuck on its way back") {
    stage on;
    const std::string large(vouch::limits{}.payload_max + 1, 'x');
    SECTION("forward") {
        const auto d = define()
                           .step("s1", on.does("do 1"), on.does("undo 1"))
                           .command("sa", {.queue = "a", .topic = "do"}, [&] { return large; })
                           .build();
        on.play(d);
        const auto id = on.begin(d);
        on.run();
        CHECK(on.status(id).reason == "invalid_command");
        CHECK(on.log == lines{"do 1", "undo 1 <>"});
    }
    SECTION("back") {
        const auto d =
            define()
                .command(
                    "sa", {.queue = "a", .topic = "do", .undo = "undo"}, [] { return "x"; }, [&] { return large; })
                .step("s2", on.rejects("do 2", "no"))
                .build();
        on.play(d);
        be_helpful(on, "a");
        const auto id = on.begin(d);
        on.run_all();
        CHECK(on.entry(id).state == state::dead);
        CHECK(on.entry(id).last_error == "invalid_command");
        CHECK(on.status(id).step() == "sa");
    }
    SECTION("a payload that cannot be made is tried again, and nothing was sent") {
        const auto d = define()
                           .command("sa", {.queue = "a", .topic = "do", .undo = "undo", .retry = times(2)},
                                    [&]() -> std::string {
                                        on.note("make");
                                        throw vouch::failure("no_template");
                                    })
                           .build();
        on.play(d);
        const auto id = on.begin(d);
        on.run_out();
        CHECK(on.log == lines{"make", "make"});
        CHECK(on.line(id) == "order v1 compensated because no_template [sa failed]");
        CHECK(on.commands(id).empty());
    }
}

TEST_CASE("undo: a compensating command that dies is sent again by policy; then the saga is dead, and resumable") {
    played on(two_participants({}, {.backoff = vouch::fixed{1min}, .attempts_max = 2}));
    be_helpful(on, "a");
    on.router("a") = vouch::router(on.outbox);
    bool is_back = false;
    on.on("a", "do", [&](delivery&) { return std::string("ra"); });
    on.on("a", "undo", [&](delivery& d) -> vouch::outcome {
        on.note("undo a <" + reply_in(d) + ">");
        return is_back ? vouch::outcome{vouch::succeed{}} : vouch::bury{.error = "bank_down"};
    });
    on.on("b", "do", [](delivery&) { throw vouch::reject("no"); });
    on.run_all();
    CHECK(on.log == lines{"undo a <ra>"});
    CHECK(on.line(on.saga) == "order v1 back at sa because no [sa done, sb failed], attempt 1");
    CHECK(on.entry(on.saga).due_at == on.start + 1min);
    on.run_out();
    CHECK(on.log == lines{"undo a <ra>", "undo a <ra>"});
    CHECK(on.entry(on.saga).state == state::dead);
    CHECK(on.entry(on.saga).last_error == "bank_down");
    CHECK(on.status(on.saga).step() == "sa");

    is_back = true;
    const auto next = vouch::transact(on.store, [&](auto& tx) {
        return vouch::resume(tx, {.dead = on.saga, .successor = on.outbox.fresh_id(), .now = on.clock()});
    });
    on.run_out();
    CHECK(on.log == lines{"undo a <ra>", "undo a <ra>", "undo a <ra>"});
    CHECK(on.status(next.id).is_compensated());
    CHECK(vouch::command_of(on.commands(next.id).back())->saga == on.saga); // the participant knows the saga by this id
}

TEST_CASE("commands: one that is sent again has the same key, also after a resume, so it is refunded once") {
    played on(two_participants({}, times(2)));
    int refunds = 0;
    std::vector<vouch::id> ids;
    std::vector<vouch::id> keys;
    on.on("a", "do", [](delivery&) {});
    on.on("b", "do", [](delivery&) { throw vouch::reject("no"); });
    on.on("a", "undo", [&](delivery& d) -> vouch::outcome {
        const auto command = *vouch::command_of(d.entry());
        CHECK(d.header("saga-key") == to_string(command.key));
        ids.push_back(command.id);
        keys.push_back(command.key);
        vouch::transact(on.store, [&](auto& tx) {
            return vouch::inbox::once(tx, {.consumer = "bank", .message = command.key, .now = d.now()},
                                      [&] { refunds += 1; });
        });
        return vouch::bury{.error = "answer_lost"}; // it has refunded
    });
    on.run_out();
    REQUIRE(on.entry(on.saga).state == state::dead);
    std::ignore = vouch::transact(on.store, [&](auto& tx) {
        return vouch::resume(tx, {.dead = on.saga, .successor = on.outbox.fresh_id(), .now = on.clock()});
    });
    on.run_out();
    CHECK(refunds == 1);
    CHECK(std::set(ids.begin(), ids.end()).size() == 4);
    CHECK(std::set(keys.begin(), keys.end()) == std::set{vouch::saga_key(on.saga, "sa", true)});
}

TEST_CASE("commands: each step and direction has its own key, also a command without the header") {
    played on;
    be_helpful(on, "a");
    on.on("b", "do", [](delivery&) { throw vouch::reject("no"); });
    on.run_all();
    std::set<vouch::id> keys;
    for (auto c : on.commands(on.saga)) {
        const auto key = vouch::command_of(c)->key;
        keys.insert(key);
        std::erase_if(c.headers, [](const auto& h) { return h.first == "saga-key"; }); // sent by an older version
        CHECK(vouch::command_of(c)->key == key);
    }
    CHECK(keys.size() == 3);
}

TEST_CASE("undo: its command carries the saga's payload, and the reply if there is one") {
    played on;
    std::vector<vouch::compensation> undone;
    on.on("a", "do", [](delivery&) { return std::string("ra"); });
    on.on("b", "do", [](delivery&) { throw vouch::failure("busy"); });
    for (const std::string queue : {"a", "b"}) {
        on.router(queue).on<vouch::compensation>("undo", [&](const vouch::compensation& c) { undone.push_back(c); });
    }
    on.run_all();
    CHECK(undone == std::vector<vouch::compensation>{{"p", std::nullopt}, {"p", "ra"}});
    CHECK(undone.back().context_as<std::string>() == "p");
}

TEST_CASE("undo: a reply that is too large for the compensating command is found before the saga is stuck") {
    stage on;
    const auto d = define().command("sa", {.queue = "a", .topic = "do", .undo = "undo"}).build();
    on.play(d);
    on.on("a", "do", [&](delivery&) {
        on.note("do a");
        return std::string(1000, 'r');
    });
    on.router("a").on<vouch::compensation>(
        "undo", [&](const vouch::compensation& c) { on.note(c.reply ? "undo with a reply" : "undo without a reply"); });
    SECTION("the context: nothing is sent") {
        const auto id = on.begin(d, std::string(vouch::limits{}.payload_max, 'p'));
        on.run_all();
        CHECK(on.log.empty());
        CHECK(on.line(id) == "order v1 compensated because invalid_command [sa failed]");
    }
    SECTION("the context and the reply: the reply is dropped, and the step undone") {
        const auto id = on.begin(d, std::string(vouch::limits{}.payload_max - 500, 'p'));
        on.run_all();
        CHECK(on.log == lines{"do a", "undo without a reply"});
        CHECK(on.line(id) == "order v1 compensated because result_too_large [sa undone]");
    }
}

TEST_CASE("compensation: what is encoded is decoded, to the byte; other bytes are rejected") {
    using codec = vouch::codec<vouch::compensation>;
    const std::string bytes("1+\0-", 4);
    for (const auto& c : {vouch::compensation{}, vouch::compensation{bytes, std::nullopt}, vouch::compensation{"", ""},
                          vouch::compensation{bytes, bytes}}) {
        CHECK(codec::decode(vouch::encode(c)) == c);
    }
    for (const auto* wrong : {"", "3", "+", "-", "3+ab", "3-ab", "3-abcd", "x3-abc", "99999999999999999999-", "0"}) {
        CAPTURE(wrong);
        CHECK_THROWS_AS(codec::decode(wrong), vouch::reject);
    }
}

TEST_CASE("commands: the sagas of one lane share a lane for their commands, which stay in order") {
    stage on;
    const auto d = two_participants();
    on.play(d);
    auto e = d.begin(on.outbox, {.queue = "sagas"}, std::string("p"));
    SECTION("in a lane") { e.lane = "order 7"; }
    SECTION("in none") {}
    be_helpful(on, "a");
    on.on("b", "do", [](delivery&) { throw vouch::reject("no"); });
    const auto id = on.emit(e);
    on.run_all();
    REQUIRE(on.commands(id).size() == 3);
    const auto other = on.emit(e);
    on.run_all();
    for (const auto& c : on.commands(id)) {
        CHECK(c.lane == on.commands(other).front().lane);
        CHECK(c.lane.empty() == e.lane.empty());
        CHECK((c.lane != e.lane || e.lane.empty())); // otherwise it could wait for a saga that waits for it
    }
}

TEST_CASE("commands: sagas of one lane that send to each other's queues do not wait for each other") {
    stage on;
    const auto order = vouch::define_saga<std::string>("order")
                           .command("first", {.queue = "billing", .topic = "do"})
                           .command("second", {.queue = "billing", .topic = "do"})
                           .build();
    const auto refund =
        vouch::define_saga<std::string>("refund").command("one", {.queue = "sagas", .topic = "do"}).build();
    on.router("sagas").on(order);
    on.router("billing").on(refund);
    be_helpful(on, "sagas");
    be_helpful(on, "billing");
    auto a = order.begin(on.outbox, {.queue = "sagas"}, std::string("p"));
    auto b = refund.begin(on.outbox, {.queue = "billing"}, std::string("p"));
    a.lane = b.lane = "customer 7";
    const auto first = on.emit(a);
    on.run("sagas"); // its first command is sent
    const auto second = on.emit(b);
    on.run_all();
    CHECK(on.status(first).is_completed());
    CHECK(on.status(second).is_completed());
}

TEST_CASE("commands: in the saga's own queue they do not wait for the saga's lane") {
    stage on;
    const auto d = define().command("sa", {.queue = "sagas", .topic = "do", .undo = "undo"}).build();
    on.play(d);
    be_helpful(on, "sagas");
    auto e = d.begin(on.outbox, {.queue = "sagas"}, std::string("p"));
    e.lane = "order 7";
    const auto id = on.emit(e);
    on.run_all();
    CHECK(on.status(id).is_completed());
}

TEST_CASE("undo: one that is rejected is stuck at once; one without a reply is sent again") {
    played on(two_participants({}, times(2)));
    on.on("a", "do", [&](delivery&) {});
    on.on("b", "do", [](delivery&) { throw vouch::reject("no"); });
    SECTION("rejected") {
        on.on("a", "undo", [](delivery&) { throw vouch::reject("too_late"); });
        on.run_all();
        CHECK(on.entry(on.saga).last_error == "too_late");
        CHECK(on.commands(on.saga).size() == 3);
    }
    SECTION("held past its time, and then done") {
        on.on("a", "undo", [&](delivery&) { on.note("undo a"); });
        on.run();
        on.run("a");
        on.run();
        on.run("b");
        on.run();
        auto a = on.runner("a");
        auto held = a.handle_all(a.claim());
        on.pass(10s);
        on.run(); // it waits: the command may still succeed
        CHECK(on.commands(on.saga).size() == 3);
        a.settle(held);
        on.run_all();
        CHECK(on.log == lines{"undo a"});
        CHECK(on.status(on.saga).is_compensated());
    }
    SECTION("never claimed") {
        on.run();
        on.run("a");
        on.run();
        on.run("b");
        on.run();
        on.pass(10s);
        on.run();
        CHECK(on.commands(on.saga).size() == 4);
        CHECK(on.status(on.saga).tries == 1);
        on.pass(10s);
        on.run();
        CHECK(on.entry(on.saga).last_error == "timed_out");
        for (const auto& c : on.commands(on.saga)) {
            CHECK(is_terminal(c.state));
        }
    }
}

} // namespace saga_commands_test
