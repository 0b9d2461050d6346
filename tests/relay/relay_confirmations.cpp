// SPDX-License-Identifier: MIT
// What becomes of an entry when the broker confirms, refuses, or does not answer.
#include <algorithm>
#include <cstddef>
#include <limits>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include <vouch/relay.hpp>
#include <vouch/testing_broker.hpp>
#include <vouch/vouch.hpp>

#include "catch.hpp"
#include "property.hpp"
#include "relay_support.hpp"

namespace relay_confirmations_test {

using namespace relay_test;

TEST_CASE("relay: an entry succeeds when its message is confirmed") {
    scripted_publisher to;
    sender s(to);
    s.outbox.emit({.queue = "out",
                   .topic = "mail.new",
                   .payload = "hello",
                   .key = "k",
                   .group = "g",
                   .lane = "l",
                   .expires_in = 1h,
                   .headers = {{"tenant", "acme"}}});
    CHECK(s.runner.run_once().succeeded == 1);
    REQUIRE(to.calls.size() == 1);
    REQUIRE(to.calls[0].size() == 1);
    const auto e = s.store.list(vouch::query::all("out")).front();
    CHECK(to.calls[0][0] == message{.id = to_string(e.id),
                                    .topic = "mail.new",
                                    .payload = "hello",
                                    .key = "k",
                                    .lane = "l",
                                    .group = "g",
                                    .trail = e.trail,
                                    .headers = {{"tenant", "acme"}},
                                    .created_at = t0,
                                    .expires_at = t0 + 1h});
}

TEST_CASE("relay: many entries are one call, at most as many as the options say") {
    scripted_publisher to;
    sender s(to, {.size_max = 4});
    for (int i = 0; i < 10; ++i) {
        s.put(std::to_string(i));
    }
    CHECK(s.runner.run_until_idle().succeeded == 10);
    std::size_t sent = 0;
    for (const auto& call : to.calls) {
        CHECK(call.size() <= 4);
        sent += call.size();
    }
    CHECK(sent == 10);
}

TEST_CASE("relay: a refused message is a dead entry with the broker's code, and its neighbours succeed") {
    scripted_publisher to;
    to.answer = [](std::span<const message> m) {
        std::vector<confirmation> out;
        for (const auto& one : m) {
            out.push_back(one.payload == "bad"      ? confirmation{kind::refused, "unroutable"}
                          : one.payload == "silent" ? confirmation{kind::refused, ""}
                                                    : confirmation{kind::confirmed});
        }
        return out;
    };
    sender s(to);
    const auto good = s.put("good");
    const auto bad = s.put("bad");
    const auto silent = s.put("silent");
    const auto last = s.put("last");
    s.runner.run_once();
    CHECK(s.entry(good).state == state::succeeded);
    CHECK(s.entry(bad).state == state::dead);
    CHECK(s.entry(bad).last_error == "unroutable");
    CHECK(s.entry(silent).last_error == "refused");
    CHECK(s.entry(last).state == state::succeeded);
}

TEST_CASE("relay: a code of the broker that is no error code is made one") {
    scripted_publisher to;
    to.answer = [](std::span<const message> m) {
        return std::vector<confirmation>(m.size(), {kind::refused, std::string(300, 'x') + "\x1b[2J\xff"});
    };
    sender s(to);
    const auto id = s.put("p");
    CHECK(s.runner.run_once().dead == 1);
    CHECK(s.entry(id).last_error == std::string(100, 'x'));
}

TEST_CASE("relay: what is unknown is sent again under the same id, until it is confirmed") {
    scripted_publisher to;
    to.answer = [](std::span<const message> m) {
        return std::vector<confirmation>(m.size(), {kind::unknown, "connection_lost"});
    };
    sender s(to);
    const auto id = s.put("p");
    for (int i = 0; i < 50; ++i) { // far more than a handler's default
        CHECK(s.runner.run_once().retried == 1);
        CHECK(s.entry(id).state == state::retrying);
        CHECK(s.entry(id).last_error == "connection_lost");
        CHECK(s.entry(id).due_at > s.clock());
        CHECK(s.entry(id).due_at <= s.clock() + 2min);
        s.clock.pass(2min);
    }
    to.answer = scripted_publisher{}.answer;
    CHECK(s.runner.run_once().succeeded == 1);
    REQUIRE(to.calls.size() == 51);
    for (const auto& call : to.calls) {
        CHECK(call == to.calls.front());
    }
    CHECK(to.calls.front().front().id == to_string(id));
}

TEST_CASE("relay: a limit of attempts is the caller's choice") {
    scripted_publisher to;
    to.answer = [](std::span<const message> m) { return std::vector<confirmation>(m.size()); };
    vouch::relay_options options;
    CHECK(options.retry.attempts_max == std::numeric_limits<std::uint32_t>::max());
    options.retry.attempts_max = 2;
    sender s(to, options);
    const auto id = s.put("p");
    s.runner.run_once();
    CHECK(s.entry(id).last_error == "unconfirmed"); // the broker gave no code
    s.clock.pass(2min);
    CHECK(s.runner.run_once().dead == 1);
    CHECK(s.entry(id).last_error == "unconfirmed");
}

TEST_CASE("relay: a requeued entry is sent under the id of the first, which may have arrived") {
    scripted_publisher to;
    to.answer = [](std::span<const message> m) { return std::vector<confirmation>(m.size()); };
    vouch::relay_options options;
    options.retry.attempts_max = 1;
    options.make = [](const vouch::entry& e) {
        auto m = vouch::message_of(e);
        m.id = e.payload == "own" ? "own id" : m.id;
        return m;
    };
    sender s(to, options);
    const auto first = s.put("p");
    s.put("own");
    s.runner.run_once();
    for (int i = 0; i < 3; ++i) {
        for (const auto& dead : s.store.list(vouch::query::dead("out"))) {
            static_cast<void>(s.outbox.requeue(dead.id)); // of those that have a successor, nothing comes
        }
        s.runner.run_once();
    }
    REQUIRE(to.calls.size() == 4);
    for (const auto& call : to.calls) {
        REQUIRE(call.size() == 2);
        CHECK(call[0].id == to_string(first));
        CHECK(call[1].id == "own id");
    }
}

TEST_CASE("relay: what its policy leaves unset is the runner's to decide") {
    scripted_publisher to;
    to.answer = [](std::span<const message> m) { return std::vector<confirmation>(m.size()); };
    vouch::relay_options options;
    options.retry = {.attempts_max = 5};
    sender s(to, options);
    const auto id = s.put("p");
    vouch::runner(s.outbox, s.router, {.queue = "out", .retry = {.backoff = vouch::fixed{7s}}}).run_once();
    CHECK(s.entry(id).due_at == s.clock() + 7s);
}

TEST_CASE("relay: a publisher that throws says unknown of every message, with the code of its error") {
    struct fault {
        std::function<void()> act;
        std::string code;
        std::size_t calls; // three: together, then each alone
    };
    const std::vector<fault> faults{
        {[] { throw vouch::error(vouch::error_kind::io, "secret", {.text_code = "ACCESS_REFUSED"}); }, "ACCESS_REFUSED",
         1},
        {[] { throw vouch::error(vouch::error_kind::busy, "secret"); }, "broker_busy", 1},
        {[] { throw vouch::error(vouch::error_kind::misuse, "secret"); }, "broker_misuse", 3},
        {[] { throw std::out_of_range("secret"); }, "std::out_of_range", 3},
        {[] { throw 7; }, "unknown_exception", 3}};
    for (const auto& f : faults) {
        INFO(f.code);
        scripted_publisher to;
        to.answer = [&](std::span<const message>) -> std::vector<confirmation> {
            f.act();
            return {};
        };
        sender s(to);
        const auto one = s.put("1");
        const auto two = s.put("2");
        CHECK(s.runner.run_once().retried == 2);
        CHECK(s.entry(one).last_error == f.code);
        CHECK(s.entry(two).last_error == f.code);
        CHECK(to.calls.size() == f.calls);
    }
}

namespace {

/// Confirms, but throws for a call with the payload "bad".
struct choosy_publisher : scripted_publisher {
    choosy_publisher() {
        answer = [](std::span<const message> m) {
            if (std::any_of(m.begin(), m.end(), [](const message& one) { return one.payload == "bad"; })) {
                throw vouch::error(vouch::error_kind::invalid_argument, "cannot be encoded");
            }
            return std::vector<confirmation>(m.size(), {kind::confirmed});
        };
    }
};

} // namespace

TEST_CASE("relay: a message for which the publisher throws does not keep the others of its batch") {
    choosy_publisher to;
    sender s(to);
    s.put("1");
    const auto bad = s.put("bad");
    s.put("2");
    const auto done = s.runner.run_once();
    CHECK(done.succeeded == 2);
    CHECK(done.retried == 1);
    CHECK(s.entry(bad).last_error == "broker_invalid_argument");
    CHECK(to.calls.size() == 4);
}

TEST_CASE("relay: if the publisher throws for message after message, the rest is not tried") {
    choosy_publisher to;
    sender s(to);
    for (int i = 0; i < 20; ++i) {
        s.put("bad");
    }
    CHECK(s.runner.run_once().retried == 20);
    CHECK(to.calls.size() == 1 + 5);
}

TEST_CASE("relay: one by one, messages stay in the order of their lanes, and a lost connection ends the attempt") {
    choosy_publisher to;
    vouch::relay_options options;
    options.make = [](const vouch::entry& e) { // the entries have no lanes, so a batch may have several of one
        auto m = vouch::message_of(e);
        m.lane = e.payload == "other" ? "other" : "same";
        return m;
    };
    sender s(to, options);
    s.put("1");
    s.put("bad");
    const auto next = s.put("2");
    const auto other = s.put("other");
    CHECK(s.runner.run_once().succeeded == 2);
    CHECK(s.entry(next).last_error == "lane_waits");
    CHECK(s.entry(other).state == state::succeeded);

    scripted_publisher lost;
    lost.answer = [&](std::span<const message> m) -> std::vector<confirmation> {
        if (m.size() > 1) {
            throw std::length_error("too many");
        }
        throw vouch::error(vouch::error_kind::io, "away");
    };
    sender t(lost);
    t.put("1");
    const auto last = t.put("2");
    CHECK(t.runner.run_once().retried == 2);
    CHECK(lost.calls.size() == 2);
    CHECK(t.entry(last).last_error == "std::length_error");
}

TEST_CASE("relay: a wrong number of confirmations says nothing of any message") {
    for (const std::size_t count : {0U, 1U, 3U}) {
        scripted_publisher to;
        to.answer = [&](std::span<const message>) { return std::vector<confirmation>(count, {kind::confirmed}); };
        sender s(to);
        const auto id = s.put("1");
        s.put("2");
        CHECK(s.runner.run_once().retried == 2);
        CHECK(s.entry(id).last_error == "wrong_confirmation_count");
    }
}

TEST_CASE("relay: an entry for which no message can be made fails alone") {
    scripted_publisher to;
    vouch::relay_options options;
    options.make = [](const vouch::entry& e) {
        if (e.payload == "rejected") {
            throw vouch::reject("no_address");
        }
        if (e.payload == "broken") {
            throw std::runtime_error("secret");
        }
        auto m = vouch::message_of(e);
        m.topic = "v2." + m.topic;
        return m;
    };
    sender s(to, options);
    const auto first = s.put("first");
    const auto rejected = s.put("rejected");
    const auto broken = s.put("broken");
    const auto last = s.put("last");
    s.runner.run_once();
    CHECK(s.entry(first).state == state::succeeded);
    CHECK(s.entry(rejected).state == state::dead);
    CHECK(s.entry(rejected).last_error == "no_address");
    CHECK(s.entry(broken).state == state::retrying);
    CHECK(s.entry(broken).last_error == "std::runtime_error");
    CHECK(s.entry(last).state == state::succeeded);
    REQUIRE(to.calls.size() == 1);
    REQUIRE(to.calls[0].size() == 2);
    CHECK(to.calls[0][0].topic == "v2.mail.new");
}

TEST_CASE("relay: if no message can be made, the publisher is not called") {
    scripted_publisher to;
    vouch::relay_options options;
    options.make = [](const vouch::entry&) -> message { throw vouch::reject("never"); };
    sender s(to, options);
    s.put("1");
    CHECK(s.runner.run_once().dead == 1);
    CHECK(to.calls.empty());
}

TEST_CASE("relay: a lane stays in order, whatever the broker does") {
    check_property("first arrivals of a lane are in the order of emission", [] {
        const auto every = [] { // never, or now and then; always would leave nothing to see
            const auto n = *rc::gen::inRange<std::size_t>(0, 7);
            return n == 1 ? 0 : n;
        };
        vouch::testing::broker broker(
            {.lost_confirmation = every(), .lost_message = every(), .duplicate = every(), .reorder = every()});
        broker.bind("#", "all");
        vouch::testing::broker_publisher to(broker);
        sender s(to, {.size_max = *rc::gen::inRange<std::size_t>(1, 6)});
        std::map<std::string, std::vector<std::string>> expected;
        const auto count = *rc::gen::inRange(1, 30);
        for (int i = 0; i < count; ++i) {
            const auto lane = "lane" + std::to_string(*rc::gen::inRange(0, 3));
            expected[lane].push_back(std::to_string(i));
            s.put(std::to_string(i), lane);
        }
        for (int pass = 0; pass < 2000 && s.store.next_due("out"); ++pass) {
            s.runner.run_once();
            s.clock.pass(2min);
        }
        RC_ASSERT(s.store.counts("out")[state::succeeded] == static_cast<std::size_t>(count));
        vouch::testing::broker_consumer from(broker, "all", 100'000);
        std::map<std::string, std::vector<std::string>> seen;
        for (const auto& r : from.receive(100'000, vouch::duration::zero(), {})) {
            auto& of = seen[r.message.lane];
            if (std::find(of.begin(), of.end(), r.message.payload) == of.end()) {
                of.push_back(r.message.payload);
            }
        }
        RC_ASSERT(seen == expected);
    });
}

} // namespace relay_confirmations_test
