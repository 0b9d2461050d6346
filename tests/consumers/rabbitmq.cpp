// SPDX-License-Identifier: MIT
// The same for RabbitMQ. No broker listens there, and the error says so.
#include <array>
#include <chrono>

#include <vouch/rabbitmq.hpp>

int main() {
    vouch::rabbitmq::publisher to(
        {.connection = {.url = "amqp://127.0.0.1:1", .connect_limit = std::chrono::milliseconds{200}},
         .exchange = "e"});
    const std::array messages{vouch::message{.id = "1", .topic = "a.b"}};
    try {
        return to.publish(messages).front().what == vouch::confirmation::kind::unknown ? 0 : 1;
    } catch (const vouch::error& e) {
        return e.kind() == vouch::error_kind::io ? 0 : 1;
    }
}
