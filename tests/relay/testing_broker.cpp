// SPDX-License-Identifier: MIT
// The broker in memory: its faults. That its clients obey the rules is checked by the conformance kit.
#include <cstddef>
#include <string>
#include <vector>

#include <vouch/testing_broker.hpp>
#include <vouch/vouch.hpp>

#include "catch.hpp"
#include "unit/support.hpp"

namespace testing_broker_test {

using namespace support;
using kind = vouch::confirmation::kind;

namespace {

/// A queue that takes everything, and six messages in it.
struct six_messages {
    explicit six_messages(vouch::testing::broker_faults faults) : broker(faults) {
        broker.bind("#", "q");
        std::vector<vouch::message> messages;
        for (int i = 1; i <= 6; ++i) {
            messages.push_back({.id = std::to_string(i), .topic = "t", .lane = i > 4 ? "lane" : ""});
        }
        for (const auto& c : vouch::testing::broker_publisher(broker).publish(messages)) {
            answers += name_of(c.what).front();
        }
        vouch::testing::broker_consumer from(broker, "q");
        try {
            for (const auto& r : from.receive(100, vouch::duration::zero(), {})) {
                arrived += r.message.id;
            }
        } catch (const vouch::error& e) {
            arrived = e.text_code();
        }
    }
    vouch::testing::broker broker;
    std::string answers{}; ///< the first letters of the confirmations
    std::string arrived{}; ///< the ids
};

} // namespace

TEST_CASE("broker: a publisher and a consumer of a queue that is bound to a pattern") {
    vouch::testing::broker broker;
    broker.bind("mail.#", "mailer");
    vouch::testing::broker_publisher to(broker);
    vouch::testing::broker_consumer from(broker, "mailer");
    const vouch::message m{.id = "1", .topic = "mail.new", .payload = "p"};
    CHECK(to.publish(std::span(&m, 1)).front().what == kind::confirmed);
    const auto arrived = from.receive(10, vouch::duration::zero(), {});
    REQUIRE(arrived.size() == 1);
    CHECK(arrived[0].message == m);
    from.acknowledge(arrived);
    CHECK(broker.size("mailer") == 0);
}

TEST_CASE("broker: without faults everything is confirmed and arrives in order") {
    const six_messages s({});
    CHECK(s.answers == "cccccc");
    CHECK(s.arrived == "123456");
    CHECK(s.broker.size("q") == 6); // the consumer has died with them
}

TEST_CASE("broker: each fault happens every n-th time") {
    CHECK(six_messages({.lost_confirmation = 2}).answers == "cucucu");
    CHECK(six_messages({.lost_confirmation = 2}).arrived == "123456");
    CHECK(six_messages({.lost_message = 3}).answers == "ccuccu");
    CHECK(six_messages({.lost_message = 3}).arrived == "1245");
    CHECK(six_messages({.duplicate = 3}).answers == "cccccc");
    CHECK(six_messages({.duplicate = 3}).arrived == "12334566");
    CHECK(six_messages({.reorder = 2}).answers == "cccccc");
    CHECK(six_messages({.reorder = 2}).arrived == "214356"); // 5 and 6 are of one lane
    CHECK(six_messages({.disconnect = 1}).answers == "cccuuu");
    CHECK(six_messages({.disconnect = 2}).answers == "cccccc");
    CHECK(six_messages({.disconnect = 2}).arrived == "connection_lost");
}

TEST_CASE("broker: a lost connection of an acknowledgement leaves everything to be delivered again") {
    vouch::testing::broker broker({.disconnect = 3});
    broker.bind("#", "q");
    vouch::testing::broker_publisher to(broker);
    vouch::testing::broker_consumer from(broker, "q");
    const vouch::message m{.id = "1", .topic = "t"};
    CHECK(to.publish(std::span(&m, 1)).front().what == kind::confirmed);
    const auto arrived = from.receive(10, vouch::duration::zero(), {});
    const auto lost = error_of([&] { from.acknowledge(arrived); });
    REQUIRE(lost);
    CHECK(lost->is_transient());
    const auto again = from.receive(10, vouch::duration::zero(), {});
    REQUIRE(again.size() == 1);
    CHECK(again[0].is_redelivered);
    CHECK(again[0].tag != arrived[0].tag);
}

TEST_CASE("broker in memory: a consumer of a queue that nothing is bound to is refused") {
    vouch::testing::broker broker;
    CHECK(kind_of([&] { vouch::testing::broker_consumer(broker, "typo"); }) == vouch::error_kind::invalid_argument);
    broker.bind("#", "typo");
    vouch::testing::broker_consumer from(broker, "typo");
    CHECK(from.receive(1, vouch::duration::zero(), {}).empty());
}

} // namespace testing_broker_test
