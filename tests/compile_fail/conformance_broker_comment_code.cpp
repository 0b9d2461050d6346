// SPDX-License-Identifier: MIT
// expect-ok
// The code in the comments of the kit for clients of brokers, and in its page.
#include <cstddef>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include <vouch/conformance_broker.hpp>

namespace acme {

struct publisher {
    explicit publisher(const char*) {}
    publisher(const publisher&) = delete;
    publisher& operator=(const publisher&) = delete;
    std::vector<vouch::confirmation> publish(std::span<const vouch::message> messages);
};

struct consumer {
    consumer(const char*, const char*) {}
    consumer(const consumer&) = delete;
    consumer& operator=(const consumer&) = delete;
    std::vector<vouch::received> receive(std::size_t limit, vouch::duration at_most, const std::stop_token& stop);
    void acknowledge(std::span<const vouch::received> some);
    void give_back(std::span<const vouch::received> some);
    void set_aside(std::span<const vouch::received> some);
    void cancel();
};

} // namespace acme

// clang-format off
struct fixture {
    auto publisher() { return acme::publisher{"localhost"}; }
    auto consumer() { return acme::consumer{"localhost", "kit"}; }
};
int main(int argc, char** argv) { return vouch::conformance::run_broker<fixture>({"acme", "1.4.0"}, argc, argv); }

namespace with_hooks {
struct fixture {
    auto publisher();                 // a publisher whose messages with topics `kit.#` reach consumer()
    auto consumer();                  // a further consumer of the same queue or group
    void cut();                       // breaks every open connection at once; called from another thread too
    void restart();                   // restarts the broker, and returns when it runs again
    std::string unroutable_topic();   // a topic that no queue takes
    std::size_t message_max();        // the largest payload that the broker takes
    std::size_t unacknowledged_max(); // the bound of rule 7 of relay/consumer.hpp
    void publish_malformed();         // puts a message that cannot be read where consumer() finds it
};
} // namespace with_hooks
// clang-format on
