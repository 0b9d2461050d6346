// SPDX-License-Identifier: MIT
// The contract between an intake and a client of a broker that receives. `backends/rabbitmq` and `backends/kafka` have
// one each; `testing/broker.hpp` has one without a broker. The conformance kit for brokers checks the rules that a
// concept cannot express.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include <vouch/contract/time.hpp>
#include <vouch/relay/message.hpp>

namespace vouch {
inline namespace v0 {

/// A message that has arrived and is not acknowledged yet.
struct received {
    vouch::message message{}; ///< if it is malformed: the parts that could be read
    /// Not empty: why it cannot be read, as an error code. With `message_too_large` the payload is not there, so an intake
    /// sets the message aside.
    std::string malformed{};
    std::string source{};        ///< where it was taken from: a queue, or a topic and a partition
    std::uint64_t tag = 0;       ///< identifies it to its consumer
    bool is_redelivered = false; ///< the broker says that it may have been delivered before
};

/// Receives messages from a broker.
///  1. `receive` returns at most `limit` messages in the order of their arrival. It waits at most `at_most` for the first
///     one, returns early when `stop` is requested, and does not wait for more once it has one.
///  2. A message is delivered again, to this or to another consumer, until it is acknowledged or set aside: after the
///     consumer's death, after a lost connection, after `give_back`.
///  3. `acknowledge` says that these messages are stored. It has no effect for messages of a connection that is lost:
///     they are delivered again.
///  4. `give_back` returns messages to the broker, to be delivered again soon.
///  5. `set_aside` says that these messages can never be stored whole. A broker with dead-letter queues moves them there;
///     for others it is `acknowledge`.
///  6. `cancel` ends the delivery. Messages that have arrived and that `receive` has not returned go back to the broker.
///     After it `receive` returns nothing; what was received before may still be acknowledged or given back.
///  7. The number of messages that have arrived and are not acknowledged is bounded.
///  8. Messages of one lane are received in the order of their publication. What is delivered again comes before what has
///     not been delivered yet.
///  9. A message that cannot be read is returned with a code in `malformed`, and blocks nothing.
/// 10. Faults throw `vouch::error`; after one that `is_transient` the next `receive` connects again.
///
/// A consumer is used by one thread at a time.
template <class C>
concept consumer = requires(C& c, std::size_t limit, duration at_most, const std::stop_token& stop,
                            std::span<const received> some) {
    { c.receive(limit, at_most, stop) } -> std::same_as<std::vector<received>>;
    { c.acknowledge(some) } -> std::same_as<void>;
    { c.give_back(some) } -> std::same_as<void>;
    { c.set_aside(some) } -> std::same_as<void>;
    { c.cancel() } -> std::same_as<void>;
};

} // namespace v0
} // namespace vouch
