// SPDX-License-Identifier: MIT
// What an intake stores, and when it acknowledges.
#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include <vouch/relay.hpp>
#include <vouch/testing_broker.hpp>
#include <vouch/vouch.hpp>

#include "catch.hpp"
#include "relay_support.hpp"

namespace intake_store_test {

using namespace relay_test;

TEST_CASE("intake: a message becomes an entry, and is acknowledged") {
    receiver r;
    const vouch::id_list trail{id_of(1), id_of(2)};
    r.send({.id = "m1",
            .topic = "mail.new",
            .payload = std::string("a\0b", 3),
            .key = "their key",
            .lane = "ada",
            .group = "their group",
            .trail = trail,
            .headers = {{"tenant", "acme"}, {"tenant", "b"}},
            .created_at = t0 - 1h,
            .expires_at = t0 + 1h});
    const auto done = r.take();
    CHECK(done.received == 1);
    CHECK(done.stored == 1);
    CHECK(done.duplicates + done.dead + done.errors == 0);
    CHECK(r.waiting() == 0);
    REQUIRE(r.entries().size() == 1);
    const auto e = r.entries().front();
    CHECK(e.topic == "mail.new");
    CHECK(e.payload == std::string("a\0b", 3));
    CHECK(e.key == "shop/m1");
    CHECK(e.lane == "ada");
    CHECK(e.group.empty());
    CHECK(e.headers == vouch::header_list{{"tenant", "acme"}, {"tenant", "b"}});
    CHECK(e.expires_at == t0 + 1h);
    CHECK(e.created_at == t0);
    CHECK(e.state == state::pending);
    // The trail goes on: first what led to the message, then this entry.
    REQUIRE(e.trail.size() == 3);
    CHECK(std::equal(trail.begin(), trail.end(), e.trail.begin()));
    CHECK(e.trail.back() == e.id);
}

TEST_CASE("intake: nothing to receive is no error and stores nothing") {
    receiver r;
    CHECK(r.take().received == 0);
    CHECK(r.store.plan().commits == 0);
}

TEST_CASE("intake: a batch is one commit, and lanes keep their order") {
    receiver r;
    for (int i = 0; i < 30; ++i) {
        r.send({.id = std::to_string(i), .topic = "t", .payload = std::to_string(i), .lane = i % 2 == 0 ? "a" : "b"});
    }
    auto how = r.options();
    how.batch_size = 20;
    CHECK(r.take(how).stored == 20);
    CHECK(r.store.plan().commits == 1);
    CHECK(r.take(how).stored == 10);
    std::vector<std::string> expected;
    for (int i = 0; i < 30; ++i) {
        expected.push_back(std::to_string(i));
    }
    CHECK(payloads(r.entries()) == expected);
}

TEST_CASE("intake: a message that comes again is a duplicate, in one batch and later") {
    receiver r;
    r.send("m1", "first");
    r.send("m1", "again");
    r.send("m2");
    auto done = r.take();
    CHECK(done.received == 3);
    CHECK(done.stored == 2);
    CHECK(done.duplicates == 1);
    r.send("m2");
    done = r.take();
    CHECK(done.stored == 0);
    CHECK(done.duplicates == 1);
    CHECK(payloads(r.entries()) == std::vector<std::string>{"first", "p"});
    CHECK(r.waiting() == 0);
}

TEST_CASE("intake: the same id of another source is another message") {
    receiver r;
    r.send("m1");
    CHECK(r.take().stored == 1);
    r.send("m1");
    auto how = r.options();
    how.source = "billing";
    CHECK(r.take(how).stored == 1);
    CHECK(r.entries().size() == 2);
}

TEST_CASE("intake: nothing is acknowledged before the commit") {
    receiver r;
    r.send("m1");
    r.send("m2");
    r.store.plan().faults = {commit_fault::io};
    const auto fault = error_of([&] { r.take(); });
    REQUIRE(fault);
    CHECK(fault->kind() == vouch::error_kind::io);
    CHECK(r.waiting() == 2);
    CHECK(r.entries().empty());
    CHECK(r.take().stored == 2); // given back, so the same consumer gets them again
    CHECK(r.waiting() == 0);
    CHECK(r.entries().size() == 2);
}

TEST_CASE("intake: a conflict is repeated within the pass") {
    receiver r;
    r.send("m1");
    r.store.plan().faults = {commit_fault::conflict};
    CHECK(r.take().stored == 1);
    CHECK(r.entries().size() == 1);
}

TEST_CASE("intake: a commit in doubt is resolved, and stores each message once") {
    for (const auto fault : {commit_fault::rolled_back_in_doubt, commit_fault::committed_in_doubt}) {
        receiver r;
        r.send("m1");
        r.send({.id = "m2", .topic = "mail.new", .expires_at = t0 - 1s}); // a dead one
        r.store.plan().faults = {fault};
        const auto done = r.take();
        CHECK(done.stored == 1);
        CHECK(done.dead == 1);
        CHECK(done.duplicates == 0);
        CHECK(r.waiting() == 0);
        CHECK(r.store.counts("mail")[state::pending] == 1);
        CHECK(r.store.counts("mail")[state::dead] == 1);
    }
}

TEST_CASE("intake: a message whose acknowledgement is lost is a duplicate the next time") {
    receiver r;
    r.send("m1");
    const auto how = r.options();
    const auto arrived = r.from->receive(10, vouch::duration::zero(), {});
    r.from->give_back(arrived);
    r.take(how);
    r.send("m1"); // as if the broker had not heard of it
    r.from.emplace(r.broker, "mailer");
    CHECK(r.take(how).duplicates == 1);
    CHECK(r.entries().size() == 1);
}

TEST_CASE("intake: without a queue, every bound queue gets an entry") {
    receiver r({.bindings = vouch::bindings{}.bind("mail.*", "mail").bind("#", "archive").bind("order.#", "orders")});
    auto how = r.options();
    how.queue.clear();
    r.send("m1");
    auto done = r.take(how);
    CHECK(done.received == 1);
    CHECK(done.stored == 1);
    REQUIRE(r.entries("mail").size() == 1);
    REQUIRE(r.entries("archive").size() == 1);
    CHECK(r.entries("orders").empty());
    CHECK(r.entries("mail")[0].trail == r.entries("archive")[0].trail);
    CHECK(r.entries("mail")[0].key == "shop/m1");
    r.send("m1");
    CHECK(r.take(how).duplicates == 1);
}

TEST_CASE("intake: the mapping decides what is stored, and where") {
    receiver r;
    auto how = r.options();
    how.map = [](const message& m) {
        auto e = vouch::emission_of(m);
        e.topic = "v2";
        e.key = "overwritten";
        e.queue = m.payload == "urgent" ? "fast" : "";
        e.due_in = 1h;
        return e;
    };
    r.send("m1", "urgent");
    r.send("m2", "slow");
    CHECK(r.take(how).stored == 2);
    REQUIRE(r.entries("fast").size() == 1);
    CHECK(r.entries("fast")[0].topic == "v2");
    CHECK(r.entries("fast")[0].key == "shop/m1");
    CHECK(r.entries("fast")[0].due_at == t0 + 1h);
    CHECK(r.entries("mail").size() == 1);
}

TEST_CASE("intake: observers see what was stored, and nothing of duplicates") {
    receiver r;
    struct {
        void on(const vouch::event& e) noexcept { seen.push_back(e.what); }
        std::vector<vouch::event_kind> seen{};
    } observer;
    r.outbox.observe(observer);
    r.send("m1");
    r.send("m1");
    r.send({.id = "m2", .topic = "t", .expires_at = t0 - 1s});
    r.take();
    using what = vouch::event_kind;
    CHECK(observer.seen == std::vector{what::enqueued, what::enqueued, what::dead});
}

TEST_CASE("intake: options that no message would fit are refused with a clear error") {
    receiver r;
    const auto refused = [&](auto&& change) {
        auto how = r.options();
        change(how);
        const auto e = error_of([&] { vouch::intake(*r.from, r.outbox, how); });
        REQUIRE(e);
        CHECK(e->kind() == vouch::error_kind::invalid_argument);
        return std::string(e->what());
    };
    using options = vouch::intake_options;
    CHECK(has_words(refused([](options& o) { o.source.clear(); }), "source"));
    CHECK(has_words(refused([](options& o) { o.source = "a/b"; }), "contains a /"));
    CHECK(has_words(refused([](options& o) { o.source = std::string(200, 's'); }), "source"));
    CHECK(has_words(refused([](options& o) { o.queue = std::string(300, 'q'); }), "queue"));
    CHECK(has_words(refused([](options& o) { o.dead_queue = "\xff"; }), "dead_queue"));
    CHECK(has_words(refused([](options& o) { o.batch_size = 0; }), "batch_size is 0, it must be from 1 to 10000"));
    CHECK(has_words(refused([](options& o) { o.batch_size = 10'001; }), "batch_size is 10001"));
    CHECK(has_words(refused([](options& o) { o.map = {}; }), "map is empty"));
}

} // namespace intake_store_test
