// SPDX-License-Identifier: MIT
// One consumer against the mock cluster: what it receives, what it commits, and what comes again.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <vouch/kafka.hpp>

#include "catch.hpp"
#include "kafka/cluster.hpp"

namespace kafka_consumer_test {

using namespace std::chrono_literals;
using kafka_test::cluster;
using kafka_test::ids_of;
using kafka_test::message_of;
using kafka_test::receive;
using kafka_test::receiving;
using kafka_test::request;
using kafka_test::send_foreign;

/// Sends messages with the numbers `first` to `last` in one lane.
void send(const cluster& to, int first, int last) {
    vouch::kafka::publisher publisher(kafka_test::sending(to));
    std::vector<vouch::message> all;
    for (int i = first; i <= last; ++i) {
        all.push_back(message_of(i, "lane"));
    }
    for (const auto& answer : publisher.publish(all)) {
        REQUIRE(answer.what == vouch::confirmation::kind::confirmed);
    }
}

std::vector<std::string> numbered(int first, int last) {
    std::vector<std::string> out;
    for (int i = first; i <= last; ++i) {
        out.push_back("m" + std::to_string(i));
    }
    return out;
}

TEST_CASE("kafka consumer: every part of a message arrives as it was given") {
    const cluster at;
    at.create("orders", 1);
    const vouch::message full{.id = "018f0000-0000-7000-8000-000000000001",
                              .topic = "order.placed",
                              .payload = std::string("a\0\xff", 3),
                              .key = "dedup",
                              .lane = "lane",
                              .group = "group",
                              .trail = {vouch::id{1, 2}, vouch::id{3, 4}},
                              .headers = {{"name", "first"}, {"name", ""}, {"vouch-id", "mine"}, {"vouch-", "odd"}},
                              .created_at = vouch::time_point(vouch::duration(1)),
                              .expires_at = vouch::time_point(vouch::duration(-5))};
    const vouch::message bare{.id = "id", .topic = "t"};
    vouch::kafka::publisher publisher(kafka_test::sending(at));
    for (const auto& m : {full, bare}) {
        REQUIRE(publisher.publish(std::array{m}).front().what == vouch::confirmation::kind::confirmed);
    }
    vouch::kafka::consumer consumer(receiving(at.servers()));
    const auto arrived = receive(consumer, 2);
    REQUIRE(arrived.size() == 2);
    CHECK(arrived[0].message == full);
    CHECK(arrived[1].message == bare);
    CHECK(arrived[0].source == "orders/0");
    CHECK(arrived[0].malformed.empty());
    CHECK_FALSE(arrived[0].is_redelivered);
}

TEST_CASE("kafka consumer: foreign messages have a stable id, and unreadable ones a code") {
    const cluster at;
    at.create("orders", 1);
    send_foreign(at, "order-7", {{"trace", "abc"}});
    send_foreign(at, "order-7", {{"vouch-trail", "no id"}});
    send_foreign(at, "order-7", {{"vouch-id", "own"}, {"vouch-topic", "payment.charge"}});
    auto options = receiving(at.servers());
    options.lane_from_key = true;
    vouch::kafka::consumer consumer(options);
    const auto arrived = receive(consumer, 3);
    REQUIRE(arrived.size() == 3);
    const auto id = arrived[0].message.id;
    CHECK(id.starts_with("orders/0/0/1")); // topic, partition, offset and the time of the record
    CHECK(arrived[0].message ==
          vouch::message{.id = id, .topic = "orders", .lane = "order-7", .headers = {{"trace", "abc"}}});
    CHECK(arrived[1].malformed == "malformed_properties");
    CHECK(arrived[1].message.id.starts_with("orders/0/1/1"));
    CHECK(arrived[2].message == vouch::message{.id = "own", .topic = "payment.charge"});
    options.group = "other";
    vouch::kafka::consumer other(options);
    CHECK(ids_of(receive(other, 3)) == ids_of(arrived));
    consumer.acknowledge(arrived);
}

TEST_CASE("kafka consumer: a commit never passes what is not acknowledged") {
    const cluster at;
    at.create("orders", 1);
    send(at, 1, 6);
    {
        vouch::kafka::consumer consumer(receiving(at.servers()));
        const auto arrived = receive(consumer, 6);
        REQUIRE(ids_of(arrived) == numbered(1, 6));
        consumer.acknowledge(std::span(arrived).subspan(3, 3)); // 4 to 6: behind the gap
        consumer.acknowledge(std::span(arrived).first(2));      // 1 and 2
    }
    vouch::kafka::consumer next(receiving(at.servers()));
    const auto again = receive(next, 4);
    CHECK(ids_of(again) == numbered(3, 6));
    next.set_aside(again);
    send(at, 7, 7);
    const auto last = receive(next, 1);
    CHECK(ids_of(last) == numbered(7, 7));
}

TEST_CASE("kafka consumer: what is given back comes again, before what has not been delivered") {
    const cluster at;
    at.create("orders", 1);
    send(at, 1, 5);
    vouch::kafka::consumer consumer(receiving(at.servers()));
    auto arrived = receive(consumer, 3);
    REQUIRE(ids_of(arrived) == numbered(1, 3));
    for (auto& one : arrived) {
        one.message = {}; // an intake may have moved from it
    }
    consumer.give_back(std::array{arrived[2]});
    consumer.give_back(std::array{arrived[1]});
    const auto again = receive(consumer, 4);
    CHECK(ids_of(again) == numbered(2, 5));
    CHECK(again[0].is_redelivered);
    CHECK(again[1].is_redelivered);
    CHECK_FALSE(again[2].is_redelivered);
    consumer.acknowledge(again);
    CHECK(consumer.receive(10, 100ms, {}).empty());
    consumer.acknowledge(arrived);
}

TEST_CASE("kafka consumer: no more messages are received than may be unacknowledged") {
    const cluster at;
    at.create("orders", 1);
    send(at, 1, 12);
    auto options = receiving(at.servers());
    options.unacknowledged_max = 5;
    vouch::kafka::consumer consumer(options);
    auto first = receive(consumer, 5);
    REQUIRE(ids_of(first) == numbered(1, 5));
    CHECK(consumer.receive(10, 1s, {}).empty());
    CHECK(consumer.receive(10, 1s, {}).empty());
    consumer.acknowledge(std::span(first).first(3));
    auto more = receive(consumer, 3);
    CHECK(ids_of(more) == numbered(6, 8));
    CHECK(consumer.receive(10, 100ms, {}).empty());
    consumer.acknowledge(std::span(first).subspan(3));
    consumer.acknowledge(more);
    CHECK(ids_of(receive(consumer, 4)) == numbered(9, 12));
}

TEST_CASE("kafka consumer: a bound in bytes holds too, and one larger message passes") {
    const cluster at;
    at.create("orders", 1);
    send(at, 1, 3);
    auto options = receiving(at.servers());
    options.unacknowledged_bytes_max = 1;
    vouch::kafka::consumer consumer(options);
    for (int i = 1; i <= 3; ++i) {
        const auto one = receive(consumer, 1);
        REQUIRE(ids_of(one) == numbered(i, i));
        CHECK(consumer.receive(10, 50ms, {}).empty());
        consumer.acknowledge(one);
    }
}

TEST_CASE("kafka consumer: receive waits no longer than it may, and returns when it is stopped") {
    const cluster at;
    at.create("orders", 1);
    vouch::kafka::consumer consumer(receiving(at.servers()));
    auto start = std::chrono::steady_clock::now();
    CHECK(consumer.receive(1, 200ms, {}).empty());
    CHECK(std::chrono::steady_clock::now() - start >= 200ms);
    std::stop_source stop;
    start = std::chrono::steady_clock::now();
    std::jthread stopper([&] {
        std::this_thread::sleep_for(100ms);
        stop.request_stop();
    });
    CHECK(consumer.receive(1, vouch::duration::max(), stop.get_token()).empty());
    CHECK(std::chrono::steady_clock::now() - start < 20s);
    CHECK(consumer.receive(0, vouch::duration::max(), {}).empty());
}

TEST_CASE("kafka consumer: after cancel nothing is received, and acknowledgements still count") {
    const cluster at;
    at.create("orders", 1);
    send(at, 1, 6);
    vouch::kafka::consumer consumer(receiving(at.servers()));
    const auto arrived = receive(consumer, 4);
    REQUIRE(ids_of(arrived) == numbered(1, 4));
    consumer.give_back(std::span(arrived).subspan(3));
    consumer.cancel();
    CHECK(consumer.receive(10, 10s, {}).empty());
    CHECK(consumer.handle() != nullptr); // three messages are open
    consumer.acknowledge(std::span(arrived).first(2));
    consumer.give_back(std::span(arrived).subspan(2));
    CHECK(consumer.handle() == nullptr);
    CHECK(consumer.receive(10, 10s, {}).empty());

    vouch::kafka::consumer next(receiving(at.servers()));
    CHECK(ids_of(receive(next, 4)) == numbered(3, 6));
}

TEST_CASE("kafka consumer: a commit that fails is an error, and the next call commits it") {
    const cluster at;
    at.create("orders", 1);
    send(at, 1, 3);
    auto options = receiving(at.servers());
    options.commit_limit = 2s;
    {
        vouch::kafka::consumer consumer(options);
        const auto arrived = receive(consumer, 3);
        REQUIRE(arrived.size() == 3);
        at.fail(request::offset_commit, {RD_KAFKA_RESP_ERR_GROUP_AUTHORIZATION_FAILED});
        try {
            consumer.acknowledge(std::span(arrived).first(2));
            FAIL("it must throw");
        } catch (const vouch::error& e) {
            CHECK(e.kind() == vouch::error_kind::io);
            CHECK(e.is_transient());
            CHECK(std::string(e.what()).find("GROUP_AUTHORIZATION_FAILED") != std::string::npos);
        }
        consumer.acknowledge({}); // commits 1 and 2
    }
    vouch::kafka::consumer next(receiving(at.servers()));
    CHECK(ids_of(receive(next, 1)) == numbered(3, 3));
}

TEST_CASE("kafka consumer: brokers that go away and come back lose nothing") {
    const cluster at;
    at.create("orders", 1);
    send(at, 1, 2);
    vouch::kafka::consumer consumer(receiving(at.servers()));
    const auto first = receive(consumer, 2);
    REQUIRE(ids_of(first) == numbered(1, 2));
    consumer.acknowledge(first);
    at.down();
    bool has_thrown = false;
    for (int i = 0; i < 20 && !has_thrown; ++i) {
        try {
            const auto none = consumer.receive(1, 500ms, {});
            CHECK(none.empty());
        } catch (const vouch::error& e) {
            has_thrown = true;
            CHECK(e.is_transient());
        }
    }
    CHECK(has_thrown);
    at.up();
    send(at, 3, 4);
    std::vector<vouch::received> more;
    for (int i = 0; i < 120 && more.size() < 2; ++i) {
        try {
            auto some = consumer.receive(2, 500ms, {});
            std::move(some.begin(), some.end(), std::back_inserter(more));
        } catch (const vouch::error& e) {
            CHECK(e.is_transient());
        }
    }
    CHECK(ids_of(more) == numbered(3, 4));
}

TEST_CASE("kafka consumer: an unreachable broker and a missing topic are clear errors") {
    auto options = receiving("127.0.0.1:1");
    vouch::kafka::consumer lost(options);
    try {
        (void)lost.receive(1, 3s, {});
        FAIL("it must throw");
    } catch (const vouch::error& e) {
        CHECK(e.kind() == vouch::error_kind::io);
        CHECK(e.text_code() == "brokers_unreach"); // cut to what an error can hold
    }
    const cluster at;
    at.fail_topic("orders", RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
    vouch::kafka::consumer consumer(receiving(at.servers()));
    try {
        (void)receive(consumer, 1);
        FAIL("it must throw");
    } catch (const vouch::error& e) {
        CHECK(e.is_transient());
        CHECK(std::string(e.what()).find("receive from orders") != std::string::npos);
    }
}

TEST_CASE("kafka consumer: a client that cannot authenticate is told so") {
    const cluster at; // which does not know SASL
    auto options = receiving(at.servers());
    options.settings = kafka_test::with_password("hunter2");
    vouch::kafka::consumer consumer(options);
    try {
        (void)consumer.receive(1, 60s, {});
        FAIL("it must throw");
    } catch (const vouch::error& e) {
        CHECK(e.kind() == vouch::error_kind::invalid_argument);
        CHECK(e.text_code() == "not_authenticat"); // cut to what an error can hold
        CHECK(std::string(e.what()).find("hunter2") == std::string::npos);
    }
}

TEST_CASE("kafka consumer: wrong options and settings are named") {
    const auto refusal = [](const vouch::kafka::consumer_options& options) -> std::string {
        try {
            vouch::kafka::consumer consumer(options);
        } catch (const vouch::error& e) {
            CHECK(e.kind() == vouch::error_kind::invalid_argument);
            return e.what();
        }
        return "nothing was refused";
    };
    CHECK(refusal({.topics = {"t"}}).find("group is empty") != std::string::npos);
    CHECK(refusal({.group = "g"}).find("topics is empty") != std::string::npos);
    CHECK(refusal({.group = "g", .topics = {"^.*"}}).find("no name of a Kafka topic") != std::string::npos);
    CHECK(refusal({.group = "g", .topics = {"t"}, .unacknowledged_max = 0}).find("at least 1") != std::string::npos);
    CHECK(refusal({.group = "g", .topics = {"t"}, .queue_kbytes = 0}).find("queued.max") != std::string::npos);
    CHECK(refusal({.group = "g", .topics = {"t"}, .settings = {{"enable.auto.commit", "true"}}}).find("cannot be") !=
          std::string::npos);
    CHECK(refusal({.group = "g", .topics = {"t"}, .settings = {{"session.timeout.ms", "x"}}})
              .find("session.timeout.ms") != std::string::npos);
}

TEST_CASE("kafka consumer: a consumer leaves in time while the cluster is down or silent") {
    for (const bool is_silent : {false, true}) {
        CAPTURE(is_silent);
        const cluster at;
        at.create("orders", 1);
        send(at, 1, 2);
        auto options = receiving(at.servers());
        options.commit_limit = 500ms;
        const auto took = [](const auto& call) {
            const auto start = std::chrono::steady_clock::now();
            call();
            return std::chrono::steady_clock::now() - start;
        };
        auto consumer = std::make_unique<vouch::kafka::consumer>(options);
        options.group = "other";
        vouch::kafka::consumer cancelled(options);
        cancelled.give_back(receive(cancelled, 2));
        const auto arrived = receive(*consumer, 2);
        REQUIRE(arrived.size() == 2);
        consumer->acknowledge(std::span(arrived).first(1));
        is_silent ? at.delay(60s) : at.down();
        CHECK(took([&] { cancelled.cancel(); }) < 15s);
        CHECK(cancelled.handle() == nullptr);
        CHECK(took([&] { CHECK_THROWS_AS(consumer->acknowledge(std::span(arrived).subspan(1)), vouch::error); }) < 15s);
        CHECK(took([&] { consumer.reset(); }) < 15s);
    }
}

TEST_CASE("kafka consumer: one that gets only what it has given back stays in its group") {
    const cluster at;
    at.create("orders", 1);
    send(at, 1, 12);
    std::atomic<int> expelled = 0;
    const auto in_group = [&](const std::string& group) {
        auto out = receiving(at.servers());
        out.group = group;
        out.settings.push_back({"max.poll.interval.ms", "3000"});
        out.log = [&expelled](int, std::string_view text) { expelled += text.starts_with("MAXPOLL") ? 1 : 0; };
        return out;
    };
    vouch::kafka::consumer full(in_group("full")); // its batches are full
    auto bounded = in_group("bounded");            // it may hold no more
    bounded.unacknowledged_max = 5;
    vouch::kafka::consumer held(bounded);
    full.give_back(receive(full, 10));
    held.give_back(receive(held, 5));
    const auto until = std::chrono::steady_clock::now() + 5s;
    while (std::chrono::steady_clock::now() < until) {
        for (auto* const one : {&full, &held}) {
            const auto some = one->receive(10, 100ms, {});
            CHECK(some.size() == (one == &full ? 10U : 5U));
            one->give_back(some);
        }
        std::this_thread::sleep_for(100ms);
    }
    CHECK(expelled == 0);
    const auto all = receive(full, 12);
    CHECK(ids_of(all) == numbered(1, 12));
    full.acknowledge(all);
    const auto some = receive(held, 5);
    CHECK(ids_of(some) == numbered(1, 5));
    held.acknowledge(some);
    CHECK(ids_of(receive(held, 5)) == numbered(6, 10));
}

} // namespace kafka_consumer_test
