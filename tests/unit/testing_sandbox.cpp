// SPDX-License-Identifier: MIT
// The sandbox: what people test their own handlers with.
#include <string>

#include <vouch/testing.hpp>
#include <vouch/vouch.hpp>

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

TEST_CASE("sandbox: sees what anybody emits, and only what is stored") {
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

TEST_CASE("sandbox: tells what would run next, and when") {
    sandbox box;
    CHECK_FALSE(box.next());
    box.emit({.topic = "later", .due_in = 1h});
    box.emit({.topic = "sooner", .due_in = 1min});
    CHECK(box.next()->entry.topic == "sooner");
    CHECK(box.next()->at == box.start() + 1min);
    box.pass(1min);
    REQUIRE(box.runner().claim().size() == 1);
    CHECK(box.next()->entry.topic == "sooner"); // when its lease is over
    CHECK(box.next()->at == box.start() + 6min);
}

TEST_CASE("sandbox: what waits behind another in its lane is not next") {
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

} // namespace testing_sandbox_test
