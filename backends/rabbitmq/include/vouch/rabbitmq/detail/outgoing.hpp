// SPDX-License-Identifier: MIT
// Writes one message as frames. Nothing of it is kept.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <vouch/contract/time.hpp>
#include <vouch/rabbitmq/detail/connection.hpp>
#include <vouch/rabbitmq/detail/headers.hpp>
#include <vouch/rabbitmq/detail/library.hpp>
#include <vouch/relay/message.hpp>

namespace vouch {
inline namespace v0 {
namespace rabbitmq::detail {

/// The milliseconds that are left, as RabbitMQ wants them: at least 1. None if the message does not expire, or so late that
/// RabbitMQ would refuse the number; the receiver still knows the time from the message's properties.
[[nodiscard]] inline std::optional<std::string> expiration_of(const message& m, time_point now) {
    constexpr std::int64_t most = 4'294'967'295; // 49 days
    if (!m.expires_at) {
        return std::nullopt;
    }
    const auto left = m.expires_at->time_since_epoch().count() / 1000 - now.time_since_epoch().count() / 1000;
    return left > most ? std::nullopt : std::optional(std::to_string(std::max<std::int64_t>(left, 1)));
}

class outgoing {
  public:
    /// `frame_size` is that of the connection which it will be sent to.
    outgoing(const message& m, std::string_view exchange, time_point now, std::size_t frame_size)
        : message_(m), exchange_(exchange), headers_(m, frame_size), expiration_(expiration_of(m, now)) {}

    /// Returns `nothing` if there was no room until `end`; then the connection cannot be used any more. `is_begun` says
    /// whether a part may have been sent.
    [[nodiscard]] io send(connection& to, steady::time_point end, bool& is_begun) {
        amqp_basic_publish_t publish{};
        publish.exchange = bytes_of(exchange_);
        publish.routing_key = bytes_of(message_.topic);
        publish.mandatory = 1;
        if (const auto how = to.send_method(AMQP_BASIC_PUBLISH_METHOD, &publish, end); how != io::done) {
            return how;
        }
        is_begun = true;
        amqp_frame_t frame{};
        frame.frame_type = AMQP_FRAME_HEADER;
        frame.channel = connection::channel;
        auto properties = basic_properties();
        frame.payload.properties.class_id = AMQP_BASIC_CLASS;
        frame.payload.properties.body_size = headers_.spilled().size() + message_.payload.size();
        frame.payload.properties.decoded = &properties;
        auto how = to.send(frame, end);
        for (const auto part : {headers_.spilled(), std::string_view(message_.payload)}) {
            for (auto left = part; how == io::done && !left.empty();) {
                const auto size = std::min(left.size(), to.frame_size() - frame_overhead);
                frame.frame_type = AMQP_FRAME_BODY;
                frame.payload.body_fragment = bytes_of(left.substr(0, size));
                left.remove_prefix(size);
                how = to.send(frame, end);
            }
        }
        return how;
    }

  private:
    static constexpr std::size_t frame_overhead = 8;

    [[nodiscard]] amqp_basic_properties_t basic_properties() {
        amqp_basic_properties_t out{};
        out._flags = AMQP_BASIC_DELIVERY_MODE_FLAG | AMQP_BASIC_MESSAGE_ID_FLAG | AMQP_BASIC_HEADERS_FLAG |
                     AMQP_BASIC_TYPE_FLAG | AMQP_BASIC_APP_ID_FLAG;
        out.type = bytes_of(message_.topic); // dead-lettering and shovels change the routing key
        out.app_id = bytes_of(application);
        out.delivery_mode = AMQP_DELIVERY_PERSISTENT;
        out.message_id = bytes_of(message_.id);
        out.headers = headers_.table();
        if (expiration_) {
            out._flags |= AMQP_BASIC_EXPIRATION_FLAG;
            out.expiration = bytes_of(*expiration_);
        }
        const auto created = message_.created_at.value_or(time_point{}).time_since_epoch();
        if (created > duration::zero()) {
            out._flags |= AMQP_BASIC_TIMESTAMP_FLAG;
            out.timestamp = static_cast<std::uint64_t>(std::chrono::floor<std::chrono::seconds>(created).count());
        }
        return out;
    }

    const message& message_;
    std::string_view exchange_;
    written_headers headers_;
    std::optional<std::string> expiration_;
};

} // namespace rabbitmq::detail
} // namespace v0
} // namespace vouch
