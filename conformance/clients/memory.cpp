// SPDX-License-Identifier: MIT
// The kit for the broker in memory.
#include <cstddef>
#include <span>
#include <string>

#include <vouch/conformance_broker.hpp>
#include <vouch/testing_broker.hpp>

namespace {

struct fixture {
    fixture() { broker.bind("kit.#", "kit"); }

    auto publisher() { return vouch::testing::broker_publisher(broker); }
    auto consumer() { return vouch::testing::broker_consumer(broker, "kit", unacknowledged_max()); }
    void cut() { broker.disconnect_all(); }
    void restart() { broker.disconnect_all(); } // it lives in this process, so no more than this can happen
    std::string unroutable_topic() { return "nobody.listens"; }
    std::size_t message_max() { return 70'000; }
    std::size_t unacknowledged_max() { return 20; }
    void publish_malformed() {
        const vouch::message without_id{.topic = "kit.malformed"};
        (void)publisher().publish(std::span(&without_id, 1));
    }

    vouch::testing::broker broker{{}, 70'000};
};

} // namespace

int main(int argc, char** argv) { return vouch::conformance::run_broker<fixture>({"memory", "0.1.0"}, argc, argv); }
