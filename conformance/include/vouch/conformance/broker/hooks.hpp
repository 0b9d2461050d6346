// SPDX-License-Identifier: MIT
// A fixture of any type. It makes publishers and consumers of one queue or group of a running broker, and it may have
// hooks, without which some clauses are not tested:
//
//   struct fixture {
//       auto publisher();                 // a publisher whose messages with topics `kit.#` reach consumer()
//       auto consumer();                  // a further consumer of the same queue or group
//       void cut();                       // breaks every open connection at once; called from another thread too
//       void restart();                   // restarts the broker, and returns when it runs again
//       std::string unroutable_topic();   // a topic that no queue takes
//       std::size_t message_max();        // a payload that the broker takes; one with 1 KiB more must be refused
//       std::size_t unacknowledged_max(); // the bound of rule 7 of relay/consumer.hpp
//       void publish_malformed();         // puts a message that cannot be read where consumer() finds it
//   };
//
// What publisher() and consumer() return need not be movable. One fixture serves a whole run.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include <vouch/conformance/broker/any_consumer.hpp>
#include <vouch/conformance/broker/any_publisher.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::broker {

/// The functions of a fixture. Those that the fixture lacks are empty.
struct hooks {
    std::function<any_publisher()> publisher{};
    std::function<any_consumer()> consumer{};
    std::function<void()> cut{};
    std::function<void()> restart{};
    std::function<std::string()> unroutable_topic{};
    std::function<std::size_t()> message_max{};
    std::function<std::size_t()> unacknowledged_max{};
    std::function<void()> publish_malformed{};
};

/// The functions of a fixture, which must outlive them.
template <class Fixture>
[[nodiscard]] hooks hooks_of(Fixture& of) {
    static_assert(
        requires { of.publisher(); }, "the fixture has no publisher()");
    static_assert(
        requires { of.consumer(); }, "the fixture has no consumer()");
    hooks out;
    out.publisher = [&of] { return any_publisher::from([&of] { return of.publisher(); }); };
    out.consumer = [&of] { return any_consumer::from([&of] { return of.consumer(); }); };
    if constexpr (requires { of.cut(); }) {
        out.cut = [&of] { of.cut(); };
    }
    if constexpr (requires { of.restart(); }) {
        out.restart = [&of] { of.restart(); };
    }
    if constexpr (requires { of.unroutable_topic(); }) {
        out.unroutable_topic = [&of] { return of.unroutable_topic(); };
    }
    if constexpr (requires { of.message_max(); }) {
        out.message_max = [&of] { return of.message_max(); };
    }
    if constexpr (requires { of.unacknowledged_max(); }) {
        out.unacknowledged_max = [&of] { return of.unacknowledged_max(); };
    }
    if constexpr (requires { of.publish_malformed(); }) {
        out.publish_malformed = [&of] { of.publish_malformed(); };
    }
    return out;
}

} // namespace conformance::broker
} // namespace v0
} // namespace vouch
