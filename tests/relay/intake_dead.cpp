// SPDX-License-Identifier: MIT
// Messages that cannot be handled: dead entries with a code, which block nothing.
#include <chrono>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <vector>

#include <vouch/relay.hpp>
#include <vouch/testing_broker.hpp>
#include <vouch/vouch.hpp>

#include "catch.hpp"
#include "relay_support.hpp"

namespace intake_dead_test {

using namespace relay_test;

namespace {

/// Sends a message between two good ones, takes all three in one batch, and returns the one dead entry.
[[nodiscard]] vouch::entry dead_of(receiver& r, const message& bad, const vouch::intake_options& how) {
    r.send("before");
    r.send(bad);
    r.send("after");
    const auto done = r.take(how);
    CHECK(done.received == 3);
    CHECK(done.stored == 2);
    CHECK(done.dead == 1);
    CHECK(r.waiting() == 0);
    auto q = vouch::query::dead(how.dead_queue.empty() ? how.queue : how.dead_queue);
    q.payloads = true;
    const auto dead = r.store.list(q);
    REQUIRE(dead.size() == 1);
    return dead.front();
}

[[nodiscard]] vouch::entry dead_of(receiver& r, const message& bad) { return dead_of(r, bad, r.options()); }

/// A message like a good one.
[[nodiscard]] message good(std::string id = "m1") {
    return {.id = std::move(id), .topic = "mail.new", .payload = "p", .headers = {{"tenant", "acme"}}};
}

} // namespace

TEST_CASE("intake: a message without an id is dead with the code no_message_id") {
    receiver r;
    const auto e = dead_of(r, good(""));
    CHECK(e.last_error == "no_message_id");
    CHECK(e.key.empty());
    CHECK(e.payload == "p");
    CHECK(e.headers == vouch::header_list{{"tenant", "acme"}});
    CHECK(e.topic == "mail.new");
}

TEST_CASE("intake: an id that is too long for a key is dead with the code message_id_too_long") {
    receiver r;
    const auto room = vouch::limits{}.name_max - std::string("shop/").size();
    r.send(good(std::string(room, 'i')));
    CHECK(r.take().stored == 1);
    const auto e = dead_of(r, good(std::string(room + 1, 'i')));
    CHECK(e.last_error == "message_id_too_long");
    CHECK(e.key.empty());
}

TEST_CASE("intake: an id that is no name is dead with the code invalid_message_id") {
    for (const std::string id : {"\xff", "a\nb", "a\x01"}) {
        receiver r;
        CHECK(dead_of(r, good(id)).last_error == "invalid_message_id");
    }
}

TEST_CASE("intake: a payload that the store cannot hold is set aside at the broker, and the entry says so") {
    receiver r;
    auto big = good();
    big.payload.assign(r.store.capabilities().limits.payload_max + 1, 'x');
    const auto e = dead_of(r, big);
    CHECK(e.last_error == "payload_too_large");
    CHECK(e.payload.empty());
    CHECK(e.key == "shop/m1");
    REQUIRE(r.broker.set_aside("mailer").size() == 1);
    CHECK(r.broker.set_aside("mailer").front() == big);
}

TEST_CASE("intake: a message of which the store cannot hold a part is set aside at the broker") {
    const std::vector<std::function<void(message&)>> wrongs{
        [](message& m) { m.id.assign(300, 'i'); },
        [](message& m) { m.id = "\xff"; },
        [](message& m) { m.topic.assign(300, 't'); },
        [](message& m) { m.lane.assign(300, 'l'); },
        [](message& m) { m.headers.emplace_back("cookie", std::string(5000, 'c')); },
        [](message& m) {
            m.trail.assign(vouch::limits{}.trail_max + 1, vouch::id{1, 1});
        },
    };
    for (const auto& wrong : wrongs) {
        receiver r;
        auto bad = good();
        wrong(bad);
        auto how = r.options();
        how.map = [](const message& m) -> vouch::emission {
            return m.id == "before" || m.id == "after" ? vouch::emission_of(m) : throw vouch::reject("unwanted");
        };
        static_cast<void>(dead_of(r, bad, how));
        CHECK(r.broker.set_aside("mailer") == std::vector{bad});
    }
}

TEST_CASE("intake: a message of which the consumer could not read a part is set aside at the broker") {
    for (const bool has_id : {true, false}) {
        struct one_message {
            received what;
            std::size_t acknowledged = 0;
            std::size_t set_aside_count = 0;
            std::vector<received> receive(std::size_t, vouch::duration, const std::stop_token&) { return {what}; }
            void acknowledge(std::span<const received> some) { acknowledged += some.size(); }
            void give_back(std::span<const received>) {}
            void set_aside(std::span<const received> some) { set_aside_count += some.size(); }
            void cancel() {}
        } from{.what = {.message = {.id = has_id ? "m1" : "", .topic = "t"},
                        .malformed = has_id ? "message_too_large" : "no_message_id"}};
        receiver r;
        CHECK(vouch::intake(from, r.outbox, r.options()).run_once().dead == 1);
        CHECK(from.set_aside_count == (has_id ? 1U : 0U));
        CHECK(from.acknowledged == (has_id ? 0U : 1U));
    }
}

TEST_CASE("intake: only what the store cannot hold is set aside at the broker") {
    receiver nameless;
    (void)dead_of(nameless, good(""));
    CHECK(nameless.broker.set_aside("mailer").empty());
    receiver r;
    auto late = good();
    late.expires_at = t0;
    late.lane = "lane";
    (void)dead_of(r, late);
    CHECK(r.broker.set_aside("mailer").empty());
}

TEST_CASE("intake: a message whose time is over is dead with the code expired") {
    receiver r;
    auto late = good();
    late.expires_at = t0;
    CHECK(dead_of(r, late).last_error == "expired");
    auto in_time = good("m2");
    in_time.expires_at = t0 + tick;
    r.send(in_time);
    CHECK(r.take().stored == 1);
}

TEST_CASE("intake: a message that breaks a rule of the store is dead with the code invalid_message") {
    const std::vector<std::function<void(message&)>> wrongs{[](message& m) { m.topic = "\xff"; },
                                                            [](message& m) { m.topic.assign(300, 't'); },
                                                            [](message& m) { m.lane.assign(300, 'l'); },
                                                            [](message& m) {
                                                                m.headers.assign(65, {"h", "v"});
                                                            },
                                                            [](message& m) {
                                                                m.headers = {{"h", std::string(5000, 'v')}};
                                                            },
                                                            [](message& m) {
                                                                m.headers = {{"", "v"}};
                                                            }};
    for (const auto& wrong : wrongs) {
        receiver r;
        auto bad = good();
        wrong(bad);
        const auto e = dead_of(r, bad);
        CHECK(e.last_error == "invalid_message");
        CHECK(e.payload == "p");
        CHECK(e.key == "shop/m1");
        CHECK((e.topic == "mail.new" || e.topic == "malformed"));
    }
}

TEST_CASE("intake: a message that no queue is bound to is dead with the code unrouted") {
    receiver r({.bindings = vouch::bindings{}.bind("mail.new", "mail")});
    auto how = r.options();
    how.queue.clear();
    how.dead_queue = "unknown";
    auto bad = good();
    bad.topic = "other";
    CHECK(dead_of(r, bad, how).last_error == "unrouted");
}

TEST_CASE("intake: without any queue, dead entries are in a queue named after the source") {
    receiver r;
    auto how = r.options();
    how.queue.clear();
    r.send(good());
    CHECK(r.take(how).dead == 1);
    CHECK(r.store.counts("shop")[state::dead] == 1);
}

TEST_CASE("intake: a mapping that throws makes the message dead, with a code and never a text") {
    struct fault {
        std::function<void()> act;
        std::string code;
    };
    const std::vector<fault> faults{{[] { throw vouch::reject("no_address"); }, "no_address"},
                                    {[] { throw vouch::failure("later"); }, "later"},
                                    {[] { throw vouch::reject(""); }, "rejected"},
                                    {[] { throw vouch::failure(""); }, "rejected"},
                                    {[] { throw std::out_of_range("secret"); }, "std::out_of_range"},
                                    {[] { throw vouch::error(vouch::error_kind::io, "secret"); }, "io"},
                                    {[] { throw 7; }, "unknown_exception"}};
    for (const auto& f : faults) {
        INFO(f.code);
        receiver r;
        auto how = r.options();
        how.map = [&](const message& m) {
            if (m.id == "m1") {
                f.act();
            }
            return vouch::emission_of(m);
        };
        CHECK(dead_of(r, good(), how).last_error == f.code);
    }
}

TEST_CASE("intake: out of memory says nothing about a message") {
    receiver r;
    auto how = r.options();
    how.map = [](const message&) -> vouch::emission { throw std::bad_alloc(); };
    r.send(good());
    CHECK_THROWS_AS(r.take(how), std::bad_alloc);
    CHECK(r.waiting() == 1);
    CHECK(r.take().stored == 1);
}

TEST_CASE("intake: a dead message that comes again is a duplicate") {
    receiver r;
    auto late = good();
    late.expires_at = t0 - 1s;
    r.send(late);
    CHECK(r.take().dead == 1);
    r.send(late);
    const auto done = r.take();
    CHECK(done.duplicates == 1);
    CHECK(done.dead == 0);
    CHECK(r.store.counts("mail").total() == 1);
}

TEST_CASE("intake: a message that was stored in time and comes again too late is a duplicate") {
    for (const bool has_own_dead_queue : {false, true}) {
        receiver r;
        auto how = r.options();
        how.dead_queue = has_own_dead_queue ? "refused" : "";
        auto m = good();
        m.expires_at = t0 + 1h;
        r.send(m);
        CHECK(r.take(how).stored == 1);
        r.clock.pass(2h);
        r.send(m);
        const auto done = r.take(how);
        CHECK(done.duplicates == 1);
        CHECK(done.dead == 0);
        CHECK(r.store.counts("refused").total() == 0);
    }
}

TEST_CASE("intake: a dead entry has its own queue if the options name one, and can be requeued") {
    receiver r;
    auto how = r.options();
    how.dead_queue = "refused";
    how.map = [](const message& m) -> vouch::emission {
        return m.id == "m1" ? throw vouch::reject("no_address") : vouch::emission_of(m);
    };
    const auto e = dead_of(r, good(), how);
    CHECK(e.queue == "refused");
    CHECK(e.state == state::dead);
    CHECK(r.outbox.requeue(e.id).what == vouch::receipt::kind::inserted);
}

TEST_CASE("intake: a clock that steps back between two readings does no harm") {
    receiver r;
    auto now = std::make_shared<vouch::time_point>(t0);
    vouch::outbox<commit_fault_store> outbox(r.store, {.clock = [now] {
                                                 *now -= 1s;
                                                 return *now;
                                             }});
    r.send(good(""));
    CHECK(vouch::intake(*r.from, outbox, r.options()).run_once().dead == 1);
}

} // namespace intake_dead_test
