// SPDX-License-Identifier: MIT
// How to reach a broker, and how a publisher and a consumer use it. Every member has a usable default. Options are checked
// when they are used; a value that is not allowed throws `invalid_argument`. No error contains the password.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include <vouch/policy/clock.hpp>

namespace vouch {
inline namespace v0 {
namespace rabbitmq {

/// Used if the URL begins with `amqps://` or `enabled` is set; otherwise a file that is named here is refused.
struct tls_options {
    bool enabled = false;
    /// The certificates that may have signed the broker's, in PEM. Required unless `verify_peer` is false. Debian keeps the
    /// public ones in `/etc/ssl/certs/ca-certificates.crt`.
    std::string ca_file{};
    std::string certificate_file{}; ///< the client's own, in PEM; empty: none
    std::string key_file{};         ///< the key of that certificate, in PEM
    bool verify_peer = true;        ///< refuse a broker whose certificate no authority of `ca_file` has signed
    bool verify_host = true;        ///< refuse a broker whose certificate is for another host
};

/// A member that is set is used in place of the URL's part.
struct connection_options {
    /// `amqp://user:password@host:port/vhost`, or `amqps://`. A vhost `/` is written `%2f` or left out. Special characters
    /// are `%01` to `%7F`: set the members for others. A user or a password that is left out or empty is `guest`.
    std::string url{};
    std::string host{};                 ///< default: localhost
    int port = 0;                       ///< default: 5672, with TLS 5671
    std::string vhost{};                ///< default: /
    std::string user{};                 ///< default: guest
    std::string password{};             ///< default: guest
    std::string name{"vouch"};          ///< of the connection, as the management UI and the broker's log show it
    tls_options tls{};                  ///< see above
    std::chrono::seconds heartbeat{30}; ///< a connection without a sign of life for twice this time is lost; 0: never
    /// How long connecting may take, and any single question to the broker. At least 1 ms. The resolver of host names has
    /// limits of its own.
    std::chrono::milliseconds connect_limit{10'000};
    /// After a failed attempt to connect, the next one waits this long, and twice as long each time up to
    /// `reconnect_wait_max`.
    std::chrono::milliseconds reconnect_wait_min{50};
    std::chrono::milliseconds reconnect_wait_max{2'000};
};

struct publisher_options {
    connection_options connection{};
    std::string exchange{}; ///< required; it must exist
    /// How long a call waits until everything is sent and confirmed, after it has connected. At least 1 ms.
    std::chrono::milliseconds confirm_limit{30'000};
    /// A message of more bytes, headers included, is refused before it is sent. RabbitMQ's own limit is 16 MiB since
    /// version 4.0 and 128 MiB before.
    std::size_t message_size_max = 16U * 1024U * 1024U;
    vouch::clock clock{system_now}; ///< for the expiration of messages
};

struct consumer_options {
    connection_options connection{};
    std::string queue{}; ///< required; it must exist
    /// How many messages may have arrived without being acknowledged. At least 1.
    std::uint16_t prefetch = 100;
    std::string tag{"vouch"}; ///< the consumer's name, as the broker shows it; a number is added
    /// A message of more bytes is returned without its payload, as malformed (`message_too_large`).
    std::size_t message_size_max = 128U * 1024U * 1024U;
};

} // namespace rabbitmq
} // namespace v0
} // namespace vouch
