// SPDX-License-Identifier: MIT
// Puts deliveries together from frames: a method, a header, and the body in pieces. A delivery may be incomplete when a call
// ends; the next one goes on with it.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <vouch/contract/time.hpp>
#include <vouch/rabbitmq/detail/headers.hpp>
#include <vouch/rabbitmq/detail/library.hpp>
#include <vouch/relay/consumer.hpp>

namespace vouch {
inline namespace v0 {
namespace rabbitmq::detail {

class incoming {
  public:
    incoming(std::string source, std::size_t size_max) : source_(std::move(source)), size_max_(size_max) {}

    /// Forgets an incomplete delivery.
    void clear() noexcept { now_ = {}; }

    void begin(const amqp_basic_deliver_t& method) {
        now_ = {};
        now_.source = source_;
        now_.tag = method.delivery_tag;
        now_.is_redelivered = method.redelivered != 0;
        now_.message.topic = text_of(method.routing_key);
    }

    /// Returns the delivery if it is complete, which it is if its body is empty.
    [[nodiscard]] std::optional<received> header(const amqp_frame_t& frame) {
        const auto& content = frame.payload.properties;
        left_ = content.body_size;
        is_too_large_ = left_ > size_max_;
        // Freed with the frame.
        const auto& properties = *static_cast<const amqp_basic_properties_t*>(content.decoded);
        const auto has = [&](amqp_flags_t flag) { return (properties._flags & flag) != 0; };
        now_.message.id = has(AMQP_BASIC_MESSAGE_ID_FLAG) ? text_of(properties.message_id) : "";
        if (has(AMQP_BASIC_APP_ID_FLAG) && text_of(properties.app_id) == application && has(AMQP_BASIC_TYPE_FLAG)) {
            now_.message.topic = text_of(properties.type);
        }
        headers_ = has(AMQP_BASIC_HEADERS_FLAG) ? read_headers(properties.headers) : read_headers();
        constexpr std::uint64_t most = 9'000'000'000'000; // seconds; more would overflow
        timestamp_.reset();
        if (has(AMQP_BASIC_TIMESTAMP_FLAG)) {
            timestamp_ = time_point(std::chrono::seconds(std::min<std::uint64_t>(properties.timestamp, most)));
        }
        if (!is_too_large_) {
            now_.message.payload.reserve(static_cast<std::size_t>(left_));
        }
        return left_ == 0 ? std::optional(complete()) : std::nullopt;
    }

    [[nodiscard]] std::optional<received> body(const amqp_frame_t& frame) {
        const auto piece = text_of(frame.payload.body_fragment);
        left_ -= std::min<std::uint64_t>(left_, piece.size());
        if (!is_too_large_) {
            now_.message.payload += piece;
        }
        return left_ == 0 ? std::optional(complete()) : std::nullopt;
    }

  private:
    [[nodiscard]] received complete() {
        const bool is_readable = headers_.into(now_.message);
        if (is_too_large_) {
            now_.malformed = "message_too_large";
        } else if (!is_readable) {
            now_.malformed = "unreadable_headers";
        } else if (now_.message.id.empty()) {
            now_.malformed = "no_message_id";
        }
        if (!now_.message.created_at) {
            now_.message.created_at = timestamp_;
        }
        return std::exchange(now_, {});
    }

    std::string source_;
    std::size_t size_max_;
    received now_{};
    std::uint64_t left_ = 0;
    bool is_too_large_ = false;
    read_headers headers_{};
    std::optional<time_point> timestamp_{};
};

} // namespace rabbitmq::detail
} // namespace v0
} // namespace vouch
