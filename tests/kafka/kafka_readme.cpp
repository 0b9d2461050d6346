// SPDX-License-Identifier: MIT
// The code of backends/kafka/README.md.
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include <vouch/kafka.hpp>
#include <vouch/relay.hpp>
#include <vouch/vouch.hpp>

#include "catch.hpp"
#include "kafka/cluster.hpp"

namespace kafka_readme_test {

TEST_CASE("README: from the outbox of one service through Kafka to the handlers of another") {
    const kafka_test::cluster cluster;
    cluster.create("payment.commands", 6);
    const auto servers = cluster.servers();

    // The order service: what it emits to the queue `outgoing` goes to Kafka.
    vouch::memory::store orders;
    const vouch::outbox order_outbox(orders);
    vouch::kafka::publisher to({.bootstrap_servers = servers, .routes = {{"payment.*", "payment.commands"}}});
    vouch::router order_router(order_outbox);
    order_router.on(vouch::relay(to));
    order_outbox.emit({.queue = "outgoing", .topic = "payment.charge", .payload = "9999", .lane = "order-456"});
    vouch::runner(order_outbox, order_router, {.queue = "outgoing"}).run_until_idle();

    // The payment service: what arrives becomes an entry of the queue `payments`, once.
    vouch::memory::store payments;
    const vouch::outbox payment_outbox(payments);
    vouch::kafka::consumer from(
        {.bootstrap_servers = servers, .group = "payment-service", .topics = {"payment.commands"}});
    vouch::intake intake(from, payment_outbox, {.source = "orders", .queue = "payments"});
    for (int i = 0; i < 60 && payments.counts("payments").total() == 0; ++i) {
        intake.run_once(); // a service calls `intake.run(stop)`
    }
    std::vector<std::string> charged;
    vouch::router payment_router(payment_outbox);
    payment_router.on("payment.charge", [&](vouch::delivery& d) { charged.push_back(d.entry().lane + d.payload()); });
    vouch::runner(payment_outbox, payment_router, {.queue = "payments"}).run_until_idle();

    CHECK(charged == std::vector<std::string>{"order-4569999"});
    CHECK(orders.counts("outgoing")[vouch::state::succeeded] == 1);
}

TEST_CASE("README: the topics of the routes") {
    const vouch::kafka::publisher_options options{.routes = {{"order.#", "order.commands"},
                                                             {"payment.#", "payment.commands"},
                                                             {"inventory.#", "inventory.commands"},
                                                             {"shipping.#", "shipping.commands"},
                                                             {"saga.reply", "saga.replies"}}};
    const auto topics = vouch::kafka::topics_of(options, {.partitions = 6, .replication_factor = 3});
    std::fputs(vouch::kafka::create_commands(topics, {.bootstrap_servers = "k1:9092"}).c_str(), stdout);
    CHECK(topics.size() == 5);
    CHECK(vouch::kafka::create_command(topics[0], {.bootstrap_servers = "k1:9092"}) ==
          "'kafka-topics.sh' --create --if-not-exists --bootstrap-server 'k1:9092' --topic 'inventory.commands' "
          "--partitions 6 --replication-factor 3 --config min.insync.replicas=2 --config retention.ms=604800000");
}

TEST_CASE("README: settings of librdkafka") {
    const std::string password = "secret";
    vouch::kafka::publisher to({.bootstrap_servers = "k1:9093",
                                .default_topic = "events",
                                .settings = {{"security.protocol", "sasl_ssl"},
                                             {"sasl.mechanism", "SCRAM-SHA-512"},
                                             {"sasl.username", "orders"},
                                             {"sasl.password", password},
                                             {"compression.type", "zstd"}}});
    CHECK(to.handle() != nullptr);
}

} // namespace kafka_readme_test
