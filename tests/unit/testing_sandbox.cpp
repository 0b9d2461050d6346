// SPDX-License-Identifier: MIT
// The sandbox, with which users test their own handlers.
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <vouch/saga.hpp>
#include <vouch/testing.hpp>
#include <vouch/vouch.hpp>
#include <vouch/webhook.hpp>

#include "catch.hpp"
#include "support.hpp"

namespace testing_sandbox_test {

using namespace support;
using vouch::delivery;
using vouch::testing::sandbox;

namespace {

void greet(delivery& d) { d.emit({.topic = "mail.welcome", .payload = "Welcome, " + d.payload()}); }

} // namespace

TEST_CASE("sandbox: a handler is tested in five lines") {
    sandbox box;
    box.on("user.created", greet);
    box.emit({.topic = "user.created", .payload = "ada"});
    box.run_once();
    CHECK(box.emitted("mail.welcome") == 1);
    CHECK(box.emitted("mail.*") == 1);
    CHECK(box.emitted("mail.goodbye") == 0);
}

TEST_CASE("sandbox: counts what any producer emits, and only what is stored") {
    sandbox box;
    vouch::transact(box.store(), [&](auto& tx) { box.outbox().emit(tx, {.queue = "elsewhere", .topic = "mine"}); });
    {
        auto tx = box.store().begin();
        box.outbox().emit(tx, {.topic = "rolled.back"});
    }
    box.emit({.topic = "once", .key = "k"});
    box.emit({.topic = "once", .key = "k"});
    CHECK(box.emitted("mine") == 1);
    CHECK(box.emitted("rolled.back") == 0);
    CHECK(box.emitted("once") == 1);
    CHECK(box.table().find("elsewhere") != std::string::npos);
}

TEST_CASE("sandbox: bindings of its own are the only ones") {
    sandbox box({.bindings = vouch::bindings{}.bind("user.*", "mail").bind("user.*", "audit")});
    box.emit({.topic = "user.created"});
    CHECK(box.store().counts("mail").total() == 1);
    CHECK(box.store().counts("audit").total() == 1);
    CHECK(kind_of([&] { box.emit({.topic = "order.placed"}); }) == vouch::error_kind::unrouted);
}

TEST_CASE("sandbox: next() is the entry that runs next, and when") {
    sandbox box;
    CHECK_FALSE(box.next());
    box.emit({.topic = "later", .due_in = 1h});
    box.emit({.topic = "sooner", .due_in = 1min});
    CHECK(box.next()->entry.topic == "sooner");
    CHECK(box.next()->at == box.start() + 1min);
    box.pass(1min);
    REQUIRE(box.runner().claim().size() == 1);
    CHECK(box.next()->entry.topic == "sooner"); // when its lease ends
    CHECK(box.next()->at == box.start() + 6min);
}

TEST_CASE("sandbox: an entry behind another one in its lane is not next") {
    sandbox box;
    box.emit({.topic = "head", .lane = "l", .due_in = 1h});
    box.emit({.topic = "behind", .lane = "l"});
    CHECK(box.next()->entry.topic == "head");
    box.emit({.topic = "beside", .lane = "m", .due_in = 1min});
    CHECK(box.next()->entry.topic == "beside");
}

TEST_CASE("sandbox: entries print as a readable table") {
    sandbox box;
    box.on("done", [] {});
    box.on("bad", [] { throw vouch::failure("smtp_timeout"); });
    box.emit({.topic = "done"});
    box.emit({.topic = "bad"});
    box.emit({.topic = "done", .due_in = 90s});
    box.emit({.queue = "other", .topic = "elsewhere"});
    box.run_once();
    CHECK(box.table() == "id  queue  topic      state      attempts  due  last error\n"
                         "4   other  elsewhere  pending    0         0\n"
                         "1   test   done       succeeded  1         -\n"
                         "2   test   bad        retrying   1         30s  smtp_timeout\n"
                         "3   test   done       pending    0         90s\n");
    box.pass(2min);
    REQUIRE(box.runner().claim().size() == 2);
    CHECK(box.table().find("held to 7min") != std::string::npos);
}

TEST_CASE("sandbox: durations read in their largest whole unit") {
    using vouch::testing::to_text;
    CHECK(to_text(vouch::duration{0}) == "0");
    CHECK(to_text(2h) == "2h");
    CHECK(to_text(90s) == "90s");
    CHECK(to_text(5min) == "5min");
    CHECK(to_text(250ms) == "250ms");
    CHECK(to_text(vouch::duration{-3}) == "-3us");
}

TEST_CASE("sandbox: a typed handler has a policy of its own") {
    sandbox box({.retry = {.backoff = vouch::fixed{1h}, .attempts_max = 9}});
    std::vector<std::string> seen;
    box.on<std::string>("greet",
                        [&](const std::string& name) {
                            seen.push_back(name);
                            throw vouch::failure("no");
                        },
                        {.backoff = vouch::fixed{1s}, .attempts_max = 2});
    const auto id = box.emit({.topic = "greet", .payload = "ada"}).id;
    const auto total = box.run_until_idle();
    CHECK(seen == std::vector<std::string>{"ada", "ada"});
    CHECK(total.dead == 1);
    CHECK(box.find(id)->updated_at == box.start() + 1s);
}

TEST_CASE("sandbox: serves every queue that has routes, and no other") {
    sandbox box({.bindings = vouch::bindings{}.bind("user.*", "test").bind("user.*", "audit").bind("#", "unserved")});
    std::vector<std::string> log;
    box.router("audit").on("user.created", [&] { log.push_back("audit"); });
    box.on("user.created", [&](delivery& d) {
        log.push_back("test");
        d.emit({.queue = "audit", .topic = "user.created"}); // a pass has served that queue before this one
    });
    box.emit({.topic = "user.created"});
    CHECK(box.run_once().succeeded == 2);
    CHECK(log == std::vector<std::string>{"audit", "test"});
    CHECK(box.run_until_idle().succeeded == 1);
    CHECK(box.store().counts("unserved").total() == 1);
    CHECK(box.emitted("user.created") == 4);
    CHECK_FALSE(box.next());
}

TEST_CASE("sandbox: the clock stops wherever something is due, in any queue") {
    sandbox box;
    std::vector<std::string> log;
    const auto note = [&](delivery& d) {
        log.push_back(d.topic() + " at " + vouch::testing::to_text(d.now() - box.start()));
        if (d.attempt() == 1) {
            throw vouch::failure("again");
        }
    };
    box.on("a", note, {.backoff = vouch::fixed{3min}});
    box.router("other").on("b", note, {.backoff = vouch::fixed{1min}});
    box.emit({.topic = "a", .due_in = 1min});
    box.emit({.queue = "other", .topic = "b", .due_in = 2min});
    CHECK(box.next()->entry.topic == "a");
    box.run_until_idle();
    CHECK(log == std::vector<std::string>{"a at 1min", "b at 2min", "b at 3min", "a at 4min"});
}

TEST_CASE("sandbox: runs a saga together with its participants") {
    sandbox box;
    std::optional<std::string> refunded;
    const auto order_saga = vouch::define_saga<std::string>("order")
                                .command("payment", {.queue = "payment", .topic = "charge", .undo = "refund"})
                                .step("shipping", [] { throw vouch::reject("address_undeliverable"); })
                                .build();
    box.on(order_saga);
    box.router("payment").on("charge", [](delivery& d) { return "charge for " + d.payload(); });
    box.router("payment").on<vouch::compensation>("refund", [&](const vouch::compensation& c) { refunded = c.reply; });
    const auto id = box.start(order_saga, std::string("a piano"));
    box.run_until_idle();
    CHECK(refunded == "charge for a piano");
    CHECK(to_string(*vouch::inspect(box.store(), id)) ==
          "order v1 compensated because address_undeliverable [payment undone, shipping failed]");
}

TEST_CASE("sandbox: delivers webhooks") {
    sandbox box;
    std::vector<std::string> sent;
    const vouch::webhook hook(
        [](std::string_view id) { return vouch::webhook::subscription{.id = std::string(id), .url = "https://a"}; },
        [&](const vouch::webhook::request& r) {
            sent.push_back(r.subscription.url + ' ' + r.body);
            return 200;
        });
    box.on(hook);
    box.emit(vouch::webhook::of({.queue = "test", .event = "e-1", .to = {.id = "s-1"}, .body = "{}"}));
    box.run_until_idle();
    CHECK(sent == std::vector<std::string>{"https://a {}"});
}

TEST_CASE("sandbox: work without end is reported") {
    sandbox box({.passes_max = 100});
    box.router("ping").on("ping", [](delivery& d) { d.emit({.queue = "pong", .topic = "pong"}); });
    box.router("pong").on("pong", [](delivery& d) { d.emit({.queue = "ping", .topic = "ping"}); });
    box.emit({.queue = "ping", .topic = "ping"});
    CHECK(kind_of([&] { box.run_until_idle(); }) == vouch::error_kind::misuse);
    box.on("again", [](delivery& d) -> vouch::outcome { return vouch::release{.at = d.now()}; });
    box.emit({.topic = "again"});
    CHECK(kind_of([&] { box.runner().run_until_idle(); }) == vouch::error_kind::misuse);
}

TEST_CASE("sandbox: works over a store that is not its own") {
    vouch::memory::store store;
    vouch::testing::basic_sandbox box(store, {.queue = "mail"});
    box.on("user.created", greet);
    box.emit({.topic = "user.created"});
    box.run_once();
    CHECK(store.counts("mail")[vouch::state::succeeded] == 1);
}

TEST_CASE("sandbox: a hook that fails ends the run, and the next run settles the outcome") {
    sandbox box;
    box.on("t", [] {});
    int calls = 0;
    box.runner().audit([&](auto&, const vouch::audit_line&) {
        if (++calls == 1) {
            throw std::runtime_error("not yet");
        }
    });
    const auto id = box.emit({.topic = "t"}).id;
    CHECK(box.run_until_idle().held_up == 1);
    CHECK(calls == 1);
    CHECK(box.find(id)->state == vouch::state::claimed);
    CHECK(box.run_until_idle().succeeded == 1);
}

} // namespace testing_sandbox_test
