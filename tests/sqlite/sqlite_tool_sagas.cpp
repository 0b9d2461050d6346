// SPDX-License-Identifier: MIT
// The operator's tool with sagas, and requeue by error code.
#include <string>
#include <thread>

#include <vouch/saga.hpp>
#include <vouch/sqlite.hpp>
#include <vouch/vouch.hpp>

#include "catch.hpp"
#include "sqlite/operated.hpp"

#ifdef VOUCH_TOOL // it is built with these tests, unless it was switched off

namespace sqlite_tool_test {

TEST_CASE("tool: a saga says where it stands, and is asked to turn round instead of being killed") {
    operated o;
    const auto saga = vouch::define_saga<std::string>("order")
                          .command("payment", {.queue = "payment", .topic = "charge", .undo = "refund", .timeout = 1h})
                          .build();
    const auto id = o.outbox.start(saga, "orders", std::string("a lamp"));
    vouch::router orders(o.outbox);
    orders.on(saga);
    vouch::runner(o.outbox, orders, {.queue = "orders"}).run_until_idle();
    const auto shown = ask_tool("show " + o.path + ' ' + to_string(id));
    CHECK(says(shown, "order v1 forward at payment"));
    CHECK(says(shown, "waits for payment charge pending"));
    CHECK(says(shown, "waits for the reply of "));
    CHECK(says(ask_tool("cancel --yes " + o.path + ' ' + to_string(id)), "the saga was asked to compensate"));
    CHECK(o.store.find(id)->state != state::dead);
    vouch::runner(o.outbox, orders, {.queue = "orders"}).run_until_idle();
    CHECK(says(ask_tool("show " + o.path + ' ' + to_string(id)), "order v1 compensated because cancelled"));

    const auto other = o.outbox.start(saga, "orders", std::string("a piano"));
    CHECK(ask_tool("cancel --yes --abandon " + o.path + ' ' + to_string(other)).code == 0);
    CHECK(o.store.find(other)->state == state::dead);
}

TEST_CASE("tool: requeue by error code revives the dead letters of one cause, and no others") {
    operated o;
    for (int n = 0; n < 250; ++n) { // more than a page
        static_cast<void>(o.emit({.topic = "new.kind"}));
    }
    const vouch::router none(o.outbox);
    REQUIRE(vouch::runner(o.outbox, none, {.queue = "q"}).run_until_idle().dead == 251); // `due`, too
    const auto call = "requeue " + o.path + " --queue q --error no_handler";
    CHECK(ask_tool(call).code == 1); // asks
    CHECK(o.store.counts("q")[state::pending] == 5);
    CHECK(says(ask_tool(call + " --yes"), "251 requeued, 0 already had a successor, 0 refused"));
    CHECK(o.store.counts("q")[state::pending] == 5 + 251);
    CHECK(says(ask_tool(call + " --yes --json"),
               R"({"matched":251,"applied":0,"repeated":251,"refused":0,"interrupted":false,"complete":true})"));
    CHECK(o.store.counts("q")[state::pending] == 5 + 251);
    CHECK(ask_tool("requeue " + o.path + " --yes").code == 2); // neither an id nor a filter
}

TEST_CASE("tool: requeue by error code ends, though the successors die of the same beside it") {
    operated o;
    for (int n = 0; n < 300; ++n) {
        static_cast<void>(o.emit({.topic = "new.kind"}));
    }
    const vouch::router none(o.outbox);
    vouch::runner burying(o.outbox, none, {.queue = "q"});
    burying.run_until_idle();
    const std::jthread beside([&](const std::stop_token& stop) {
        while (!stop.stop_requested()) {
            burying.run_until_idle();
        }
    });
    const auto call =
        "timeout 20 " + std::string(VOUCH_TOOL) + " requeue " + o.path + " --queue q --error no_handler --yes";
    CHECK(says(ask(call), "301 requeued, 0 already had a successor, 0 refused"));
}

TEST_CASE("tool: a dead saga is resumed by default, and does its work again only if --afresh asks for that") {
    operated o;
    const auto saga = vouch::define_saga<std::string>("order").step("pay", [] {}).build();
    const auto id = o.outbox.start(saga, "orders", std::string("a lamp"));
    const auto requeue = [&](const std::string& how) {
        return ask_tool("requeue " + how + o.path + ' ' + to_string(id));
    };
    CHECK(ask_tool("cancel --yes --abandon " + o.path + ' ' + to_string(id)).code == 0);
    CHECK(says(ask_tool("show " + o.path + ' ' + to_string(id)), "; `resume` continues it"));
    CHECK(requeue("--resume --afresh ").code == 2);
    CHECK(requeue("--afresh ").code == 1); // there is no terminal to ask
    CHECK(o.store.counts("orders").total() == 1);
    const auto successor = [&] { return o.store.list(vouch::query::live("orders")).at(0); };
    SECTION("resumed") {
        const auto* const how = GENERATE("requeue ", "requeue --resume ", "resume ");
        CHECK(says(ask_tool(how + o.path + ' ' + to_string(id)), "the successor is "));
        CHECK(successor().progress == o.store.find(id)->progress);
    }
    SECTION("resumed by filter") {
        CHECK(says(ask_tool("requeue " + o.path + " --queue orders --dry-run"),
                   "would requeue 1 entry, 1 of them sagas"));
        CHECK(o.store.counts("orders").total() == 1);
        CHECK(says(ask_tool("requeue " + o.path + " --queue orders --yes"), "1 requeued"));
        CHECK(successor().progress == o.store.find(id)->progress);
    }
    SECTION("afresh: another saga, with keys of its own") {
        CHECK(says(requeue("--afresh --yes "), "the successor is "));
        CHECK(vouch::inspect(successor())->origin == successor().id);
    }
}

} // namespace sqlite_tool_test

#endif
