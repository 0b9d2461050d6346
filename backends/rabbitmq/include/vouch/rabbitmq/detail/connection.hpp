// SPDX-License-Identifier: MIT
// A connection with one channel. Nothing waits without a limit: reads have a deadline, and a frame is written only when the
// socket's buffer has room for it, because rabbitmq-c would wait for room for ever. After a fault the connection is lost for
// good; its owner makes a new one. Used by one thread at a time.
#pragma once

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <new>
#include <string>
#include <string_view>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <vouch/contract/error.hpp>
#include <vouch/rabbitmq/detail/library.hpp>
#include <vouch/rabbitmq/detail/replies.hpp>
#include <vouch/rabbitmq/detail/target.hpp>

namespace vouch {
inline namespace v0 {
namespace rabbitmq::detail {

/// No frame that we send is larger, so that one fits into the socket's buffer whenever that is writable.
inline constexpr std::size_t frame_size_max = 32U * 1024U;

/// How a step ended.
enum class io : unsigned char {
    done,
    nothing, ///< the time is over
    lost,    ///< and so is the connection
};

class connection {
  public:
    static constexpr amqp_channel_t channel = 1;

    /// Connects, logs in and opens the channel. Throws why it cannot.
    explicit connection(const target& to) : limit_(to.connect_limit), state_(amqp_new_connection()) {
        if (state_ == nullptr) {
            throw std::bad_alloc();
        }
        try {
            const auto end = steady::now() + limit_;
            open_socket(to, end);
            log_in(to, end);
            open_channel();
        } catch (...) {
            amqp_destroy_connection(state_);
            throw;
        }
    }
    connection(const connection&) = delete;
    connection& operator=(const connection&) = delete;

    /// Closes the connection in order if that takes a moment only.
    ~connection() {
        if (is_open_) {
            constexpr std::chrono::milliseconds moment{500};
            const auto limit = time_value(std::min<steady::duration>(limit_, moment));
            amqp_set_rpc_timeout(state_, &limit);
            amqp_connection_close(state_, AMQP_REPLY_SUCCESS);
        }
        amqp_destroy_connection(state_);
    }

    [[nodiscard]] bool is_open() const noexcept { return is_open_; }
    void lose() noexcept { is_open_ = false; }
    [[nodiscard]] amqp_connection_state_t state() const noexcept { return state_; }
    /// The largest frame that may be sent: the broker's limit may be smaller than ours.
    [[nodiscard]] std::size_t frame_size() const noexcept { return frame_size_; }

    /// The next frame. It is valid until `release`.
    [[nodiscard]] io next(amqp_frame_t& frame, steady::time_point end) noexcept {
        if (!is_open_) {
            return io::lost;
        }
        const auto limit = time_value(end - steady::now());
        switch (amqp_simple_wait_frame_noblock(state_, &frame, &limit)) {
        case AMQP_STATUS_OK: return io::done;
        case AMQP_STATUS_TIMEOUT: return io::nothing;
        default: is_open_ = false; return io::lost;
        }
    }

    /// Frees the frames that have been handled.
    void release() noexcept { amqp_maybe_release_buffers(state_); }

    /// Sends a frame of at most `frame_size()` once there is room for it.
    [[nodiscard]] io send(const amqp_frame_t& frame, steady::time_point end) noexcept {
        if (!is_open_) {
            return io::lost;
        }
        if (!is_writable(end)) {
            return io::nothing;
        }
        if (amqp_send_frame(state_, &frame) != AMQP_STATUS_OK) {
            is_open_ = false;
            return io::lost;
        }
        return io::done;
    }

    [[nodiscard]] io send_method(amqp_method_number_t id, void* method, steady::time_point end) noexcept {
        amqp_frame_t frame{};
        frame.frame_type = AMQP_FRAME_METHOD;
        frame.channel = channel;
        frame.payload.method.id = id;
        frame.payload.method.decoded = method;
        return send(frame, end);
    }

    /// Throws unless the call that has just returned had a good answer.
    void expect_reply(std::string_view doing) { expect(amqp_get_rpc_reply(state_), doing); }

    /// The reply code if the call that has just returned made the broker close the channel, which is then open again; 0 if it
    /// had a good answer. Throws if the connection is lost.
    [[nodiscard]] int refusal(std::string_view doing) {
        const auto reply = amqp_get_rpc_reply(state_);
        if (reply.reply_type == AMQP_RESPONSE_SERVER_EXCEPTION && reply.reply.id == AMQP_CHANNEL_CLOSE_METHOD) {
            const int code = static_cast<const amqp_channel_close_t*>(reply.reply.decoded)->reply_code;
            reopen_channel();
            return code;
        }
        expect(reply, doing);
        return 0;
    }

    /// Opens the channel again after the broker has closed it.
    void reopen_channel() {
        amqp_channel_close_ok_t ok{};
        if (send_method(AMQP_CHANNEL_CLOSE_OK_METHOD, &ok, steady::now() + limit_) != io::done) {
            is_open_ = false;
            throw error(error_kind::io, "rabbitmq: channel: the connection was lost");
        }
        release();
        open_channel();
    }

    void open_channel() {
        is_open_ = true;
        amqp_channel_open(state_, channel);
        expect_reply("open a channel");
    }

    /// Keeps small frames together until `uncork`, so that a batch travels in few packets.
    void cork(bool is_corked) noexcept {
#ifdef TCP_CORK
        const int value = is_corked ? 1 : 0;
        setsockopt(amqp_get_sockfd(state_), IPPROTO_TCP, TCP_CORK, &value, sizeof(value));
#else
        static_cast<void>(is_corked);
#endif
    }

  private:
    void open_socket(const target& to, steady::time_point end) {
        auto* const socket = to.tls.enabled ? tls_socket(to.tls) : amqp_tcp_socket_new(state_);
        if (socket == nullptr) {
            throw error(error_kind::full, "rabbitmq: connect: no socket can be made");
        }
        const auto limit = time_value(end - steady::now());
        const int status = amqp_socket_open_noblock(socket, to.host.c_str(), to.port, &limit);
        if (status != AMQP_STATUS_OK) {
            throw error_of_status(status, "connect to " + to.where());
        }
        // Also so large that a socket that is writable has room for a frame: Linux says so when a third is free.
        const int size = 8 * static_cast<int>(frame_size_max);
        setsockopt(amqp_get_sockfd(state_), SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
    }

    [[nodiscard]] amqp_socket_t* tls_socket(const tls_options& tls) {
        auto* const socket = amqp_ssl_socket_new(state_);
        if (socket == nullptr) {
            return nullptr;
        }
        amqp_ssl_socket_set_verify_peer(socket, tls.verify_peer ? 1 : 0);
        amqp_ssl_socket_set_verify_hostname(socket, tls.verify_host ? 1 : 0);
        amqp_ssl_socket_set_ssl_versions(socket, AMQP_TLSv1_2, AMQP_TLSvLATEST);
        if (!tls.ca_file.empty() && amqp_ssl_socket_set_cacert(socket, tls.ca_file.c_str()) != AMQP_STATUS_OK) {
            refuse_option("connection.tls.ca_file", "cannot be read as certificates in PEM: " + tls.ca_file);
        }
        if (!tls.key_file.empty() &&
            amqp_ssl_socket_set_key(socket, tls.certificate_file.c_str(), tls.key_file.c_str()) != AMQP_STATUS_OK) {
            refuse_option("connection.tls",
                          "has a certificate_file and a key_file that cannot be read in PEM, or that do not "
                          "belong together: " +
                              tls.certificate_file + ", " + tls.key_file);
        }
        return socket;
    }

    void log_in(const target& to, steady::time_point end) {
        const auto limit = time_value(end - steady::now());
        amqp_set_handshake_timeout(state_, &limit);
        const auto rpc_limit = time_value(limit_);
        amqp_set_rpc_timeout(state_, &rpc_limit);

        std::array capabilities{bool_field("connection.blocked", true), bool_field("consumer_cancel_notify", true),
                                bool_field("publisher_confirms", true), bool_field("basic.nack", true)};
        std::array properties{text_field("connection_name", to.name), text_field("capabilities", "")};
        properties[1].value.kind = AMQP_FIELD_KIND_TABLE;
        properties[1].value.value.table = {static_cast<int>(capabilities.size()), capabilities.data()};
        const amqp_table_t table{static_cast<int>(properties.size()), properties.data()};
        // The broker's limit holds if it is smaller, which it usually is: a header frame is never larger than that.
        constexpr int frame_max = 1024 * 1024;
        constexpr int channel_max = 1;
        const auto reply = amqp_login_with_properties(state_, to.vhost.c_str(), channel_max, frame_max,
                                                      static_cast<int>(to.heartbeat.count()), &table,
                                                      AMQP_SASL_METHOD_PLAIN, to.user.c_str(), to.password.c_str());
        if (reply.reply_type == AMQP_RESPONSE_SERVER_EXCEPTION && reply.reply.id == AMQP_CONNECTION_CLOSE_METHOD &&
            static_cast<const amqp_connection_close_t*>(reply.reply.decoded)->reply_code == AMQP_ACCESS_REFUSED) {
            throw error(error_kind::invalid_argument,
                        "rabbitmq: connect to " + to.where() + ": the broker does not accept user " + to.user +
                            " with this password (reply code 403)",
                        {.code = AMQP_ACCESS_REFUSED});
        }
        const int status = reply.reply_type == AMQP_RESPONSE_LIBRARY_EXCEPTION ? reply.library_error : AMQP_STATUS_OK;
        if (status == AMQP_STATUS_CONNECTION_CLOSED || status == AMQP_STATUS_SOCKET_ERROR ||
            status == AMQP_STATUS_BAD_AMQP_DATA) {
            throw error(
                error_kind::io,
                "rabbitmq: connect to " + to.where() +
                    ": the other side ended the handshake: the broker is starting or stopping, or the port is for "
                    "TLS, which needs amqps:// or tls.enabled",
                {.code = status});
        }
        expect(reply, "connect to " + to.where() + ", vhost " + to.vhost);
        const int agreed = amqp_get_frame_max(state_);
        frame_size_ = std::min(frame_size_max, static_cast<std::size_t>(agreed));
        // RabbitMQ sends a header frame that is larger than agreed if the message filled it and the broker has added headers,
        // such as the count of its deliveries. rabbitmq-c would end the connection, each time the message comes.
        constexpr int added_max = 64 * 1024;
        const int tuned =
            amqp_tune_connection(state_, amqp_get_channel_max(state_), agreed + added_max, amqp_get_heartbeat(state_));
        if (tuned != AMQP_STATUS_OK) {
            throw error_of_status(tuned, "connect to " + to.where());
        }
    }

    /// Throws unless the reply is good. The connection is lost then: what the broker still sends is not for the next call.
    void expect(const amqp_rpc_reply_t& reply, std::string_view doing) {
        if (reply.reply_type == AMQP_RESPONSE_NORMAL) {
            return;
        }
        is_open_ = false;
        if (reply.reply_type != AMQP_RESPONSE_SERVER_EXCEPTION) {
            const bool is_socket = reply.library_error == AMQP_STATUS_SOCKET_ERROR; // of a connection, so it was lost
            throw error_of_status(is_socket ? AMQP_STATUS_CONNECTION_CLOSED : reply.library_error, doing);
        }
        if (reply.reply.id == AMQP_CHANNEL_CLOSE_METHOD) {
            const auto& close = *static_cast<const amqp_channel_close_t*>(reply.reply.decoded);
            throw error_of_reply(meaning_of(close.reply_code, text_of(close.reply_text)), doing);
        }
        const auto& close = *static_cast<const amqp_connection_close_t*>(reply.reply.decoded);
        throw error_of_reply(meaning_of(close.reply_code, text_of(close.reply_text)), doing);
    }

    [[nodiscard]] bool is_writable(steady::time_point end) const noexcept {
        pollfd socket{amqp_get_sockfd(state_), POLLOUT, 0};
        int ready = 0;
        do {
            constexpr std::chrono::milliseconds longest{1'000'000};
            const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - steady::now());
            const auto wait = std::clamp(left, std::chrono::milliseconds{0}, longest);
            ready = poll(&socket, 1, static_cast<int>(wait.count()));
        } while (ready < 0 && errno == EINTR);
        return ready != 0;
    }

    steady::duration limit_;
    amqp_connection_state_t state_;
    std::size_t frame_size_ = frame_size_max;
    bool is_open_ = false;
};

} // namespace rabbitmq::detail
} // namespace v0
} // namespace vouch
