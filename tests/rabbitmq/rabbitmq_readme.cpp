// SPDX-License-Identifier: MIT
// The code of backends/rabbitmq/README.md.
#include <cstdio>
#include <stop_token>
#include <string>
#include <vector>

#include "server.hpp"

using namespace rabbitmq_test;

TEST_CASE("rabbitmq: the code of the README works") {
    const std::string url = rabbitmq_test::url();
    const std::stop_token stop;
    std::vector<vouch::message> messages = rabbitmq_test::messages(2);
    const auto store = [](const vouch::message& m) { return !m.id.empty(); };

    const vouch::rabbitmq::topology topology{
        .exchange = "readme.events",
        .listeners = {{.queue = "readme.billing", .patterns = {"order.*"}},
                      {.queue = "readme.mail", .patterns = {"order.paid", "user.#"}, .single_active_consumer = true}},
    };
    vouch::rabbitmq::declare({.url = url}, topology); // for development
    vouch::rabbitmq::verify({.url = url}, topology);  // in services

    vouch::rabbitmq::publisher publisher({.connection = {.url = url, .name = "shop"}, .exchange = topology.exchange});
    for (const auto& answer : publisher.publish(messages)) {
        if (answer.what != vouch::confirmation::kind::confirmed) {
            std::puts(answer.code.c_str());
        }
        CHECK(text_of(answer) == "confirmed");
    }

    vouch::rabbitmq::consumer consumer({.connection = {.url = url}, .queue = "readme.billing", .prefetch = 50});
    for (const auto& one : consumer.receive(50, std::chrono::seconds(1), stop)) {
        if (one.malformed.empty() && store(one.message)) {
            consumer.acknowledge({&one, 1});
        } else {
            consumer.set_aside({&one, 1});
        }
    }
    consumer.cancel();

    const auto json = vouch::rabbitmq::definitions_json(topology, {.vhost = "/", .user = "billing"});
    const auto hcl = vouch::rabbitmq::terraform(topology, {.vhost = "/", .user = "billing"});
    const auto may = vouch::rabbitmq::least_permissions(topology, vouch::rabbitmq::service::consumes);
    std::puts(may.read.c_str()); // ^(readme\.billing|readme\.mail)$
    CHECK(may.read == R"(^(readme\.billing|readme\.mail)$)");
    CHECK_FALSE(json.empty());
    CHECK_FALSE(hcl.empty());
    remove(topology);
}
