// SPDX-License-Identifier: MIT
// The publisher against the mock cluster: confirmations, order, refusals, and every kind of trouble.
#include <array>
#include <chrono>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <librdkafka/rdkafka.h>

#include <vouch/kafka.hpp>

#include "catch.hpp"
#include "kafka/cluster.hpp"

template <>
struct Catch::StringMaker<vouch::confirmation> {
    static std::string convert(const vouch::confirmation& c) {
        return std::string(vouch::name_of(c.what)) + " " + c.code;
    }
};

namespace kafka_publisher_test {

using namespace std::chrono_literals;
using kafka_test::cluster;
using kafka_test::message_of;
using kafka_test::request;
using kafka_test::sending;
using vouch::confirmation;

const confirmation confirmed{confirmation::kind::confirmed, ""};
confirmation refused(std::string code) { return {confirmation::kind::refused, std::move(code)}; }
confirmation unknown(std::string code) { return {confirmation::kind::unknown, std::move(code)}; }

confirmation publish_one(vouch::kafka::publisher& to, const vouch::message& m) {
    const auto answers = to.publish(std::array{m});
    REQUIRE(answers.size() == 1);
    return answers.front();
}

/// With a short limit, a slow machine may need more than one call.
void publish_until_confirmed(vouch::kafka::publisher& to, const vouch::message& m) {
    auto answer = publish_one(to, m);
    for (int i = 0; i < 60 && answer != confirmed; ++i) {
        answer = publish_one(to, m);
    }
    REQUIRE(answer == confirmed);
}

/// `count` messages in three lanes.
std::vector<vouch::message> batch(int first, int count) {
    std::vector<vouch::message> out;
    for (int i = first; i < first + count; ++i) {
        out.push_back(message_of(i, "lane" + std::to_string(i % 3)));
    }
    return out;
}

/// Whether the topic has these messages in the order of their lanes.
void check_order(const cluster& at, const std::vector<vouch::message>& sent, int partitions) {
    std::map<std::string, std::vector<std::string>> expected;
    for (const auto& m : sent) {
        expected[m.lane].push_back(m.id);
    }
    CHECK(kafka_test::ids_by_key(kafka_test::records(at.servers(), "orders", partitions)) == expected);
}

TEST_CASE("kafka publisher: messages are confirmed and in the order of their lanes") {
    const cluster at;
    at.create("orders", 4);
    vouch::kafka::publisher publisher(sending(at));
    const auto sent = batch(0, 60);
    CHECK(publisher.publish(std::span(sent).first(30)) == std::vector<confirmation>(30, confirmed));
    CHECK(publisher.publish(std::span(sent).subspan(30)) == std::vector<confirmation>(30, confirmed));
    CHECK(publisher.publish({}).empty());
    check_order(at, sent, 4);
}

TEST_CASE("kafka publisher: the key is the lane, else the id, and a key is always in the same partition") {
    const cluster at;
    at.create("orders", 8);
    vouch::kafka::publisher publisher(sending(at));
    std::vector<vouch::message> sent{message_of(1), message_of(2, "lane"), message_of(3, "lane")};
    CHECK(publisher.publish(sent) == std::vector<confirmation>(3, confirmed));
    std::map<std::string, std::set<int>> partitions;
    for (const auto& record : kafka_test::records(at.servers(), "orders", 8)) {
        partitions[record.key].insert(record.partition);
    }
    REQUIRE(partitions.size() == 2);
    CHECK(partitions["m1"].size() == 1);
    CHECK(partitions["lane"].size() == 1);
}

TEST_CASE("kafka publisher: a message that no route takes is refused, and the others are confirmed") {
    const cluster at;
    vouch::kafka::publisher publisher(
        {.bootstrap_servers = at.servers(), .routes = {{"order.*", "orders"}}, .topic_of = [](const vouch::message& m) {
             return m.topic == "odd" ? std::string("no name") : std::string();
         }});
    auto sent = batch(0, 4);
    sent[1].topic = "payment.charge";
    sent[2].topic = "odd";
    CHECK(publisher.publish(sent) ==
          std::vector{confirmed, refused("unroutable"), refused("invalid_topic"), confirmed});
}

TEST_CASE("kafka publisher: a message that is too large is refused, and the others are confirmed") {
    const cluster at;
    vouch::kafka::publisher publisher(sending(at));
    auto sent = batch(0, 3);
    sent[1].payload.assign(2'000'000, 'x');
    CHECK(publisher.publish(sent) == std::vector{confirmed, refused("message_too_large"), confirmed});
    sent[1].payload.assign(1024 * 1024, 'x'); // the largest payload of an entry
    CHECK(publisher.publish(sent) == std::vector<confirmation>(3, confirmed));
}

TEST_CASE("kafka publisher: a message that the broker refuses alone is refused") {
    const cluster at;
    vouch::kafka::publisher publisher(sending(at));
    CHECK(publish_one(publisher, message_of(1)) == confirmed);
    at.fail(request::produce, {RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE});
    CHECK(publish_one(publisher, message_of(2)) == refused("message_too_large"));
    at.fail(request::produce, {RD_KAFKA_RESP_ERR_INVALID_RECORD});
    CHECK(publish_one(publisher, message_of(3)) == refused("invalid_record"));
    CHECK(publish_one(publisher, message_of(4)) == confirmed);
}

TEST_CASE("kafka publisher: the messages of a batch that the broker refuses are sent again, one by one") {
    const cluster at;
    at.create("orders", 1);
    vouch::kafka::publisher publisher(sending(at, 30s, {{"linger.ms", "200"}})); // so that they are one batch
    CHECK(publish_one(publisher, message_of(0, "lane0")) == confirmed);
    // The batch, then the second message alone.
    at.fail(request::produce,
            {RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE, RD_KAFKA_RESP_ERR_NO_ERROR, RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE});
    std::vector<vouch::message> sent{message_of(1, "lane0"), message_of(2, "lane0"), message_of(3, "lane0")};
    CHECK(publisher.publish(sent) == std::vector{confirmed, refused("message_too_large"), confirmed});
    const auto ids = kafka_test::ids_by_key(kafka_test::records(at.servers(), "orders", 1));
    CHECK(ids.at("lane0") == std::vector<std::string>{"m0", "m1", "m3"});
}

TEST_CASE("kafka publisher: a refused message that a later one of its lane has overtaken is not sent again") {
    const cluster at;
    at.create("orders", 1);
    // One message a batch, one batch at a time.
    vouch::kafka::publisher publisher(sending(at, 30s, {{"batch.num.messages", "1"}, {"max.in.flight", "1"}}));
    CHECK(publish_one(publisher, message_of(0, "lane0")) == confirmed);
    at.fail(request::produce, {RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE});
    std::vector<vouch::message> sent{message_of(1, "lane0"), message_of(2, "lane0")};
    CHECK(publisher.publish(sent) == std::vector{unknown("batch_refused"), confirmed});
    const auto ids = kafka_test::ids_by_key(kafka_test::records(at.servers(), "orders", 1));
    CHECK(ids.at("lane0") == std::vector<std::string>{"m0", "m2"});
}

TEST_CASE("kafka publisher: order is kept while brokers fail, leaders change and connections are cut") {
    const cluster at;
    at.create("orders", 2);
    // One request at a time: if one fails, a real broker refuses those behind it by their sequence numbers, but the mock
    // cluster checks these numbers for transactions only.
    vouch::kafka::publisher publisher(sending(at, 60s, {{"max.in.flight", "1"}}));
    std::vector<vouch::message> sent;
    for (int round = 0; round < 6; ++round) {
        at.lead("orders", 0, 1 + round % 3);
        at.lead("orders", 1, 1 + (round + 1) % 3);
        at.fail(request::produce,
                {RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS, RD_KAFKA_RESP_ERR_NO_ERROR, RD_KAFKA_RESP_ERR_REQUEST_TIMED_OUT,
                 RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION, RD_KAFKA_RESP_ERR_NO_ERROR, RD_KAFKA_RESP_ERR__TRANSPORT,
                 RD_KAFKA_RESP_ERR_NOT_ENOUGH_REPLICAS_AFTER_APPEND});
        const auto some = batch(round * 30, 30);
        CHECK(publisher.publish(some) == std::vector<confirmation>(30, confirmed));
        sent.insert(sent.end(), some.begin(), some.end());
    }
    check_order(at, sent, 2);
}

TEST_CASE("kafka publisher: a broker that goes away in between is connected again") {
    const cluster at;
    at.create("orders", 1);
    vouch::kafka::publisher publisher(sending(at, 1s));
    publish_until_confirmed(publisher, message_of(1));
    at.down();
    CHECK(publish_one(publisher, message_of(2)).what == confirmation::kind::unknown);
    at.up();
    publish_until_confirmed(publisher, message_of(3));
}

TEST_CASE("kafka publisher: an unreachable broker is an answer within the time limit") {
    vouch::kafka::publisher publisher(
        {.bootstrap_servers = "127.0.0.1:1", .default_topic = "orders", .publish_limit = 2s});
    const auto start = std::chrono::steady_clock::now();
    CHECK(publish_one(publisher, message_of(1)) == unknown("brokers_unreachable"));
    const auto took = std::chrono::steady_clock::now() - start;
    CHECK(took >= 2s);
    CHECK(took < 15s);
}

TEST_CASE("kafka publisher: a late report of one call is not an answer to the next") {
    const cluster at(1);
    at.create("orders", 1);
    at.create("headless", 1);
    at.lead("headless", 0, -1); // nothing can be delivered there
    auto options = sending(at, 6s);
    options.routes = {{"never", "headless"}};
    vouch::kafka::publisher publisher(options);
    publish_until_confirmed(publisher, message_of(1));
    auto stuck = message_of(2);
    stuck.topic = "never";
    {
        // The second call waits three seconds for its turn, so librdkafka keeps its message for three seconds more.
        std::jthread first([&] { (void)publisher.publish(std::array{stuck}); });
        std::this_thread::sleep_for(3s);
        CHECK(publish_one(publisher, stuck).what == confirmation::kind::unknown);
    }
    // It reports that message during this call, before the broker answers.
    at.delay(4s);
    CHECK(publish_one(publisher, message_of(3)) == confirmed);
}

TEST_CASE("kafka publisher: what an operator can mend is unknown, with a code that says what") {
    const cluster at;
    at.create("orders", 1);
    vouch::kafka::publisher publisher(sending(at, 30s));
    CHECK(publish_one(publisher, message_of(1)) == confirmed);
    at.fail(request::produce, {RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED});
    CHECK(publish_one(publisher, message_of(2)) == unknown("topic_not_authorized"));
    at.fail(request::produce, {RD_KAFKA_RESP_ERR_POLICY_VIOLATION});
    CHECK(publish_one(publisher, message_of(2)) == unknown("policy_violation"));
    CHECK(publish_one(publisher, message_of(2)) == confirmed);

    at.fail_topic("orders", RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
    vouch::kafka::publisher other(sending(at, 10s));
    CHECK(publish_one(other, message_of(3)) == unknown("unknown_topic"));
    at.fail_topic("orders", RD_KAFKA_RESP_ERR_NO_ERROR);
    CHECK(publish_one(other, message_of(3)) == confirmed);
}

TEST_CASE("kafka publisher: after a fatal error the next call has a new producer") {
    const cluster at;
    vouch::kafka::publisher publisher(sending(at));
    CHECK(publish_one(publisher, message_of(1)) == confirmed);
    rd_kafka_test_fatal_error(publisher.handle(), RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER, "by a test");
    CHECK(publish_one(publisher, message_of(2)) == unknown("producer_failed"));
    CHECK(publisher.handle() == nullptr);
    CHECK(publish_one(publisher, message_of(2)) == confirmed);

    at.fail(request::init_producer_id, {RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED});
    vouch::kafka::publisher other(sending(at));
    CHECK(publish_one(other, message_of(3)) == unknown("cluster_not_authorized"));
    CHECK(publish_one(other, message_of(3)) == confirmed);
}

TEST_CASE("kafka publisher: threads publish at the same time") {
    const cluster at;
    at.create("orders", 4);
    vouch::kafka::publisher publisher(sending(at, 60s));
    std::vector<std::thread> threads;
    std::array<std::vector<confirmation>, 4> answers;
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&, t] {
            for (int i = 0; i < 20; ++i) {
                const std::array sent{message_of(t * 1000 + i, "thread" + std::to_string(t))};
                answers.at(static_cast<std::size_t>(t)).push_back(publisher.publish(sent).front());
            }
        });
    }
    for (auto& one : threads) {
        one.join();
    }
    const auto ids = kafka_test::ids_by_key(kafka_test::records(at.servers(), "orders", 4));
    for (int t = 0; t < 4; ++t) {
        CHECK(answers.at(static_cast<std::size_t>(t)) == std::vector<confirmation>(20, confirmed));
        std::vector<std::string> expected;
        for (int i = 0; i < 20; ++i) {
            expected.push_back("m" + std::to_string(t * 1000 + i));
        }
        CHECK(ids.at("thread" + std::to_string(t)) == expected);
    }
}

TEST_CASE("kafka publisher: a call that gets no turn in time says so") {
    const cluster at;
    at.create("orders", 1);
    at.lead("orders", 0, -1);
    vouch::kafka::publisher publisher(sending(at, 1s));
    std::array<confirmation, 2> answers;
    {
        std::jthread one([&] { answers[0] = publisher.publish(std::array{message_of(1)}).front(); });
        std::jthread two([&] { answers[1] = publisher.publish(std::array{message_of(2)}).front(); });
    }
    CHECK(answers[0].what == confirmation::kind::unknown);
    CHECK(answers[1].what == confirmation::kind::unknown);
    const auto is_busy = [](const confirmation& c) { return c.code == "publisher_busy"; };
    CHECK(std::count_if(answers.begin(), answers.end(), is_busy) <= 1);
}

TEST_CASE("kafka publisher: a full queue delays a call and loses nothing") {
    const cluster at;
    at.create("orders", 2);
    vouch::kafka::publisher publisher(sending(at, 60s, {{"queue.buffering.max.messages", "5"}}));
    const auto sent = batch(0, 100);
    CHECK(publisher.publish(sent) == std::vector<confirmation>(100, confirmed));
    check_order(at, sent, 2);
}

TEST_CASE("kafka publisher: a wrong setting is named, and a secret is not shown") {
    const auto refusal = [](std::vector<vouch::kafka::setting> settings) -> std::string {
        try {
            vouch::kafka::publisher publisher({.default_topic = "orders", .settings = std::move(settings)});
        } catch (const vouch::error& e) {
            CHECK(e.kind() == vouch::error_kind::invalid_argument);
            return e.what();
        }
        return "nothing was refused";
    };
    CHECK(refusal({{"no.such.setting", "1"}}) ==
          "kafka: publisher: setting 'no.such.setting': No such configuration property: \"no.such.setting\"");
    CHECK(refusal({{"linger.ms", "soon"}}).find("setting 'linger.ms'") != std::string::npos);
    CHECK(refusal({{"acks", "1"}}).find("setting 'acks' cannot be changed") != std::string::npos);
    CHECK(refusal({{"enable.idempotence", "false"}}).find("cannot be changed") != std::string::npos);
    CHECK(refusal({{"max.in.flight", "100"}}).find("do not fit together") != std::string::npos);
    const auto hidden = refusal({{"ssl.endpoint.identification.algorithm", "hunter2"}});
    CHECK(hidden.find("ssl.endpoint.identification.algorithm") != std::string::npos);
    CHECK(hidden.find("hunter2") == std::string::npos);
    CHECK_THROWS_AS(vouch::kafka::publisher({.publish_limit = 1ms}), vouch::error);
}

TEST_CASE("kafka publisher: a client that cannot authenticate is told so, and its password is not") {
    const cluster at; // which does not know SASL
    vouch::kafka::publisher publisher(sending(at, 60s, kafka_test::with_password("hunter2")));
    try {
        (void)publish_one(publisher, message_of(1));
        FAIL("it must throw");
    } catch (const vouch::error& e) {
        CHECK(e.kind() == vouch::error_kind::invalid_argument);
        CHECK(std::string(e.what()).find("authenticate") != std::string::npos);
        CHECK(std::string(e.what()).find("hunter2") == std::string::npos);
    }
}

TEST_CASE("kafka publisher: a message without an id is refused, and the others are confirmed") {
    const cluster at;
    vouch::kafka::publisher publisher(sending(at));
    auto sent = batch(0, 3);
    sent[1].id.clear();
    CHECK(publisher.publish(sent) == std::vector{confirmed, refused("invalid_message"), confirmed});
}

TEST_CASE("kafka publisher: a header whose name cannot travel is refused") {
    const cluster at;
    vouch::kafka::publisher publisher(sending(at));
    auto m = message_of(1);
    m.headers = {{std::string("a\0b", 3), "value"}};
    CHECK(publish_one(publisher, m) == refused("invalid_header_name"));
}

TEST_CASE("kafka publisher: librdkafka's log goes to the application") {
    std::mutex mutex;
    std::string text;
    {
        vouch::kafka::publisher publisher({.bootstrap_servers = "127.0.0.1:1",
                                           .default_topic = "orders",
                                           .publish_limit = 1s,
                                           .log = [&](int, std::string_view line) {
                                               const std::lock_guard lock(mutex);
                                               text += line;
                                           }});
        CHECK(publish_one(publisher, message_of(1)).what == confirmation::kind::unknown);
    }
    CHECK(text.find("127.0.0.1:1") != std::string::npos);
}

} // namespace kafka_publisher_test
