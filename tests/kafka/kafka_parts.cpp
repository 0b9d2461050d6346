// SPDX-License-Identifier: MIT
// The parts that need no cluster: names, routes, commands, the table of errors, reports and offsets.
#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <vouch/kafka.hpp>

#include "catch.hpp"
#include "property.hpp"

namespace kafka_parts_test {

using vouch::confirmation;
using vouch::kafka::topic_map;

std::string refusal(const auto& call) {
    try {
        call();
    } catch (const vouch::error& e) {
        CHECK(e.kind() == vouch::error_kind::invalid_argument);
        return e.what();
    }
    return "nothing was refused";
}

TEST_CASE("topic names: Kafka's rule") {
    using vouch::kafka::is_topic_name;
    CHECK(is_topic_name("payment.commands_2-x"));
    CHECK(is_topic_name(std::string(249, 'a')));
    CHECK_FALSE(is_topic_name(std::string(250, 'a')));
    for (const auto* const wrong : {"", ".", "..", "a b", "a/b", "a'b", "\xc3\xa4", "^a.*"}) {
        CAPTURE(wrong);
        CHECK_FALSE(is_topic_name(wrong));
    }
}

TEST_CASE("routes: the most specific pattern decides, then the first, then the default") {
    const topic_map map({.routes = {{"#", "everything"},
                                    {"payment.*", "payments"},
                                    {"payment.charge", "charges"},
                                    {"payment.charge", "never"}}});
    CHECK(map.find({.topic = "payment.charge"}) == "charges");
    CHECK(map.find({.topic = "payment.refund"}) == "payments");
    CHECK(map.find({.topic = "order"}) == "everything");
    CHECK(map.names() == std::vector<std::string>{"charges", "everything", "never", "payments"});

    const topic_map strict({.routes = {{"payment.*", "payments"}}});
    CHECK(strict.find({.topic = "order"}).empty());
    const topic_map lax({.routes = {{"payment.*", "payments"}}, .default_topic = "rest"});
    CHECK(lax.find({.topic = "order"}) == "rest");
}

TEST_CASE("routes: a function is asked first, and may leave it to the routes") {
    const topic_map map({.default_topic = "rest", .topic_of = [](const vouch::message& m) {
                             return m.group.empty() ? std::string() : "of-" + m.group;
                         }});
    CHECK(map.find({.topic = "a", .group = "g"}) == "of-g");
    CHECK(map.find({.topic = "a"}) == "rest");
}

TEST_CASE("routes: a wrong pattern or name is refused") {
    CHECK(refusal([] { topic_map({.routes = {{"a.*", "no name"}}}); }).find("route 'a.*'") != std::string::npos);
    CHECK(refusal([] { topic_map({.routes = {{"a*", "t"}}}); }).find("pattern") != std::string::npos);
    CHECK(refusal([] { topic_map({.default_topic = "'; rm"}); }).find("default_topic has 5 bytes") !=
          std::string::npos);
}

TEST_CASE("topics: the commands that create what the routes name") {
    auto topics = vouch::kafka::topics_of({.routes = {{"payment.*", "payment.commands"}}, .default_topic = "replies"});
    REQUIRE(topics.size() == 2);
    topics[1].partitions = 1;
    topics[1].retention = std::chrono::milliseconds(-1);
    topics[1].message_max_bytes = 2'000'000;
    CHECK(vouch::kafka::create_commands(topics, {.bootstrap_servers = "k1:9092,k2:9092", .tool = "it's"}) ==
          "'it'\\''s' --create --if-not-exists --bootstrap-server 'k1:9092,k2:9092' --topic 'payment.commands' "
          "--partitions 6 --replication-factor 3 --config min.insync.replicas=2 --config retention.ms=604800000\n"
          "'it'\\''s' --create --if-not-exists --bootstrap-server 'k1:9092,k2:9092' --topic 'replies' "
          "--partitions 1 --replication-factor 3 --config min.insync.replicas=2 --config retention.ms=-1 "
          "--config max.message.bytes=2000000\n");
}

TEST_CASE("topics: wrong names and numbers are refused") {
    using vouch::kafka::create_command;
    CHECK(refusal([] { (void)create_command({.name = "$(reboot)"}); }).find("no name of a Kafka topic") !=
          std::string::npos);
    CHECK(refusal([] { (void)create_command({.name = "a", .partitions = 0}); }).find("0 partitions") !=
          std::string::npos);
    CHECK(refusal([] { (void)create_command({.name = "a", .replication_factor = 1}); }).find("insync_min is 2") !=
          std::string::npos);
    CHECK(refusal([] {
              (void)create_command({.name = "a", .retention = std::chrono::milliseconds(0)});
          }).find("retention is 0 ms") != std::string::npos);
    const std::vector<vouch::kafka::topic> same{{.name = "a.b"}, {.name = "a_b"}};
    CHECK(refusal([&] { (void)vouch::kafka::create_commands(same); }).find("the same to Kafka") != std::string::npos);
}

TEST_CASE("answers: each error has one row, and every code is a word") {
    std::set<int> seen;
    for (const auto& row : vouch::kafka::detail::answer_table) {
        CAPTURE(rd_kafka_err2name(row.error));
        CHECK(seen.insert(row.error).second);
        CHECK(row.code.empty() == (row.error == RD_KAFKA_RESP_ERR_NO_ERROR));
        CHECK(std::all_of(row.code.begin(), row.code.end(), [](char c) { return (c >= 'a' && c <= 'z') || c == '_'; }));
    }
}

TEST_CASE("answers: only success confirms, and only the message's own faults refuse it") {
    const rd_kafka_err_desc* all = nullptr;
    std::size_t count = 0;
    rd_kafka_get_err_descs(&all, &count);
    std::set<std::string> refused;
    for (std::size_t i = 0; i < count; ++i) {
        const auto answer = vouch::kafka::answer_of(all[i].code);
        CAPTURE(all[i].name);
        CHECK((answer.what == confirmation::kind::confirmed) == (all[i].code == RD_KAFKA_RESP_ERR_NO_ERROR));
        if (answer.what == confirmation::kind::refused) {
            refused.insert(all[i].name);
        }
    }
    CHECK(refused ==
          std::set<std::string>{"INVALID_MSG_SIZE", "INVALID_RECORD", "MSG_SIZE_TOO_LARGE", "RECORD_LIST_TOO_LARGE"});
    CHECK(vouch::kafka::answer_of(RD_KAFKA_RESP_ERR_STALE_BROKER_EPOCH).code == "kafka_error");
}

TEST_CASE("reports: a report of an earlier call is dropped") {
    vouch::kafka::detail::reports reports;
    reports.open(2);
    auto* const early = reports.number_of(1);
    reports.sent();
    CHECK_FALSE(reports.is_complete());

    reports.open(2);
    reports.sent();
    reports.arrive(early, RD_KAFKA_RESP_ERR_NO_ERROR);
    CHECK_FALSE(reports.is_complete());
    CHECK_FALSE(reports[0]);
    CHECK_FALSE(reports[1]);

    reports.arrive(reports.number_of(0), RD_KAFKA_RESP_ERR_NO_ERROR);
    reports.arrive(reports.number_of(0), RD_KAFKA_RESP_ERR__FAIL); // a second report changes nothing
    CHECK(reports.is_complete());
    CHECK(reports[0] == RD_KAFKA_RESP_ERR_NO_ERROR);
}

TEST_CASE("connection errors: the one that says most is kept") {
    vouch::kafka::detail::client_events events;
    events.note(RD_KAFKA_RESP_ERR__TRANSPORT, "");
    events.note(RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN, "");
    events.note(RD_KAFKA_RESP_ERR__TRANSPORT, "");
    CHECK(events.last_error == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN);
    events.note(RD_KAFKA_RESP_ERR__AUTHENTICATION, "");
    events.note(RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN, "");
    CHECK(events.last_error == RD_KAFKA_RESP_ERR__AUTHENTICATION);
}

TEST_CASE("connection errors: a connection that is lost while it authenticates is no refusal") {
    vouch::kafka::detail::client_events events;
    events.note(RD_KAFKA_RESP_ERR__AUTHENTICATION,
                "sasl_plaintext://k1:9092/bootstrap: SASL PLAIN mechanism handshake failed: Local: Broker transport "
                "failure: broker's supported mechanisms: (n/a) (after 0ms in state DOWN)");
    events.note(RD_KAFKA_RESP_ERR__TRANSPORT, "SASL authentication error: SaslAuthenticateRequest failed: Local: "
                                              "Broker transport failure (after 0ms in state DOWN)");
    CHECK(events.last_error == RD_KAFKA_RESP_ERR__AUTHENTICATION);
    CHECK_FALSE(events.is_refused);
    for (const auto* const text :
         {"SASL authentication error: Invalid username or password (after 0ms in state AUTH_REQ)",
          "SASL PLAIN mechanism handshake failed: Broker: Unsupported SASL mechanism: broker's supported mechanisms: "
          "PLAIN (after 0ms in state AUTH_HANDSHAKE)",
          "Failed to initialize SASL authentication: SASL Handshake not supported by broker (required by mechanism "
          "PLAIN) (after 0ms in state AUTH_LEGACY)"}) {
        CAPTURE(text);
        events.clear();
        CHECK_FALSE(events.is_refused);
        events.note(RD_KAFKA_RESP_ERR__AUTHENTICATION, text);
        events.note(RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN, "1/1 brokers are down");
        CHECK(events.is_refused);
    }
    using vouch::kafka::detail::error_of;
    CHECK(error_of(RD_KAFKA_RESP_ERR__AUTHENTICATION, "receive").is_transient());
    CHECK(error_of(RD_KAFKA_RESP_ERR__AUTHENTICATION, "receive").text_code() == "not_authenticat"); // cut
    CHECK_FALSE(error_of(RD_KAFKA_RESP_ERR__AUTHENTICATION, "receive", true).is_transient());
}

TEST_CASE("offsets: a commit never passes a message that is not acknowledged") {
    check_property("in any order of acknowledgements", [] {
        const auto gaps = *rc::gen::nonEmpty(rc::gen::container<std::vector<int>>(rc::gen::inRange(1, 4)));
        std::vector<std::int64_t> offsets;
        std::int64_t at = 0;
        for (const int gap : gaps) {
            offsets.push_back(at += gap);
        }
        vouch::kafka::detail::offset_ledger ledger;
        std::map<std::int64_t, vouch::kafka::detail::ledger_place> places;
        for (const auto offset : offsets) {
            places[offset] = ledger.deliver(offset);
        }
        auto order = offsets;
        for (std::size_t i = order.size(); i-- > 1;) {
            std::swap(order[i], order[*rc::gen::inRange<std::size_t>(0, i + 1)]);
        }
        std::set<std::int64_t> open(offsets.begin(), offsets.end());
        for (const auto offset : order) {
            open.erase(offset);
            ledger.acknowledge(places[offset]);
            ledger.acknowledge(places[offset]); // again: no effect
            const auto next = ledger.to_commit();
            const bool passes_open = next && !open.empty() && *next > *open.begin();
            RC_ASSERT_FALSE(passes_open);
            // As far as possible: everything before the first open one.
            const auto first = open.empty() ? offsets.end() : std::find(offsets.begin(), offsets.end(), *open.begin());
            const bool has_closed = first != offsets.begin();
            RC_ASSERT(next.has_value() == has_closed);
            const bool is_all = !next || *next == *std::prev(first) + 1;
            RC_ASSERT(is_all);
        }
        ledger.committed(offsets.back() + 1);
        RC_ASSERT(!ledger.to_commit());
    });
}

TEST_CASE("offsets: after a partition was cut, old acknowledgements commit nothing") {
    vouch::kafka::detail::offset_ledger ledger;
    const auto old = ledger.deliver(10);
    ledger.deliver(11);
    const auto fresh = ledger.deliver(3);
    ledger.acknowledge(old);
    CHECK_FALSE(ledger.to_commit());
    ledger.acknowledge(fresh);
    CHECK(ledger.to_commit() == 4);
}

TEST_CASE("offsets: what was acknowledged before a partition was cut commits nothing of what came after") {
    vouch::kafka::detail::offset_ledger ledger;
    ledger.acknowledge(ledger.deliver(100)); // and the commit fails
    const auto first = ledger.deliver(0);
    CHECK_FALSE(ledger.to_commit());
    ledger.acknowledge(first);
    CHECK(ledger.to_commit() == 1);
}

TEST_CASE("offsets: a message whose offset is used again does not acknowledge the new one") {
    vouch::kafka::detail::offset_ledger ledger;
    const auto old = ledger.deliver(3);
    ledger.deliver(4);
    const auto fresh = ledger.deliver(3);
    ledger.acknowledge(old);
    CHECK_FALSE(ledger.to_commit());
    ledger.acknowledge(fresh);
    CHECK(ledger.to_commit() == 4);
}

TEST_CASE("offsets: a commit that overtakes an older one keeps the rest") {
    vouch::kafka::detail::offset_ledger ledger;
    const auto first = ledger.deliver(1);
    const auto second = ledger.deliver(2);
    ledger.acknowledge(first);
    ledger.acknowledge(second);
    ledger.committed(2); // of the first alone
    CHECK(ledger.to_commit() == 3);
}

} // namespace kafka_parts_test
