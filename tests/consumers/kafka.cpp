// SPDX-License-Identifier: MIT
// The same for Kafka, on the mock cluster that librdkafka has inside.
#include <array>

#include <vouch/kafka.hpp>

int main() {
    vouch::kafka::publisher to({.default_topic = "t", .settings = {{"test.mock.num.brokers", "1"}}});
    const std::array messages{vouch::message{.id = "1", .topic = "a.b"}};
    return to.publish(messages).front().what == vouch::confirmation::kind::confirmed ? 0 : 1;
}
