// SPDX-License-Identifier: MIT
// RabbitMQ without vouch: persistent messages, mandatory, published in batches of which each is confirmed before the next,
// written by hand with rabbitmq-c.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

#include <amqp.h>
#include <amqp_tcp_socket.h>

namespace bench {

class bare_rabbitmq {
  public:
    explicit bare_rabbitmq(int port) : to_(amqp_new_connection()) {
        amqp_socket_t* const socket = amqp_tcp_socket_new(to_);
        expect(amqp_socket_open(socket, "127.0.0.1", port) == AMQP_STATUS_OK, "connect");
        constexpr int frame_max = 131'072;
        const auto in = amqp_login(to_, "/", 0, frame_max, 0, AMQP_SASL_METHOD_PLAIN, "guest", "guest");
        expect(in.reply_type == AMQP_RESPONSE_NORMAL, "log in");
        amqp_channel_open(to_, 1);
        amqp_confirm_select(to_, 1);
        expect(amqp_get_rpc_reply(to_).reply_type == AMQP_RESPONSE_NORMAL, "open a channel with confirms");
    }
    bare_rabbitmq(const bare_rabbitmq&) = delete;
    bare_rabbitmq& operator=(const bare_rabbitmq&) = delete;
    ~bare_rabbitmq() {
        amqp_connection_close(to_, AMQP_REPLY_SUCCESS);
        amqp_destroy_connection(to_);
    }

    /// Returns when all are confirmed.
    void publish(const std::string& exchange, const std::string& topic, const std::string& payload,
                 std::size_t messages, std::size_t batch) {
        for (std::size_t sent = 0; sent < messages; sent += batch) {
            for (std::size_t i = 0; i < batch; ++i) {
                publish_one(exchange, topic, payload);
            }
            while (confirmed_ < published_) {
                confirm();
            }
        }
    }

    void purge(const std::string& queue) {
        amqp_queue_purge(to_, 1, bytes_of(queue));
        expect(amqp_get_rpc_reply(to_).reply_type == AMQP_RESPONSE_NORMAL, "purge the queue");
    }

  private:
    static void expect(bool holds, const std::string& what) {
        if (!holds) {
            throw std::runtime_error("bare client: cannot " + what);
        }
    }
    [[nodiscard]] static amqp_bytes_t bytes_of(const std::string& text) {
        return {text.size(), const_cast<char*>(text.data())};
    }

    void publish_one(const std::string& exchange, const std::string& topic, const std::string& payload) {
        const auto id = std::to_string(++published_);
        amqp_basic_properties_t how{};
        how._flags = AMQP_BASIC_DELIVERY_MODE_FLAG | AMQP_BASIC_MESSAGE_ID_FLAG;
        how.delivery_mode = AMQP_DELIVERY_PERSISTENT;
        how.message_id = bytes_of(id);
        expect(amqp_basic_publish(to_, 1, bytes_of(exchange), bytes_of(topic), 1, 0, &how, bytes_of(payload)) ==
                   AMQP_STATUS_OK,
               "publish");
    }

    void confirm() {
        amqp_frame_t frame{};
        amqp_maybe_release_buffers(to_);
        expect(amqp_simple_wait_frame(to_, &frame) == AMQP_STATUS_OK, "wait for confirms");
        expect(frame.frame_type == AMQP_FRAME_METHOD && frame.payload.method.id == AMQP_BASIC_ACK_METHOD,
               "publish: a message was returned or refused");
        const auto& ack = *static_cast<const amqp_basic_ack_t*>(frame.payload.method.decoded);
        // Those of one queue come in order, so a single one stands for all before it.
        confirmed_ = ack.delivery_tag > confirmed_ ? ack.delivery_tag : confirmed_;
    }

    amqp_connection_state_t to_;
    std::uint64_t published_ = 0;
    std::uint64_t confirmed_ = 0;
};

} // namespace bench
