// SPDX-License-Identifier: MIT
// Connection options after they were checked: every part of the address is known.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include <vouch/contract/error.hpp>
#include <vouch/rabbitmq/detail/library.hpp>
#include <vouch/rabbitmq/detail/names.hpp>
#include <vouch/rabbitmq/options.hpp>

namespace vouch {
inline namespace v0 {
namespace rabbitmq::detail {

[[noreturn]] inline void refuse_option(std::string_view option, std::string_view why) {
    throw error(error_kind::invalid_argument, "rabbitmq: options: " + std::string(option) + ' ' + std::string(why));
}

inline void expect_name(std::string_view option, std::string_view name) {
    if (const auto problem = objection_to_name(name); !problem.empty()) {
        refuse_option(option, problem);
    }
}

inline void expect_span(std::string_view option, std::chrono::milliseconds span) {
    constexpr std::chrono::milliseconds most = std::chrono::hours{24};
    if (span < std::chrono::milliseconds{1} || span > most) {
        refuse_option(option, "is " + std::to_string(span.count()) + " ms; it must be from 1 ms to 24 h");
    }
}

/// Whether the URL has a port: rabbitmq-c does not say whether a port is the URL's or its own default.
[[nodiscard]] inline bool has_port(std::string_view url) noexcept {
    const auto scheme = url.find("://");
    auto authority = scheme == std::string_view::npos ? std::string_view{} : url.substr(scheme + 3);
    authority = authority.substr(0, authority.find('/'));
    authority.remove_prefix(authority.rfind('@') + 1);
    const auto last = authority.find_last_of(":]"); // an address of IPv6 is in brackets
    return last != std::string_view::npos && authority[last] == ':';
}

/// The parts of the URL, which are in `text` afterwards.
[[nodiscard]] inline amqp_connection_info parse_url(std::string& text) {
    amqp_connection_info out{};
    amqp_default_connection_info(&out);
    if (text.empty()) {
        return out;
    }
    // rabbitmq-c would take the parameters for a part of the virtual host, and end a part at a zero byte.
    if (text.find('?') != std::string::npos || text.find('\0') != std::string::npos ||
        text.find("%00") != std::string::npos || amqp_parse_url(text.data(), &out) != AMQP_STATUS_OK) {
        refuse_option("connection.url", "is not valid; it must be amqp://user:password@host:port/vhost or begin with "
                                        "amqps://, with special characters as %XX, ASCII only and without parameters; "
                                        "the members user, password and "
                                        "vhost take any text");
    }
    return out;
}

/// Where to connect, and how.
struct target : connection_options {
    explicit target(const connection_options& given) : connection_options(given) {
        const bool is_port_given = has_port(url);
        const auto parsed = parse_url(url);
        const auto take = [](std::string& part, const char* other, const char* usual) {
            if (part.empty()) {
                part = other != nullptr && *other != '\0' ? other : usual;
            }
        };
        take(host, parsed.host, "localhost");
        take(vhost, parsed.vhost, "/");
        take(user, parsed.user, "guest");
        take(password, parsed.password, "guest");
        tls.enabled = tls.enabled || parsed.ssl != 0;
        constexpr int plain_port = 5672;
        constexpr int tls_port = 5671;
        if (port == 0) {
            port = is_port_given ? parsed.port : tls.enabled ? tls_port : plain_port;
        }
        url.clear();
        check();
    }

    /// For messages: never the password.
    [[nodiscard]] std::string where() const { return "host " + host + ", port " + std::to_string(port); }

  private:
    void check() const {
        expect_name("connection.host", host);
        expect_name("connection.vhost", vhost);
        expect_name("connection.user", user);
        expect_name("connection.name", name);
        if (password.find('\0') != std::string::npos) {
            refuse_option("connection.password", "has a zero byte");
        }
        constexpr int port_max = 65535;
        if (port < 1 || port > port_max) {
            refuse_option("connection.port", "is " + std::to_string(port) + "; it must be from 1 to 65535");
        }
        constexpr std::chrono::seconds heartbeat_max{3600};
        if (heartbeat < std::chrono::seconds{0} || heartbeat > heartbeat_max) {
            refuse_option("connection.heartbeat",
                          "is " + std::to_string(heartbeat.count()) + " s; it must be from 0 to 3600 s");
        }
        expect_span("connection.connect_limit", connect_limit);
        expect_span("connection.reconnect_wait_min", reconnect_wait_min);
        expect_span("connection.reconnect_wait_max", reconnect_wait_max);
        if (!tls.enabled && !(tls.ca_file.empty() && tls.certificate_file.empty() && tls.key_file.empty())) {
            refuse_option("connection.tls", "names files, and TLS is off, so that the password would be sent in plain "
                                            "text; set tls.enabled, or begin the URL with amqps://");
        }
        if (tls.enabled && tls.verify_peer && tls.ca_file.empty()) {
            refuse_option("connection.tls.ca_file",
                          "is empty, so that no broker could be trusted; name a file with the "
                          "certificates of authorities, such as /etc/ssl/certs/ca-certificates.crt");
        }
        if (tls.certificate_file.empty() != tls.key_file.empty()) {
            refuse_option("connection.tls", "has one of certificate_file and key_file; they are used together");
        }
    }
};

} // namespace rabbitmq::detail
} // namespace v0
} // namespace vouch
