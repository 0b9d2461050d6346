// SPDX-License-Identifier: MIT
// The contract between a relay and a client of a broker that sends. `backends/rabbitmq` and `backends/kafka` have one
// each; `testing/broker.hpp` has one without a broker. The conformance kit for brokers checks the rules that a concept
// cannot express.
#pragma once

#include <concepts>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <vouch/relay/message.hpp>

namespace vouch {
inline namespace v0 {

/// The broker's answer to one message.
struct confirmation {
    enum class kind : std::uint8_t {
        confirmed, ///< the broker keeps the message, and a restart of the broker does not lose it
        refused,   ///< the broker will never take this message: too large, not routable, not permitted
        unknown,   ///< the message may have arrived or not: it has to be sent again
    };
    confirmation::kind what = kind::unknown;
    std::string code{}; ///< why it is not confirmed, as an error code: a word, never a payload or a text of the broker

    [[nodiscard]] friend bool operator==(const confirmation&, const confirmation&) = default;
};

[[nodiscard]] constexpr std::string_view name_of(confirmation::kind kind) noexcept {
    switch (kind) {
    case confirmation::kind::confirmed: return "confirmed";
    case confirmation::kind::refused: return "refused";
    case confirmation::kind::unknown: return "unknown";
    }
    return "?";
}

/// Sends messages to a broker.
///  1. `publish` returns one confirmation per message, in order, and waits for them no longer than a time that the
///     publisher's options set.
///  2. `confirmed` is said only after the broker has said so, and only if the message will reach a consumer: a message
///     that no queue takes is `refused`.
///  3. `refused` is said only of a message that was not delivered, and that would be refused again.
///  4. Everything else is `unknown`: a lost connection, a time-out, a broker that is starting or has no room. A call that
///     throws says `unknown` of all messages; a wrong password, for example, throws `vouch::error`. After an error that
///     `is_transient` the broker is taken to be away. After any other exception, which may be about one message, the
///     relay sends the messages again one by one, until several in a row throw.
///  5. A refused message does not change what is said of the others.
///  6. Messages of one lane that are confirmed are kept in the order of their publication, within a call and from one call
///     to the next.
///  7. After a lost connection the next call connects again. Nothing of the old connection is taken for an answer.
///  8. Every part of the message arrives as it was given (`properties.hpp`).
///
/// Any number of threads may call `publish`; calls may wait for each other.
///
/// Not required: that a message arrives once. A message whose confirmation is lost is sent again with the same id, and the
/// intake on the other side stores it once.
template <class P>
concept publisher = requires(P& p, std::span<const message> messages) {
    { p.publish(messages) } -> std::same_as<std::vector<confirmation>>;
};

} // namespace v0
} // namespace vouch
