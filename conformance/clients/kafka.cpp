// SPDX-License-Identifier: MIT
// The kit for Kafka, on librdkafka's mock cluster, which speaks Kafka's protocol over sockets of this machine. The mock
// keeps nothing when it ends, so there is no hook `restart` and PUB-13 is not tested.
#include <cstddef>
#include <mutex>
#include <string>

#include <vouch/conformance_broker.hpp>
#include <vouch/kafka.hpp>

#include "kafka/cluster.hpp"

namespace {

struct fixture {
    fixture() { cluster.create(topic, 4); }

    auto publisher() {
        return vouch::kafka::publisher({.bootstrap_servers = cluster.servers(),
                                        .routes = {{.pattern = "kit.#", .topic = topic}},
                                        .settings = {{"message.max.bytes", "70000"}}});
    }
    // The mock answers a fetch only when its wait is over, and takes a second less than the session timeout to form a
    // group anew.
    auto consumer() {
        return vouch::kafka::consumer({.bootstrap_servers = cluster.servers(),
                                       .group = "kit",
                                       .topics = {topic},
                                       .unacknowledged_max = unacknowledged_max(),
                                       .settings = {{"session.timeout.ms", "3000"},
                                                    {"heartbeat.interval.ms", "300"},
                                                    {"fetch.wait.max.ms", "50"}}});
    }
    void cut() {
        const std::scoped_lock lock(mutex);
        cluster.down();
        cluster.up();
    }
    std::string unroutable_topic() { return "nobody.listens"; }
    std::size_t message_max() { return 69'000; } // keys and headers count too
    std::size_t unacknowledged_max() { return 20; }
    void publish_malformed() { kafka_test::send_foreign(cluster, "m", {{"vouch-trail", "no ids"}}); }

    const std::string topic = "orders";
    const kafka_test::cluster cluster{};
    std::mutex mutex{};
};

} // namespace

int main(int argc, char** argv) { return vouch::conformance::run_broker<fixture>({"kafka", "0.1.0"}, argc, argv); }
