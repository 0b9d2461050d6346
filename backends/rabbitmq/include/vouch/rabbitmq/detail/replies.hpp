// SPDX-License-Identifier: MIT
// Maps the broker's reply codes, and the status codes of rabbitmq-c, to errors and confirmations, in one table each.
// Messages name the operation and the code. They never contain the broker's own text.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include <vouch/contract/error.hpp>
#include <vouch/rabbitmq/detail/library.hpp>
#include <vouch/relay/publisher.hpp>

namespace vouch {
inline namespace v0 {
namespace rabbitmq::detail {

/// What a reply code means. The explanation completes the sentence of an error's message.
struct reply_meaning {
    int code;
    error_kind kind;
    std::string_view publish_code; ///< of messages that were being published
    std::string_view text;
};

inline constexpr std::array replies{
    reply_meaning{311, error_kind::full, "message_too_large", "the broker has no room for the message"},
    reply_meaning{320, error_kind::io, "connection_lost", "the broker has ended the connection, as when it shuts down"},
    reply_meaning{402, error_kind::invalid_argument, "invalid_path", "the virtual host does not exist"},
    reply_meaning{403, error_kind::read_only, "access_refused", "the user lacks a permission"},
    reply_meaning{404, error_kind::io, "no_exchange", "it does not exist, or its node is down"},
    reply_meaning{405, error_kind::busy, "resource_locked", "another connection has it for itself"},
    reply_meaning{406, error_kind::invalid_argument, "precondition_failed",
                  "it exists with other arguments, or a value is not allowed"},
    reply_meaning{506, error_kind::full, "resource_error", "the broker is out of a resource"},
    reply_meaning{530, error_kind::invalid_argument, "not_allowed",
                  "the virtual host does not exist, or the user may not use it"},
    reply_meaning{540, error_kind::unsupported, "not_implemented",
                  "the broker does not support a feature that is needed"},
    reply_meaning{541, error_kind::io, "internal_error", "the broker reports an internal error"},
};

/// The meaning of a code; of others, that the broker reports an error.
[[nodiscard]] constexpr reply_meaning meaning_of(int code) noexcept {
    for (const auto& one : replies) {
        if (one.code == code) {
            return one;
        }
    }
    return {code, error_kind::io, "broker_error", "the broker reports an error"};
}

/// The meaning of a code with the broker's text. RabbitMQ has no code of its own for limits of connections and channels.
[[nodiscard]] constexpr reply_meaning meaning_of(int code, std::string_view text) noexcept {
    if (code == 530 && text.find(" limit ") != std::string_view::npos) {
        return {code, error_kind::busy, "not_allowed",
                "the virtual host, the user or the node has as many connections as its limit allows"};
    }
    return meaning_of(code);
}

/// The meaning of a code with which the broker ends a consumer that has been running: it has accepted its arguments.
[[nodiscard]] constexpr reply_meaning meaning_of_end(int code) noexcept {
    if (code == 406) {
        return {code, error_kind::io, "precondition_failed",
                "the broker has ended the channel, as when a message is not acknowledged within its consumer_timeout"};
    }
    return meaning_of(code);
}

[[nodiscard]] inline error error_of_reply(const reply_meaning& meaning, std::string_view doing) {
    const auto code = meaning.code;
    std::string message = "rabbitmq: ";
    message.append(doing).append(": ").append(meaning.text).append(" (reply code ").append(std::to_string(code)) += ')';
    return {meaning.kind, message, {.code = code}};
}

/// What is said of the only message that was being published when the broker closed the channel. RabbitMQ has no code of its
/// own for a message that is larger than it allows, only the beginning of a text.
[[nodiscard]] inline confirmation confirmation_of_reply(int code, std::string_view text) {
    if (code == 406 && text.starts_with("PRECONDITION_FAILED - message size")) {
        return {confirmation::kind::refused, "message_too_large"};
    }
    return {confirmation::kind::unknown, std::string(meaning_of(code).publish_code)};
}

/// What a status of rabbitmq-c means while connecting.
struct status_meaning {
    int status;
    error_kind kind;
    std::string_view text;
};

inline constexpr std::array statuses{
    status_meaning{AMQP_STATUS_HOSTNAME_RESOLUTION_FAILED, error_kind::io, "the host name has no address"},
    status_meaning{AMQP_STATUS_SOCKET_ERROR, error_kind::io, "no broker answers there"},
    status_meaning{AMQP_STATUS_TIMEOUT, error_kind::io, "the broker did not answer within connect_limit"},
    status_meaning{AMQP_STATUS_HEARTBEAT_TIMEOUT, error_kind::io, "the broker did not answer within connect_limit"},
    status_meaning{AMQP_STATUS_INCOMPATIBLE_AMQP_VERSION, error_kind::unsupported,
                   "the broker does not speak AMQP 0-9-1"},
    status_meaning{AMQP_STATUS_BROKER_UNSUPPORTED_SASL_METHOD, error_kind::unsupported,
                   "the broker does not accept a user name with a password (SASL PLAIN)"},
    status_meaning{AMQP_STATUS_SSL_HOSTNAME_VERIFY_FAILED, error_kind::invalid_argument,
                   "the broker's certificate is for another host (tls.verify_host)"},
    status_meaning{AMQP_STATUS_SSL_PEER_VERIFY_FAILED, error_kind::invalid_argument,
                   "no authority in tls.ca_file has signed the broker's certificate (tls.verify_peer)"},
    status_meaning{
        AMQP_STATUS_SSL_CONNECTION_FAILED, error_kind::io,
        "the TLS handshake failed: the port is not for TLS, no authority in tls.ca_file has signed the broker's "
        "certificate, or the broker does not accept tls.certificate_file"},
    status_meaning{AMQP_STATUS_NO_MEMORY, error_kind::full, "out of memory"},
};

[[nodiscard]] inline error error_of_status(int status, std::string_view doing) {
    status_meaning meaning{status, error_kind::io, "the connection was lost"};
    for (const auto& one : statuses) {
        meaning = one.status == status ? one : meaning;
    }
    std::string message = "rabbitmq: ";
    message.append(doing).append(": ").append(meaning.text);
    return {meaning.kind, message, {.code = status}};
}

} // namespace rabbitmq::detail
} // namespace v0
} // namespace vouch
