// SPDX-License-Identifier: MIT
// RabbitMQ: a publisher with confirmations, a consumer, and the exchanges and queues they need as data. Requires rabbitmq-c
// 0.11 or newer and RabbitMQ 3.10 or newer.
// Joined from the split headers by single_include/amalgamate.py; change those, not this file.
#ifndef VOUCH_SINGLE_HEADER_RABBITMQ
#define VOUCH_SINGLE_HEADER_RABBITMQ

#ifdef VOUCH_SPLIT_HEADERS
#error "vouch: a translation unit includes either the single headers or the split ones, not both"
#endif

#include <vouch/relay.hpp>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <set>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>

// ---- vouch/rabbitmq/detail/library.hpp
// The headers of rabbitmq-c, whose names depend on its version, and conversions to and from its types.

#if __has_include(<rabbitmq-c/amqp.h>)
#include <rabbitmq-c/amqp.h>
#include <rabbitmq-c/framing.h>
#include <rabbitmq-c/ssl_socket.h>
#include <rabbitmq-c/tcp_socket.h>
#else
#include <amqp.h>
#include <amqp_framing.h>
#include <amqp_ssl_socket.h>
#include <amqp_tcp_socket.h>
#endif

namespace vouch {
inline namespace v0 {
namespace rabbitmq::detail {

using steady = std::chrono::steady_clock;

/// The bytes of a text that outlives them. rabbitmq-c does not change what it is given.
[[nodiscard]] inline amqp_bytes_t bytes_of(std::string_view text) noexcept {
    return {text.size(), const_cast<char*>(text.data())};
}

[[nodiscard]] inline std::string_view text_of(amqp_bytes_t bytes) noexcept {
    return bytes.len == 0 ? std::string_view{} : std::string_view(static_cast<const char*>(bytes.bytes), bytes.len);
}

[[nodiscard]] inline timeval time_value(steady::duration span) noexcept {
    const auto us = std::max(std::chrono::ceil<std::chrono::microseconds>(span), std::chrono::microseconds::zero());
    const auto s = std::chrono::floor<std::chrono::seconds>(us);
    return {static_cast<decltype(timeval::tv_sec)>(s.count()),
            static_cast<decltype(timeval::tv_usec)>((us - s).count())};
}

/// A field of a table whose value is text or bytes.
[[nodiscard]] inline amqp_table_entry_t text_field(std::string_view name, std::string_view value) noexcept {
    amqp_table_entry_t out{};
    out.key = bytes_of(name);
    out.value.kind = AMQP_FIELD_KIND_UTF8;
    out.value.value.bytes = bytes_of(value);
    return out;
}

[[nodiscard]] inline amqp_table_entry_t bool_field(std::string_view name, bool value) noexcept {
    amqp_table_entry_t out{};
    out.key = bytes_of(name);
    out.value.kind = AMQP_FIELD_KIND_BOOLEAN;
    out.value.value.boolean = value ? 1 : 0;
    return out;
}

} // namespace rabbitmq::detail
} // namespace v0
} // namespace vouch

// ---- vouch/rabbitmq/detail/names.hpp
// Which names a broker can have: 1 to 255 bytes, because AMQP stores the length in one byte; and valid UTF-8 without control
// characters, because error messages and definitions contain them.

namespace vouch {
inline namespace v0 {
namespace rabbitmq::detail {

inline constexpr std::size_t name_size_max = 255;

[[nodiscard]] constexpr bool is_clean_text(std::string_view text) noexcept {
    while (!text.empty()) {
        const auto c = static_cast<unsigned char>(text.front());
        const auto wide = vouch::detail::utf8_character_of(text);
        if (c < 0x20 || c == 0x7f || (c >= 0x80 && (wide.length == 0 || wide.is_control()))) {
            return false;
        }
        text.remove_prefix(c < 0x80 ? 1 : wide.length);
    }
    return true;
}

/// What is wrong with a name, to follow the words that say which name it is; empty if nothing is.
[[nodiscard]] inline std::string objection_to_name(std::string_view name) {
    if (name.empty()) {
        return "is empty; it is required";
    }
    if (name.size() > name_size_max) {
        return "has " + std::to_string(name.size()) + " bytes, and 255 are allowed";
    }
    return is_clean_text(name) ? "" : "is not valid UTF-8, or has a control character";
}

} // namespace rabbitmq::detail
} // namespace v0
} // namespace vouch

// ---- vouch/rabbitmq/options.hpp
// How to reach a broker, and how a publisher and a consumer use it. Every member has a usable default. Options are checked
// when they are used; a value that is not allowed throws `invalid_argument`. No error contains the password.

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

// ---- vouch/rabbitmq/detail/target.hpp
// Connection options after they were checked: every part of the address is known.

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

// ---- vouch/rabbitmq/detail/back_off.hpp
// When to connect again: at once after a connection that worked, and after failures with waits that double up to a bound.

namespace vouch {
inline namespace v0 {
namespace rabbitmq::detail {

class back_off {
  public:
    explicit back_off(const target& to)
        : min_(to.reconnect_wait_min), max_(std::max(to.reconnect_wait_max, to.reconnect_wait_min)) {}

    /// The time before which the next attempt is not made.
    [[nodiscard]] steady::time_point not_before() const noexcept { return not_before_; }

    void failed() noexcept {
        wait_ = wait_ == steady::duration::zero() ? min_ : std::min(2 * wait_, max_);
        not_before_ = steady::now() + wait_;
    }
    void worked() noexcept { *this = back_off(min_, max_); }

  private:
    back_off(steady::duration min, steady::duration max) noexcept : min_(min), max_(max) {}

    steady::duration min_;
    steady::duration max_;
    steady::duration wait_ = steady::duration::zero();
    steady::time_point not_before_ = steady::time_point::min();
};

} // namespace rabbitmq::detail
} // namespace v0
} // namespace vouch

// ---- vouch/rabbitmq/detail/replies.hpp
// Maps the broker's reply codes, and the status codes of rabbitmq-c, to errors and confirmations, in one table each.
// Messages name the operation and the code. They never contain the broker's own text.

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

// ---- vouch/rabbitmq/detail/connection.hpp
// A connection with one channel. Nothing waits without a limit: reads have a deadline, and a frame is written only when the
// socket's buffer has room for it, because rabbitmq-c would wait for room for ever. After a fault the connection is lost for
// good; its owner makes a new one. Used by one thread at a time.

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

// ---- vouch/rabbitmq/detail/headers.hpp
// Carries a message's properties (`relay/properties.hpp`) in a message of AMQP, and reads them back.
//
// Each property is a field of the headers table, so that other programs see it under its own name. A broker does not keep the
// order of fields, a table has no two fields of one name, a name has at most 255 bytes, and brokers have names of their own.
// So:
//  - headers whose names ascend, each once, need nothing more;
//  - otherwise the field `vouch-order`, an array, has one item per header, in order: the name of the field that has the value,
//    or an array of the name and the value of a header that has no field;
//  - properties of more than half a frame are at the beginning of the body instead, each as two texts with their
//    sizes in four bytes (big-endian), and the field `vouch-spilled` says how many bytes they have.

namespace vouch {
inline namespace v0 {
namespace rabbitmq::detail {

/// The application of our messages. Their property `type` is the topic.
inline constexpr std::string_view application = "vouch";
inline constexpr std::string_view order_field = "vouch-order";
inline constexpr std::string_view spilled_field = "vouch-spilled";

/// Whether a broker gives the field a meaning, or adds it by itself. Then it carries no header.
[[nodiscard]] inline bool is_brokers(std::string_view name) noexcept {
    constexpr std::array words{"CC", "BCC", "x-death", "x-delivery-count", "x-acquired-count", "x-received-from"};
    constexpr std::array beginnings{"x-first-death-", "x-last-death-", "x-shovelled", "x-opt-"};
    return std::find(words.begin(), words.end(), name) != words.end() ||
           std::any_of(beginnings.begin(), beginnings.end(), [&](const char* b) { return name.starts_with(b); });
}

inline void append_sized(std::string& out, std::string_view text) {
    const auto size = static_cast<std::uint32_t>(text.size());
    for (const unsigned shift : {24U, 16U, 8U, 0U}) {
        out += static_cast<char>(static_cast<unsigned char>(size >> shift));
    }
    out += text;
}

/// Takes a text off the front; none if there is none.
[[nodiscard]] inline std::optional<std::string_view> take_sized(std::string_view& from) noexcept {
    constexpr std::size_t prefix = 4;
    if (from.size() < prefix) {
        return std::nullopt;
    }
    std::size_t size = 0;
    for (const char c : from.substr(0, prefix)) {
        size = size << 8U | static_cast<unsigned char>(c);
    }
    from.remove_prefix(prefix);
    if (from.size() < size) {
        return std::nullopt;
    }
    const auto text = from.substr(0, size);
    from.remove_prefix(size);
    return text;
}

/// The headers table of one message, and what is in front of its payload. What `table` returns points into this object.
class written_headers {
  public:
    /// The table fits into a frame of this size, together with the other properties and what a broker adds.
    written_headers(const message& m, std::size_t frame_size) : properties_(properties_of(m)) {
        std::size_t size = 0;
        for (const auto& [name, value] : properties_) {
            // Twice: a name may also be in the list of the order.
            size += 2 * (name.size() + field_overhead) + value.size();
        }
        if (size > frame_size / 2) {
            spill();
        } else {
            fill(properties_.size() - m.headers.size());
        }
    }
    written_headers(const written_headers&) = delete;
    written_headers& operator=(const written_headers&) = delete;

    [[nodiscard]] amqp_table_t table() noexcept { return {static_cast<int>(fields_.size()), fields_.data()}; }
    /// What the body begins with.
    [[nodiscard]] std::string_view spilled() const noexcept { return spilled_; }

  private:
    static constexpr std::size_t field_overhead = 6;
    static constexpr std::size_t field_name_max = 255;

    void spill() {
        for (const auto& [name, value] : properties_) {
            append_sized(spilled_, name);
            append_sized(spilled_, value);
        }
        spilled_size_ = std::to_string(spilled_.size());
        fields_.push_back(text_field(spilled_field, spilled_size_));
    }

    void fill(std::size_t first_header) {
        bool is_ascending = true;
        std::set<std::string_view> used;
        pairs_.reserve(properties_.size());
        order_.reserve(properties_.size());
        for (std::size_t i = 0; i < properties_.size(); ++i) {
            const auto& [name, value] = properties_[i];
            const bool is_field =
                !name.empty() && name.size() <= field_name_max && !is_brokers(name) && used.insert(name).second;
            if (is_field) {
                fields_.push_back(text_field(name, value));
            }
            if (i >= first_header) {
                is_ascending = is_ascending && is_field && (i == first_header || properties_[i - 1].first < name);
                order_.push_back(is_field ? text_field("", name).value : pair_of(name, value));
            }
        }
        if (!is_ascending) {
            fields_.push_back(text_field(order_field, ""));
            fields_.back().value = array_of(order_.data(), order_.size());
        }
    }

    [[nodiscard]] amqp_field_value_t pair_of(const std::string& name, const std::string& value) {
        pairs_.push_back({text_field("", name).value, text_field("", value).value});
        return array_of(pairs_.back().data(), 2);
    }

    [[nodiscard]] static amqp_field_value_t array_of(amqp_field_value_t* items, std::size_t count) noexcept {
        amqp_field_value_t out{};
        out.kind = AMQP_FIELD_KIND_ARRAY;
        out.value.array = {static_cast<int>(count), items};
        return out;
    }

    header_list properties_;
    std::vector<amqp_table_entry_t> fields_{};
    std::vector<amqp_field_value_t> order_{};
    std::vector<std::array<amqp_field_value_t, 2>> pairs_{};
    std::string spilled_{};
    std::string spilled_size_{};
};

[[nodiscard]] inline bool is_text(const amqp_field_value_t& value) noexcept {
    return value.kind == AMQP_FIELD_KIND_UTF8 || value.kind == AMQP_FIELD_KIND_BYTES;
}

/// A value as text; none for tables and arrays, which a header cannot hold.
[[nodiscard]] inline std::optional<std::string> field_text(const amqp_field_value_t& value) {
    const auto& v = value.value;
    switch (value.kind) {
    case AMQP_FIELD_KIND_UTF8:
    case AMQP_FIELD_KIND_BYTES: return std::string(text_of(v.bytes));
    case AMQP_FIELD_KIND_BOOLEAN: return v.boolean != 0 ? "true" : "false";
    case AMQP_FIELD_KIND_I8: return std::to_string(v.i8);
    case AMQP_FIELD_KIND_U8: return std::to_string(v.u8);
    case AMQP_FIELD_KIND_I16: return std::to_string(v.i16);
    case AMQP_FIELD_KIND_U16: return std::to_string(v.u16);
    case AMQP_FIELD_KIND_I32: return std::to_string(v.i32);
    case AMQP_FIELD_KIND_U32: return std::to_string(v.u32);
    case AMQP_FIELD_KIND_I64: return std::to_string(v.i64);
    case AMQP_FIELD_KIND_U64:
    case AMQP_FIELD_KIND_TIMESTAMP: return std::to_string(v.u64);
    case AMQP_FIELD_KIND_F32: return std::to_string(v.f32);
    case AMQP_FIELD_KIND_F64: return std::to_string(v.f64);
    case AMQP_FIELD_KIND_VOID: return "";
    default: return std::nullopt;
    }
}

/// The headers table of a message that arrives. It keeps nothing that belongs to the table.
class read_headers {
  public:
    read_headers() = default;
    explicit read_headers(const amqp_table_t& table) {
        for (int i = 0; i < table.num_entries; ++i) {
            const auto& field = table.entries[i];
            const auto name = text_of(field.key);
            if (name == order_field) {
                is_readable_ = read_order(field.value);
            } else if (name == spilled_field) {
                spilled_ = field_text(field.value).value_or("");
            } else if (!is_brokers(name)) {
                if (auto text = field_text(field.value)) {
                    fields_.insert_or_assign(std::string(name), std::move(*text));
                }
            }
        }
    }

    /// Sets the properties of the message. The front of the payload is cut off if it has them. Returns false if something of
    /// ours cannot be read; the message has the rest.
    [[nodiscard]] bool into(message& m) {
        header_list properties;
        if (spilled_) {
            is_readable_ = take_spilled(m.payload, properties) && is_readable_;
        }
        for (auto& [name, value] : order_) {
            if (value) {
                properties.emplace_back(std::move(name), std::move(*value));
            } else if (auto field = fields_.extract(name); !field.empty()) {
                properties.emplace_back(std::move(name), std::move(field.mapped()));
            } else {
                is_readable_ = false;
            }
        }
        for (auto& [name, value] : fields_) {
            properties.emplace_back(name, std::move(value));
        }
        return read_properties(std::move(properties), m) && is_readable_;
    }

  private:
    [[nodiscard]] bool read_order(const amqp_field_value_t& order) {
        if (order.kind != AMQP_FIELD_KIND_ARRAY) {
            return false;
        }
        bool is_readable = true;
        for (int i = 0; i < order.value.array.num_entries; ++i) {
            const auto& item = order.value.array.entries[i];
            const auto& pair = item.value.array;
            if (is_text(item)) {
                order_.emplace_back(text_of(item.value.bytes), std::nullopt);
            } else if (item.kind == AMQP_FIELD_KIND_ARRAY && pair.num_entries == 2 && is_text(pair.entries[0]) &&
                       is_text(pair.entries[1])) {
                order_.emplace_back(text_of(pair.entries[0].value.bytes), text_of(pair.entries[1].value.bytes));
            } else {
                is_readable = false;
            }
        }
        return is_readable;
    }

    [[nodiscard]] bool take_spilled(std::string& payload, header_list& out) const {
        std::size_t size = 0;
        const auto* const end = spilled_->data() + spilled_->size();
        const auto [stop, problem] = std::from_chars(spilled_->data(), end, size);
        if (problem != std::errc{} || stop != end || size > payload.size()) {
            return false;
        }
        header_list found;
        for (auto left = std::string_view(payload).substr(0, size); !left.empty();) {
            const auto name = take_sized(left);
            const auto value = name ? take_sized(left) : std::nullopt;
            if (!value) {
                return false;
            }
            found.emplace_back(*name, *value);
        }
        out = std::move(found);
        payload.erase(0, size);
        return true;
    }

    std::map<std::string, std::string> fields_{};                             // so that the names ascend
    std::vector<std::pair<std::string, std::optional<std::string>>> order_{}; // without a value: it is in a field
    std::optional<std::string> spilled_{};
    bool is_readable_ = true;
};

} // namespace rabbitmq::detail
} // namespace v0
} // namespace vouch

// ---- vouch/rabbitmq/detail/incoming.hpp
// Puts deliveries together from frames: a method, a header, and the body in pieces. A delivery may be incomplete when a call
// ends; the next one goes on with it.

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

// ---- vouch/rabbitmq/detail/unsettled.hpp
// The deliveries of a connection that are not acknowledged, given back or set aside. A consumer's tags continue where those of
// its last connection ended, so that a tag of a lost connection is never taken for one of this.

namespace vouch {
inline namespace v0 {
namespace rabbitmq::detail {

/// What the broker does with a message.
enum class fate : unsigned char { acknowledged, requeued, dead_lettered };

class unsettled {
  public:
    /// A delivery has arrived. Returns the tag by which the consumer's user knows it.
    [[nodiscard]] std::uint64_t arrived(std::uint64_t delivery_tag) {
        last_ = delivery_tag;
        tags_.insert(delivery_tag);
        return base_ + delivery_tag;
    }

    /// The connection is lost: the broker will deliver all of them again.
    void lose() noexcept {
        base_ += last_;
        last_ = 0;
        tags_.clear();
    }

    /// Those that are still unsettled, ascending.
    [[nodiscard]] std::set<std::uint64_t> select(std::span<const received> some) const {
        std::set<std::uint64_t> out;
        for (const auto& one : some) {
            if (one.tag > base_ && tags_.contains(one.tag - base_)) {
                out.insert(one.tag - base_);
            }
        }
        return out;
    }

    [[nodiscard]] bool is_all(const std::set<std::uint64_t>& chosen) const { return chosen == tags_; }

    /// Tells the broker. All before the first that stays are acknowledged, or set aside, by one frame. RabbitMQ does not keep
    /// the order of messages that one frame returns to the queue, so each has its own then.
    [[nodiscard]] io settle(connection& to, const std::set<std::uint64_t>& chosen, fate what, steady::time_point end) {
        auto first = chosen.begin();
        auto how = io::done;
        if (what != fate::requeued) {
            first = std::mismatch(tags_.begin(), tags_.end(), chosen.begin(), chosen.end()).second;
            how = first == chosen.begin() ? io::done : send(to, *std::prev(first), true, what, end);
        }
        for (; how == io::done && first != chosen.end(); ++first) {
            how = send(to, *first, false, what, end);
        }
        for (const auto tag : chosen) {
            tags_.erase(tag);
        }
        return how;
    }

  private:
    [[nodiscard]] static io send(connection& to, std::uint64_t tag, bool is_multiple, fate what,
                                 steady::time_point end) {
        if (what == fate::acknowledged) {
            amqp_basic_ack_t ack{};
            ack.delivery_tag = tag;
            ack.multiple = is_multiple ? 1 : 0;
            return to.send_method(AMQP_BASIC_ACK_METHOD, &ack, end);
        }
        amqp_basic_nack_t nack{};
        nack.delivery_tag = tag;
        nack.multiple = is_multiple ? 1 : 0;
        nack.requeue = what == fate::requeued ? 1 : 0;
        return to.send_method(AMQP_BASIC_NACK_METHOD, &nack, end);
    }

    std::uint64_t base_ = 0; // the consumer's tags of lost connections are not greater
    std::uint64_t last_ = 0; // the highest tag of this connection
    std::set<std::uint64_t> tags_{};
};

} // namespace rabbitmq::detail
} // namespace v0
} // namespace vouch

// ---- vouch/rabbitmq/consumer.hpp
// Receives messages from a queue of RabbitMQ: a model of `vouch::consumer`. The broker sends at most `prefetch` messages ahead;
// what is not acknowledged is delivered again. To keep the order, `give_back` and `cancel` also return what has arrived and
// was not received.
//
// Codes of messages that cannot be read: no_message_id, unreadable_headers, message_too_large.
//
// Used by one thread at a time. The broker ends a connection that is silent for twice the heartbeat, so call `receive`, or
// acknowledge, more often than that.

namespace vouch {
inline namespace v0 {
namespace rabbitmq {

class consumer {
  public:
    /// Throws `invalid_argument` if an option is not valid. Connects at the first `receive`.
    explicit consumer(consumer_options options)
        : options_(std::move(options)), target_(options_.connection), back_off_(target_),
          incoming_(options_.queue, options_.message_size_max) {
        detail::expect_name("queue", options_.queue);
        detail::expect_name("tag", options_.tag + "-0000000000"); // with room for a number
        if (options_.prefetch == 0) {
            detail::refuse_option("prefetch", "is 0; it must be at least 1");
        }
        if (options_.message_size_max == 0) {
            detail::refuse_option("message_size_max", "is 0; it must be at least 1");
        }
    }
    consumer(const consumer&) = delete;
    consumer& operator=(const consumer&) = delete;
    /// What was received and not acknowledged is delivered again.
    ~consumer() = default;

    /// See `vouch::consumer`. Making a connection takes up to `connect_limit`, also if `at_most` is shorter. Throws `io` if the
    /// broker does not answer, if the connection is lost, and if the queue does not exist or is deleted; `invalid_argument` if
    /// the broker does not accept the user or the virtual host; `read_only` if the user may not read the queue.
    [[nodiscard]] std::vector<received> receive(std::size_t limit, duration at_most, const std::stop_token& stop) {
        constexpr duration longest = std::chrono::hours{24};
        const auto end = steady::now() + std::clamp(at_most, duration::zero(), longest);
        if (is_cancelled_ || limit == 0) {
            if (drain(0) == io::lost) { // so that the connection stays alive
                lose();
            }
            return {};
        }
        while (arrived_.empty()) {
            if (stop.stop_requested() || !start(end, stop)) {
                return {};
            }
            const auto how = step(std::min(end, steady::now() + patience));
            if (how == io::lost) {
                lose_and_throw();
            }
            if (how == io::nothing && steady::now() >= end) {
                return {};
            }
        }
        if (drain(limit) == io::lost) {
            lose_and_throw();
        }
        std::vector<received> out;
        for (; !arrived_.empty() && out.size() < limit; arrived_.pop_front()) {
            out.push_back(std::move(arrived_.front()));
        }
        return out;
    }

    /// Never throws because of the broker: what it does not learn, it delivers again.
    void acknowledge(std::span<const received> some) { settle(unsettled_.select(some), detail::fate::acknowledged); }

    /// Returns the messages to the queue, and those that have arrived and were not received: they come again before others, in
    /// the order of their arrival. If all messages that were received are settled, the order is certain; so acknowledge the
    /// others of a batch first.
    void give_back(std::span<const received> some) {
        if (!unsettled_.select(some).empty()) {
            return_to_queue(some);
        }
    }

    /// Moves the messages to the dead-letter exchange of the queue. Without one, the broker drops them.
    void set_aside(std::span<const received> some) { settle(unsettled_.select(some), detail::fate::dead_lettered); }

    void cancel() {
        is_cancelled_ = true;
        return_to_queue({});
    }

  private:
    using steady = detail::steady;
    using io = detail::io;
    enum class delivery : unsigned char { stopped, running, closing };
    static constexpr std::chrono::milliseconds patience{50}; // how late a request to stop may be noticed

    /// Connects and consumes if needed. Returns false if it has to wait for longer than the caller does.
    [[nodiscard]] bool start(steady::time_point end, const std::stop_token& stop) {
        while (!connection_ && steady::now() < back_off_.not_before()) {
            if (stop.stop_requested() || steady::now() >= end) {
                return false;
            }
            std::this_thread::sleep_until(std::min({back_off_.not_before(), end, steady::now() + patience}));
        }
        if (delivery_ != delivery::running) {
            try {
                connect_and_consume();
                back_off_.worked();
            } catch (const std::bad_alloc&) {
                lose();
                throw error(error_kind::full, "rabbitmq: connect: out of memory");
            } catch (const error&) {
                lose();
                back_off_.failed();
                throw;
            }
        }
        return true;
    }

    void connect_and_consume() {
        if (!connection_) {
            connection_ = std::make_unique<detail::connection>(target_);
        }
        const auto channel = detail::connection::channel;
        auto* const state = connection_->state();
        amqp_basic_qos(state, channel, 0, options_.prefetch, 0);
        connection_->expect_reply("basic.qos");
        // A new name each time: the broker may still count messages for the old one.
        tag_ = options_.tag + '-' + std::to_string(++consumes_);
        amqp_basic_consume(state, channel, detail::bytes_of(options_.queue), detail::bytes_of(tag_), 0, 0, 0,
                           amqp_table_t{0, nullptr});
        connection_->expect_reply("consume from queue " + options_.queue);
        delivery_ = delivery::running;
    }

    /// Handles what has arrived, without waiting, until `enough` messages are there.
    io drain(std::size_t enough) {
        auto how = io::done;
        while (how == io::done && connection_ && (enough == 0 || arrived_.size() < enough)) {
            how = step(steady::now());
        }
        return how;
    }

    /// Handles one frame.
    [[nodiscard]] io step(steady::time_point end) {
        amqp_frame_t frame{};
        const auto how = connection_->next(frame, end);
        if (how == io::done) {
            handle(frame);
            connection_->release();
        }
        return connection_->is_open() ? how : io::lost;
    }

    void handle(const amqp_frame_t& frame) {
        std::optional<received> complete;
        switch (frame.frame_type) {
        case AMQP_FRAME_METHOD: handle_method(frame.payload.method); break;
        case AMQP_FRAME_HEADER: complete = incoming_.header(frame); break;
        case AMQP_FRAME_BODY: complete = incoming_.body(frame); break;
        default: break;
        }
        if (complete) {
            complete->tag = unsettled_.arrived(complete->tag);
            if (!is_late_) {
                arrived_.push_back(std::move(*complete));
            } else if (delivery_ != delivery::closing) { // then it goes back by itself
                tell(unsettled_.select({&*complete, 1}), detail::fate::requeued);
            }
        }
    }

    void handle_method(const amqp_method_t& method) {
        awaited_ = method.id == awaited_ ? 0 : awaited_;
        switch (method.id) {
        case AMQP_BASIC_DELIVER_METHOD: {
            const auto& deliver = *static_cast<const amqp_basic_deliver_t*>(method.decoded);
            incoming_.begin(deliver);
            is_late_ = delivery_ != delivery::running || detail::text_of(deliver.consumer_tag) != tag_;
            break;
        }
        case AMQP_BASIC_CANCEL_METHOD:
            fault_ = error(error_kind::io, "rabbitmq: receive: the broker has ended the consumer, because queue " +
                                               options_.queue + " was deleted or its node has failed");
            connection_->lose();
            break;
        case AMQP_CHANNEL_CLOSE_METHOD:
            end_with(static_cast<const amqp_channel_close_t*>(method.decoded)->reply_code);
            break;
        case AMQP_CONNECTION_CLOSE_METHOD:
            end_with(static_cast<const amqp_connection_close_t*>(method.decoded)->reply_code);
            break;
        default: break;
        }
    }

    void end_with(int reply_code) {
        fault_ = detail::error_of_reply(detail::meaning_of_end(reply_code), "receive from queue " + options_.queue);
        connection_->lose();
    }

    /// Returns these to the queue, and all that have arrived and were not received. Nothing is delivered afterwards.
    void return_to_queue(std::span<const received> some) {
        const auto end = steady::now() + options_.connection.connect_limit;
        if (!connection_ || !(unsettled_.is_all(with_arrived(some)) ? renew_channel(end) : return_each(some, end))) {
            lose();
        }
    }

    /// These and those that have arrived and were not received.
    [[nodiscard]] std::set<std::uint64_t> with_arrived(std::span<const received> some) const {
        auto out = unsettled_.select(some);
        for (const auto& one : arrived_) {
            out.merge(unsettled_.select({&one, 1}));
        }
        return out;
    }

    /// The broker returns all messages of a channel that is closed to the queue, in order, also those on their way.
    [[nodiscard]] bool renew_channel(steady::time_point end) {
        delivery_ = delivery::closing;
        amqp_channel_close_t close{};
        close.reply_code = AMQP_REPLY_SUCCESS;
        const bool is_done = ask(AMQP_CHANNEL_CLOSE_METHOD, &close, AMQP_CHANNEL_CLOSE_OK_METHOD, end);
        delivery_ = delivery::stopped;
        unsettled_.lose();
        arrived_.clear();
        incoming_.clear();
        if (is_done) {
            try {
                connection_->open_channel();
            } catch (const error&) {
                return false;
            }
        }
        return is_done;
    }

    /// A few at a time: the broker would put many into one command, and lose their order.
    [[nodiscard]] bool return_each(std::span<const received> given, steady::time_point end) {
        if (!stop_delivery(end)) {
            return false;
        }
        const auto chosen = with_arrived(given);
        arrived_.clear();
        constexpr std::size_t few = 16;
        std::set<std::uint64_t> some;
        for (const auto tag : chosen) {
            some.insert(tag);
            if (some.size() == few || tag == *chosen.rbegin()) {
                tell(std::exchange(some, {}), detail::fate::requeued);
                if (!connection_->is_open() || !ask_queue(end)) {
                    return false;
                }
            }
        }
        return true;
    }

    /// Afterwards the broker delivers nothing more, and what it has sent has arrived.
    [[nodiscard]] bool stop_delivery(steady::time_point end) {
        if (delivery_ != delivery::running) {
            return true;
        }
        amqp_basic_cancel_t cancel{};
        cancel.consumer_tag = detail::bytes_of(tag_);
        amqp_basic_qos_t qos{};
        qos.prefetch_count = options_.prefetch;
        // A quorum queue may answer the request to cancel before it sends what it had decided to send. So ask the queue once
        // more, and then the channel, which forwards what the queue has sent.
        const bool is_done = ask(AMQP_BASIC_CANCEL_METHOD, &cancel, AMQP_BASIC_CANCEL_OK_METHOD, end) &&
                             ask_queue(end) && ask(AMQP_BASIC_QOS_METHOD, &qos, AMQP_BASIC_QOS_OK_METHOD, end);
        delivery_ = delivery::stopped;
        return is_done;
    }

    /// Waits until the queue has answered a question.
    [[nodiscard]] bool ask_queue(steady::time_point end) {
        amqp_queue_declare_t look{};
        look.queue = detail::bytes_of(options_.queue);
        look.passive = 1;
        return ask(AMQP_QUEUE_DECLARE_METHOD, &look, AMQP_QUEUE_DECLARE_OK_METHOD, end);
    }

    /// Sends a request and handles frames until its answer has come. Returns false if it does not come.
    [[nodiscard]] bool ask(amqp_method_number_t request, void* method, amqp_method_number_t answer,
                           steady::time_point end) {
        awaited_ = answer;
        auto how = connection_->send_method(request, method, end);
        while (how == io::done && awaited_ != 0) {
            how = step(end);
        }
        return how == io::done;
    }

    void settle(const std::set<std::uint64_t>& chosen, detail::fate what) {
        if (connection_ && !chosen.empty()) {
            tell(chosen, what);
            if (!connection_->is_open()) {
                lose();
            }
        }
    }

    /// If that fails, the connection is lost, and the broker delivers them again.
    void tell(const std::set<std::uint64_t>& chosen, detail::fate what) {
        const auto end = steady::now() + options_.connection.connect_limit;
        if (unsettled_.settle(*connection_, chosen, what, end) != io::done) {
            connection_->lose();
        }
    }

    void lose() noexcept {
        if (connection_) {
            connection_->lose();
        }
        connection_.reset();
        delivery_ = delivery::stopped;
        arrived_.clear();
        unsettled_.lose();
        incoming_.clear();
        fault_.reset(); // it was this connection's
    }

    [[noreturn]] void lose_and_throw() {
        const auto fault = std::exchange(fault_, std::nullopt);
        lose();
        if (fault) {
            throw error(*fault);
        }
        throw error(error_kind::io, "rabbitmq: receive: the connection to " + target_.where() + " was lost");
    }

    const consumer_options options_;
    const detail::target target_;
    detail::back_off back_off_;
    detail::incoming incoming_;
    detail::unsettled unsettled_{};
    std::deque<received> arrived_{}; // not received yet
    std::unique_ptr<detail::connection> connection_{};
    std::string tag_{};
    std::uint64_t consumes_ = 0;
    delivery delivery_ = delivery::stopped;
    bool is_late_ = false;             // the message that is arriving is for a consumer that was cancelled
    amqp_method_number_t awaited_ = 0; // the answer that `ask` waits for
    bool is_cancelled_ = false;
    std::optional<error> fault_{};
};

static_assert(vouch::consumer<consumer>);

} // namespace rabbitmq
} // namespace v0
} // namespace vouch

// ---- vouch/rabbitmq/topology.hpp
// The exchanges, queues and bindings that services need, as data. `provision.hpp` creates or checks them on a broker, and
// `definitions.hpp` prints them for the tools with which operators create them.
//
//   exchange (topic)  --pattern-->  queue (quorum)  --rejected-->  dead-letter exchange (direct)  -->  queue.dlq (quorum)
//
// A dead-letter queue gets what is set aside, because it can never be stored; what was delivered `delivery_limit` times without
// an acknowledgement; and what expires in the queue.

namespace vouch {
inline namespace v0 {
namespace rabbitmq {

/// A queue, and the topics it takes.
struct listener {
    std::string queue{};
    std::vector<std::string> patterns{}; ///< words joined by dots; `*` is any word, `#` any number of words
    /// Only one consumer at a time receives from the queue, so that messages of a lane stay in order when several consumers
    /// are connected; another one takes over when it dies.
    bool single_active_consumer = false;
};

struct topology {
    std::string exchange{};
    std::vector<listener> listeners{};
    std::string dead_letter_exchange{}; ///< empty: the exchange's name and `.dlx`
    /// After so many deliveries without an acknowledgement a message is dead-lettered, so that one that crashes its consumers
    /// ends. Every return to the queue counts, also of messages that were sent ahead (`prefetch`) and that no consumer has
    /// looked at. An intake whose store is away gives messages back every 2.5 to 5 seconds, so that the default lasts for at
    /// least 28 days with one intake, and 2.8 days with ten that share the queue. 0: the broker's default, which is no limit
    /// before RabbitMQ 4.0 and 20 since.
    std::uint32_t delivery_limit = 1'000'000;
    /// How many messages a queue holds at most. A full queue rejects what is published to it (`nacked`), so that messages wait
    /// in the store of the sender. 0: no limit.
    std::uint64_t length_max = 0;
};

/// An argument of a queue: a text, or a number if the text is empty.
struct queue_argument {
    std::string name{};
    std::string text{};
    std::uint64_t number = 0;
    bool is_flag = false; ///< the number is a truth value
};

/// The name of a queue's dead-letter queue.
[[nodiscard]] inline std::string dead_letter_queue(std::string_view queue) { return std::string(queue) + ".dlq"; }

[[nodiscard]] inline std::string dead_letter_exchange(const topology& t) {
    return t.dead_letter_exchange.empty() ? t.exchange + ".dlx" : t.dead_letter_exchange;
}

/// The arguments of a listener's queue. Dead letters are moved at least once: none is lost if a node fails meanwhile.
[[nodiscard]] inline std::vector<queue_argument> arguments_of(const topology& t, const listener& l) {
    std::vector<queue_argument> out{{.name = "x-queue-type", .text = "quorum"},
                                    {.name = "x-dead-letter-exchange", .text = dead_letter_exchange(t)},
                                    {.name = "x-dead-letter-routing-key", .text = l.queue},
                                    {.name = "x-dead-letter-strategy", .text = "at-least-once"},
                                    {.name = "x-overflow", .text = "reject-publish"}};
    if (t.delivery_limit > 0) {
        out.push_back({.name = "x-delivery-limit", .number = t.delivery_limit});
    }
    if (t.length_max > 0) {
        out.push_back({.name = "x-max-length", .number = t.length_max});
    }
    if (l.single_active_consumer) {
        out.push_back({.name = "x-single-active-consumer", .number = 1, .is_flag = true});
    }
    return out;
}

/// The arguments of a dead-letter queue.
[[nodiscard]] inline std::vector<queue_argument> dead_letter_arguments() {
    return {{.name = "x-queue-type", .text = "quorum"}};
}

/// Throws `invalid_argument` unless a broker can have these objects: names are valid UTF-8 of at most 255 bytes, also
/// with their suffixes, each queue is there once, and the two exchanges differ.
inline void validate(const topology& t) {
    const auto refuse = [](const std::string& what) {
        throw error(error_kind::invalid_argument, "rabbitmq: topology: " + what);
    };
    const auto expect = [&](const std::string& what, const std::string& name) {
        if (const auto problem = detail::objection_to_name(name); !problem.empty()) {
            refuse("the name of " + what + ' ' + problem);
        }
        if (name.starts_with("amq.")) {
            refuse("the name of " + what + " begins with `amq.`, which RabbitMQ keeps for itself");
        }
    };
    expect("the exchange", t.exchange);
    expect("the dead-letter exchange", dead_letter_exchange(t));
    if (dead_letter_exchange(t) == t.exchange) {
        refuse("the dead-letter exchange is the exchange itself, so that a message that is set aside would be routed "
               "again: " +
               t.exchange);
    }
    std::set<std::string> queues;
    for (std::size_t i = 0; i < t.listeners.size(); ++i) {
        const auto& l = t.listeners[i];
        const auto what = "listener " + std::to_string(i);
        expect("the queue of " + what, l.queue);
        expect("the dead-letter queue of " + what, dead_letter_queue(l.queue));
        if (!queues.insert(l.queue).second || !queues.insert(dead_letter_queue(l.queue)).second) {
            refuse("the queue of " + what + ", or its dead-letter queue, is there twice: " + l.queue);
        }
        for (const auto& pattern : l.patterns) {
            if (const auto problem = detail::objection_to_name(pattern); !problem.empty()) {
                refuse("a pattern of " + what + ' ' + problem);
            }
        }
    }
}

/// What a service does.
enum class service : unsigned char { publishes, consumes, both };

/// Regular expressions, as RabbitMQ has them: the names of the objects that a user may configure, write and read.
struct permissions {
    std::string configure{};
    std::string write{};
    std::string read{};
};

/// A regular expression that matches these names and no others; without names, only the empty one.
[[nodiscard]] inline std::string exactly(const std::vector<std::string>& names) {
    std::string out;
    for (const auto& name : names) {
        out += out.empty() ? "" : "|";
        for (const char c : name) {
            const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                                  c == '_' || static_cast<unsigned char>(c) >= 0x80;
            out += is_plain ? std::string(1, c) : std::string{'\\', c};
        }
    }
    return out.empty() ? "^$" : "^(" + out + ")$";
}

/// The least that a service needs: it configures nothing, writes to the exchange and reads the queues.
[[nodiscard]] inline permissions least_permissions(const topology& t, service does = service::both) {
    validate(t);
    std::vector<std::string> queues;
    for (const auto& l : t.listeners) {
        queues.push_back(l.queue);
    }
    return {.configure = exactly({}),
            .write = exactly(does == service::consumes ? std::vector<std::string>{} : std::vector{t.exchange}),
            .read = exactly(does == service::publishes ? std::vector<std::string>{} : queues)};
}

} // namespace rabbitmq
} // namespace v0
} // namespace vouch

// ---- vouch/rabbitmq/detail/quoted.hpp
// Texts as literals of JSON and of Terraform's language (HCL).

namespace vouch {
inline namespace v0 {
namespace rabbitmq::detail {

/// The text is valid UTF-8 without control characters.
[[nodiscard]] inline std::string json_quoted(std::string_view text) {
    std::string out = "\"";
    for (const char c : text) {
        out.append(c == '"' || c == '\\' ? "\\" : "").append(1, c);
    }
    return out + '"';
}

/// Like JSON, but `${` and `%{` would begin an expression.
[[nodiscard]] inline std::string hcl_quoted(std::string_view text) {
    std::string out = json_quoted(text);
    for (std::size_t i = 0; i + 1 < out.size(); ++i) {
        if ((out[i] == '$' || out[i] == '%') && out[i + 1] == '{') {
            out.insert(i, 1, out[i]);
            i += 2;
        }
    }
    return out;
}

[[nodiscard]] inline std::string argument_value(const queue_argument& one, std::string (*quoted)(std::string_view)) {
    if (one.is_flag) {
        return one.number != 0 ? "true" : "false";
    }
    return one.text.empty() ? std::to_string(one.number) : quoted(one.text);
}

[[nodiscard]] inline std::string json_arguments(const std::vector<queue_argument>& arguments) {
    std::string out;
    for (const auto& one : arguments) {
        out.append(out.empty() ? "" : ", ").append(json_quoted(one.name)).append(": ");
        out += argument_value(one, &json_quoted);
    }
    return out;
}

[[nodiscard]] inline std::string hcl_arguments(const std::vector<queue_argument>& arguments) {
    std::string out;
    for (const auto& one : arguments) {
        out.append(out.empty() ? "" : ", ").append(hcl_quoted(one.name)).append(" = ");
        out += argument_value(one, &hcl_quoted);
    }
    return out;
}

[[nodiscard]] inline std::string json_lines(const std::vector<std::string>& items) {
    std::string out;
    for (const auto& item : items) {
        out.append(out.empty() ? "\n    " : ",\n    ").append(item);
    }
    return '[' + out + (out.empty() ? "]" : "\n  ]");
}

/// Throws unless the text is a letter or `_`, followed by letters, digits or `_`.
inline void expect_identifier(std::string_view what, std::string_view text) {
    const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
    bool is_good = !text.empty() && is_letter(text.front());
    for (const char c : text) {
        is_good = is_good && (is_letter(c) || (c >= '0' && c <= '9'));
    }
    if (!is_good) {
        refuse_option(what, "must begin with a letter and have letters, digits and _ only");
    }
}

} // namespace rabbitmq::detail
} // namespace v0
} // namespace vouch

// ---- vouch/rabbitmq/definitions.hpp
// A topology as text for the tools with which operators create it: RabbitMQ's own definitions (`rabbitmqctl
// import_definitions`, the management UI, `load_definitions` in rabbitmq.conf), and Terraform's provider for RabbitMQ.

namespace vouch {
inline namespace v0 {
namespace rabbitmq {

/// Where the objects are to be, and who uses them.
struct definition_options {
    std::string vhost{"/"};
    /// The user of the service, who gets the least permissions; empty: no permissions are printed. The user must exist:
    /// passwords are not ours to print.
    std::string user{};
    service does = service::both;
};

namespace detail {

inline void check(const topology& t, const definition_options& where) {
    validate(t);
    expect_name("vhost", where.vhost);
    if (!where.user.empty()) {
        expect_name("user", where.user);
    }
}

} // namespace detail

/// The definitions as JSON. Importing them changes nothing that exists.
[[nodiscard]] inline std::string definitions_json(const topology& t, const definition_options& where = {}) {
    detail::check(t, where);
    const auto vhost = "\"vhost\": " + detail::json_quoted(where.vhost);
    const auto exchange = [&](const std::string& name, std::string_view type) {
        return "{\"name\": " + detail::json_quoted(name) + ", " + vhost + ", \"type\": \"" + std::string(type) +
               "\", \"durable\": true, \"auto_delete\": false, \"internal\": false, \"arguments\": {}}";
    };
    const auto queue = [&](const std::string& name, const std::vector<queue_argument>& arguments) {
        return "{\"name\": " + detail::json_quoted(name) + ", " + vhost +
               ", \"durable\": true, \"auto_delete\": false, \"arguments\": {" + detail::json_arguments(arguments) +
               "}}";
    };
    const auto binding = [&](const std::string& from, const std::string& to, const std::string& key) {
        return "{\"source\": " + detail::json_quoted(from) + ", " + vhost +
               ", \"destination\": " + detail::json_quoted(to) +
               ", \"destination_type\": \"queue\", \"routing_key\": " + detail::json_quoted(key) +
               ", \"arguments\": {}}";
    };
    const auto dead = dead_letter_exchange(t);
    std::vector<std::string> queues;
    std::vector<std::string> bindings;
    for (const auto& l : t.listeners) {
        queues.push_back(queue(l.queue, arguments_of(t, l)));
        queues.push_back(queue(dead_letter_queue(l.queue), dead_letter_arguments()));
        for (const auto& pattern : l.patterns) {
            bindings.push_back(binding(t.exchange, l.queue, pattern));
        }
        bindings.push_back(binding(dead, dead_letter_queue(l.queue), l.queue));
    }
    std::string out = "{\n  \"vhosts\": [{\"name\": " + detail::json_quoted(where.vhost) + "}],\n";
    if (!where.user.empty()) {
        const auto may = least_permissions(t, where.does);
        out += "  \"permissions\": [\n    {\"user\": " + detail::json_quoted(where.user) + ", " + vhost +
               ", \"configure\": " + detail::json_quoted(may.configure) +
               ", \"write\": " + detail::json_quoted(may.write) + ", \"read\": " + detail::json_quoted(may.read) +
               "}\n  ],\n";
    }
    out += "  \"exchanges\": " + detail::json_lines({exchange(t.exchange, "topic"), exchange(dead, "direct")}) + ",\n";
    out += "  \"queues\": " + detail::json_lines(queues) + ",\n";
    out += "  \"bindings\": " + detail::json_lines(bindings) + "\n}\n";
    return out;
}

/// Resources of Terraform's provider `cyrilgdn/rabbitmq`. Their names begin with the label, which must be an identifier.
[[nodiscard]] inline std::string terraform(const topology& t, const definition_options& where = {},
                                           std::string_view label = "vouch") {
    detail::check(t, where);
    detail::expect_identifier("label", label);
    const auto vhost = detail::hcl_quoted(where.vhost);
    std::string out;
    const auto open = [&](std::string_view kind, const std::string& name) {
        out.append(out.empty() ? "" : "\n").append("resource \"").append(kind).append("\" \"").append(label);
        out.append(1, '_').append(name).append("\" {\n");
    };
    const auto set = [&](std::string_view name, const std::string& value) {
        out.append("  ").append(name).append(" = ").append(value).append(1, '\n');
    };
    const auto exchange = [&](const std::string& resource, const std::string& name, std::string_view type) {
        open("rabbitmq_exchange", resource);
        set("name", detail::hcl_quoted(name));
        set("vhost", vhost);
        out.append("  settings {\n    type        = \"").append(type);
        out += "\"\n    durable     = true\n    auto_delete = false\n  }\n}\n";
    };
    const auto queue = [&](const std::string& resource, const std::string& name,
                           const std::vector<queue_argument>& arguments) {
        open("rabbitmq_queue", resource);
        set("name", detail::hcl_quoted(name));
        set("vhost", vhost);
        out +=
            "  settings {\n    durable        = true\n    auto_delete    = false\n    arguments_json = jsonencode({ " +
            detail::hcl_arguments(arguments) + " })\n  }\n}\n";
    };
    const auto reference = [&](std::string_view kind, const std::string& resource) {
        return std::string(kind).append(1, '.').append(label).append(1, '_').append(resource).append(".name");
    };
    const auto binding = [&](const std::string& resource, const std::string& from, const std::string& to,
                             const std::string& key) {
        open("rabbitmq_binding", resource);
        set("source", reference("rabbitmq_exchange", from));
        set("vhost", vhost);
        set("destination", reference("rabbitmq_queue", to));
        set("destination_type", "\"queue\"");
        set("routing_key", detail::hcl_quoted(key));
        out += "}\n";
    };
    exchange("exchange", t.exchange, "topic");
    exchange("dead_letter_exchange", dead_letter_exchange(t), "direct");
    for (std::size_t i = 0; i < t.listeners.size(); ++i) {
        const auto& l = t.listeners[i];
        const auto number = std::to_string(i);
        queue("queue_" + number, l.queue, arguments_of(t, l));
        queue("dead_letter_queue_" + number, dead_letter_queue(l.queue), dead_letter_arguments());
        for (std::size_t p = 0; p < l.patterns.size(); ++p) {
            binding("binding_" + number + '_' + std::to_string(p), "exchange", "queue_" + number, l.patterns[p]);
        }
        binding("dead_letter_binding_" + number, "dead_letter_exchange", "dead_letter_queue_" + number, l.queue);
    }
    if (!where.user.empty()) {
        const auto may = least_permissions(t, where.does);
        open("rabbitmq_permissions", "permissions");
        set("user", detail::hcl_quoted(where.user));
        set("vhost", vhost);
        out += "  permissions {\n    configure = " + detail::hcl_quoted(may.configure) +
               "\n    write     = " + detail::hcl_quoted(may.write) +
               "\n    read      = " + detail::hcl_quoted(may.read) + "\n  }\n}\n";
    }
    return out;
}

} // namespace rabbitmq
} // namespace v0
} // namespace vouch

// ---- vouch/rabbitmq/provision.hpp
// Creates a topology on a broker, or checks that it is there. `declare` is for development and for tests: it needs a user who
// may configure. `verify` is for services, whose users may not.

namespace vouch {
inline namespace v0 {
namespace rabbitmq {

namespace detail {

class declarer {
  public:
    explicit declarer(const connection_options& to) : connection_(target(to)) {}

    void exchange(const std::string& name, const char* type) {
        amqp_exchange_declare(connection_.state(), connection::channel, bytes_of(name), bytes_of(type), 0, 1, 0, 0,
                              none);
        connection_.expect_reply("declare exchange " + name);
    }
    void queue(const std::string& name, const std::vector<queue_argument>& arguments) {
        std::vector<amqp_table_entry_t> fields;
        for (const auto& one : arguments) {
            fields.push_back(text_field(one.name, one.text));
            if (one.is_flag) {
                fields.back() = bool_field(one.name, one.number != 0);
            } else if (one.text.empty()) {
                fields.back().value.kind = AMQP_FIELD_KIND_I64;
                fields.back().value.value.i64 = static_cast<std::int64_t>(one.number);
            }
        }
        const amqp_table_t table{static_cast<int>(fields.size()), fields.data()};
        amqp_queue_declare(connection_.state(), connection::channel, bytes_of(name), 0, 1, 0, 0, table);
        connection_.expect_reply("declare queue " + name);
    }
    void bind(const std::string& queue, const std::string& exchange, const std::string& key) {
        amqp_queue_bind(connection_.state(), connection::channel, bytes_of(queue), bytes_of(exchange), bytes_of(key),
                        none);
        connection_.expect_reply("bind queue " + queue);
    }

    /// Whether it exists.
    [[nodiscard]] bool has_exchange(const std::string& name) {
        amqp_exchange_declare(connection_.state(), connection::channel, bytes_of(name), bytes_of("topic"), 1, 1, 0, 0,
                              none);
        return is_there("check exchange " + name);
    }
    [[nodiscard]] bool has_queue(const std::string& name) {
        amqp_queue_declare(connection_.state(), connection::channel, bytes_of(name), 1, 1, 0, 0, none);
        return is_there("check queue " + name);
    }

  private:
    static constexpr amqp_table_t none{0, nullptr};

    [[nodiscard]] bool is_there(const std::string& doing) {
        const int code = connection_.refusal(doing);
        if (code != 0 && code != AMQP_NOT_FOUND) {
            throw error_of_reply(meaning_of(code), doing);
        }
        return code == 0;
    }

    connection connection_;
};

} // namespace detail

/// Creates what is missing. Throws `invalid_argument` if an object exists with other arguments, and `read_only` if the user
/// may not configure.
inline void declare(const connection_options& to, const topology& t) {
    validate(t);
    detail::declarer broker(to);
    const auto dead = dead_letter_exchange(t);
    broker.exchange(t.exchange, "topic");
    broker.exchange(dead, "direct");
    for (const auto& l : t.listeners) {
        broker.queue(dead_letter_queue(l.queue), dead_letter_arguments());
        broker.bind(dead_letter_queue(l.queue), dead, l.queue);
        broker.queue(l.queue, arguments_of(t, l));
        for (const auto& pattern : l.patterns) {
            broker.bind(l.queue, t.exchange, pattern);
        }
    }
}

/// Throws one `invalid_argument` that names every exchange and queue that does not exist. It needs no permission, and changes
/// nothing. It cannot see bindings: a message that no queue takes is refused when it is published.
inline void verify(const connection_options& to, const topology& t) {
    validate(t);
    detail::declarer broker(to);
    std::string missing;
    const auto note = [&](bool is_there, std::string_view what, const std::string& name) {
        if (!is_there) {
            missing.append(missing.empty() ? "" : ", ").append(what).append(name);
        }
    };
    const auto dead = dead_letter_exchange(t);
    note(broker.has_exchange(t.exchange), "exchange ", t.exchange);
    note(broker.has_exchange(dead), "exchange ", dead);
    for (const auto& l : t.listeners) {
        note(broker.has_queue(l.queue), "queue ", l.queue);
        note(broker.has_queue(dead_letter_queue(l.queue)), "queue ", dead_letter_queue(l.queue));
    }
    if (!missing.empty()) {
        throw error(error_kind::invalid_argument,
                    "rabbitmq: verify: the broker lacks " + missing +
                        "; an operator creates them, for instance with what definitions_json prints",
                    {.code = AMQP_NOT_FOUND});
    }
}

} // namespace rabbitmq
} // namespace v0
} // namespace vouch

// ---- vouch/rabbitmq/detail/flight.hpp
// The messages that a call has sent on a channel and that the broker has not answered. The broker counts the messages of a
// channel; its answers name those numbers, one or all up to one. A message that no queue takes comes back first, and is
// confirmed afterwards.

namespace vouch {
inline namespace v0 {
namespace rabbitmq::detail {

class flight {
  public:
    /// `first` is the number of the first message to be sent, and `count` how many will be. Answers go to `answers`, which
    /// belongs to `messages`.
    flight(std::uint64_t first, std::span<const message> messages, std::vector<confirmation>& answers,
           std::size_t count)
        : first_(first), messages_(messages), answers_(answers) {
        items_.reserve(count);
    }

    /// The message with this index was sent. Needs no memory.
    void sent(std::size_t index) {
        items_.push_back({index, false, false});
        ++open_;
    }
    [[nodiscard]] std::size_t open() const noexcept { return open_; }
    [[nodiscard]] std::size_t size() const noexcept { return items_.size(); }

    void acknowledged(std::uint64_t number, bool is_multiple) {
        answer(number, is_multiple, {confirmation::kind::confirmed, {}});
    }
    void rejected(std::uint64_t number, bool is_multiple) {
        answer(number, is_multiple, {confirmation::kind::unknown, "nacked"});
    }

    /// A message came back. They come in the order in which they were sent, so a search begins where the last one ended.
    /// Returns false if none is such a message; then a confirmation that follows may not be trusted.
    [[nodiscard]] bool returned(std::string_view id, std::string_view topic) {
        return mark_returned(returned_to_, id, topic) || mark_returned(0, id, topic);
    }

  private:
    struct item {
        std::size_t index;
        bool is_returned;
        bool is_answered;
    };

    bool mark_returned(std::size_t from, std::string_view id, std::string_view topic) {
        for (std::size_t i = from; i < items_.size(); ++i) {
            auto& one = items_[i];
            const auto& m = messages_[one.index];
            if (!one.is_answered && !one.is_returned && m.id == id && m.topic == topic) {
                one.is_returned = true;
                returned_to_ = i + 1;
                return true;
            }
        }
        return false;
    }

    void answer(std::uint64_t number, bool is_multiple, const confirmation& with) {
        if (number < first_ || number - first_ >= items_.size()) {
            return;
        }
        const auto last = static_cast<std::size_t>(number - first_);
        for (auto i = is_multiple ? answered_to_ : last; i <= last; ++i) {
            settle(items_[i], with);
        }
        answered_to_ = is_multiple ? last + 1 : answered_to_;
    }

    void settle(item& one, const confirmation& with) {
        if (one.is_answered) {
            return;
        }
        one.is_answered = true;
        --open_;
        const bool is_unroutable = one.is_returned && with.what == confirmation::kind::confirmed;
        answers_[one.index] = is_unroutable ? confirmation{confirmation::kind::refused, "unroutable"} : with;
    }

    std::uint64_t first_;
    std::span<const message> messages_;
    std::vector<confirmation>& answers_;
    std::vector<item> items_{};
    std::size_t open_ = 0;
    std::size_t answered_to_ = 0; // all before are answered
    std::size_t returned_to_ = 0; // where the next message that comes back is likely to be
};

} // namespace rabbitmq::detail
} // namespace v0
} // namespace vouch

// ---- vouch/rabbitmq/detail/outgoing.hpp
// Writes one message as frames. Nothing of it is kept.

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

// ---- vouch/rabbitmq/detail/confirm_channel.hpp
// A connection whose broker confirms what is published on it. A batch is sent without waiting for answers, which are read
// meanwhile and afterwards. Used by one thread at a time.

namespace vouch {
inline namespace v0 {
namespace rabbitmq::detail {

/// How a batch ended.
enum class ending : unsigned char {
    answered,  ///< every message has an answer
    timed_out, ///< some have none; the connection is lost, because late answers would be taken for those of others
    lost,      ///< some have none, because the connection is lost
    closed,    ///< some have none, because the broker has closed the channel; it is open again
    unsent,    ///< the connection was lost before anything was sent
};

/// What a batch consists of.
struct batch {
    std::span<const message> messages;
    std::span<const std::size_t> chosen; ///< the indexes of those to send, in order
    std::string_view exchange;
    time_point now;
    std::vector<confirmation>& answers; ///< one per message
};

class confirm_channel {
  public:
    explicit confirm_channel(const target& to) : connection_(to) { select(); }

    /// Whether the connection works, as far as the broker has said until now.
    [[nodiscard]] bool is_alive() {
        drain(nullptr);
        return connection_.is_open() && close_code_ == 0;
    }

    /// If it throws, the connection is lost: late answers would be taken for those of others.
    [[nodiscard]] ending publish(const batch& what, steady::time_point end) {
        try {
            return publish_batch(what, end);
        } catch (...) {
            connection_.lose();
            throw;
        }
    }

    [[nodiscard]] bool is_blocked() const noexcept { return is_blocked_; }
    /// Why the broker closed the channel last.
    [[nodiscard]] int closed_with() const noexcept { return closed_with_; }
    [[nodiscard]] const std::string& closed_text() const noexcept { return closed_text_; }

  private:
    [[nodiscard]] ending publish_batch(const batch& what, steady::time_point end) {
        flight sent(next_, what.messages, what.answers, what.chosen.size());
        bool is_begun = false;
        connection_.cork(true);
        auto how = send_all(what, end, sent, is_begun);
        connection_.cork(false);
        while (how == io::done && sent.open() > 0 && close_code_ == 0) {
            how = step(&sent, end);
        }
        if (how == io::done && close_code_ == 0) {
            return ending::answered;
        }
        if (how == io::done && open_again()) {
            return ending::closed;
        }
        if (how == io::nothing) {
            drain(&sent); // while it waited for room, nothing was read
        }
        connection_.lose();
        if (how == io::done) {
            return ending::lost;
        }
        return !is_begun && how == io::lost ? ending::unsent : how == io::lost ? ending::lost : ending::timed_out;
    }

    void select() {
        close_code_ = 0;
        next_ = 1;
        amqp_confirm_select(connection_.state(), connection::channel);
        connection_.expect_reply("confirm.select");
    }

    [[nodiscard]] bool open_again() {
        try {
            connection_.reopen_channel();
            select();
            return true;
        } catch (const error&) {
            return false;
        }
    }

    [[nodiscard]] io send_all(const batch& what, steady::time_point end, flight& sent, bool& is_begun) {
        constexpr std::size_t between_reads = 64;
        for (const auto index : what.chosen) {
            outgoing one(what.messages[index], what.exchange, what.now, connection_.frame_size());
            if (const auto how = one.send(connection_, end, is_begun); how != io::done) {
                return how;
            }
            ++next_;
            sent.sent(index);
            if (sent.size() % between_reads == 0) {
                drain(&sent);
                if (!connection_.is_open() || close_code_ != 0) {
                    return connection_.is_open() ? io::done : io::lost;
                }
            }
        }
        return io::done;
    }

    /// Handles what has arrived, without waiting.
    void drain(flight* sent) {
        while (step(sent, steady::now()) == io::done) {
        }
    }

    /// Handles one frame.
    [[nodiscard]] io step(flight* sent, steady::time_point end) {
        amqp_frame_t frame{};
        const auto how = connection_.next(frame, end);
        if (how != io::done) {
            return how;
        }
        if (frame.frame_type == AMQP_FRAME_METHOD) {
            handle(frame.payload.method, sent);
        } else if (frame.frame_type == AMQP_FRAME_HEADER) {
            const auto& properties = *static_cast<const amqp_basic_properties_t*>(frame.payload.properties.decoded);
            if (sent == nullptr || !sent->returned(text_of(properties.message_id), returned_topic_)) {
                connection_.lose();
            }
        }
        connection_.release();
        return connection_.is_open() ? io::done : io::lost;
    }

    void handle(const amqp_method_t& method, flight* sent) {
        switch (method.id) {
        case AMQP_BASIC_ACK_METHOD:
            if (sent != nullptr) {
                const auto& ack = *static_cast<const amqp_basic_ack_t*>(method.decoded);
                sent->acknowledged(ack.delivery_tag, ack.multiple != 0);
            }
            break;
        case AMQP_BASIC_NACK_METHOD:
            if (sent != nullptr) {
                const auto& nack = *static_cast<const amqp_basic_nack_t*>(method.decoded);
                sent->rejected(nack.delivery_tag, nack.multiple != 0);
            }
            break;
        case AMQP_BASIC_RETURN_METHOD:
            returned_topic_ = text_of(static_cast<const amqp_basic_return_t*>(method.decoded)->routing_key);
            break;
        case AMQP_CHANNEL_CLOSE_METHOD: {
            const auto& close = *static_cast<const amqp_channel_close_t*>(method.decoded);
            close_code_ = close.reply_code;
            closed_with_ = close.reply_code;
            closed_text_ = text_of(close.reply_text);
            break;
        }
        case AMQP_CONNECTION_CLOSE_METHOD: connection_.lose(); break;
        case AMQP_CONNECTION_BLOCKED_METHOD: is_blocked_ = true; break;
        case AMQP_CONNECTION_UNBLOCKED_METHOD: is_blocked_ = false; break;
        default: break;
        }
    }

    connection connection_;
    std::uint64_t next_ = 1; // the number of the next message on this channel
    int close_code_ = 0;     // not 0: the channel is closed
    int closed_with_ = 0;
    std::string closed_text_{};
    std::string returned_topic_{}; // of the message that is coming back
    bool is_blocked_ = false;
};

} // namespace rabbitmq::detail
} // namespace v0
} // namespace vouch

// ---- vouch/rabbitmq/publisher.hpp
// Publishes messages to an exchange of RabbitMQ: a model of `vouch::publisher` with the confirmations of the broker. A message
// is confirmed when every queue that takes it has stored it; for a quorum queue, on the disks of most of its nodes.
//
// Codes of messages that are not confirmed:
//   refused  unroutable (no queue takes it), message_too_large, expired, invalid_message (no id, or an id or a topic of more
//            than 255 bytes)
//   unknown  nacked, connection_lost, confirm_timeout, broker_blocked (the broker is out of memory or disk), no_exchange,
//            access_refused, and others that an operator can mend
//
// Thread-safe: calls take turns.

namespace vouch {
inline namespace v0 {
namespace rabbitmq {

class publisher {
  public:
    /// Throws `invalid_argument` if an option is not valid. Connects at the first `publish`.
    explicit publisher(publisher_options options)
        : options_(std::move(options)), target_(options_.connection), back_off_(target_) {
        detail::expect_name("exchange", options_.exchange);
        detail::expect_span("confirm_limit", options_.confirm_limit);
        if (options_.message_size_max == 0) {
            detail::refuse_option("message_size_max", "is 0; it must be at least 1");
        }
        if (!options_.clock) {
            detail::refuse_option("clock", "is empty");
        }
    }
    publisher(const publisher&) = delete;
    publisher& operator=(const publisher&) = delete;

    /// Sends the messages and waits for the broker's answers. Throws `vouch::error` if no connection can be made: `io` if the
    /// broker does not answer, `invalid_argument` if it does not accept the user, the password, the virtual host or the
    /// certificate. If the exchange does not exist, every message is `unknown` with the code `no_exchange`.
    [[nodiscard]] std::vector<confirmation> publish(std::span<const message> messages) {
        std::vector<confirmation> answers(messages.size());
        std::unique_lock lock(mutex_);
        const auto now = options_.clock();
        std::vector<std::size_t> chosen;
        for (std::size_t i = 0; i < messages.size(); ++i) {
            if (auto code = objection(messages[i], now)) {
                answers[i] = {confirmation::kind::refused, std::move(*code)};
            } else {
                chosen.push_back(i);
            }
        }
        if (!chosen.empty()) {
            publish_all({messages, chosen, options_.exchange, now, answers}, lock);
        }
        return answers;
    }

  private:
    using ending = detail::ending;
    using batch = detail::batch;

    /// Why the message is refused without asking the broker; none if it is not.
    [[nodiscard]] std::optional<std::string> objection(const message& m, time_point now) const {
        if (m.id.empty() || m.id.size() > detail::name_size_max || m.topic.size() > detail::name_size_max) {
            return "invalid_message";
        }
        if (m.expires_at && *m.expires_at <= now) {
            return "expired";
        }
        auto size = m.payload.size();
        for (const auto& [name, value] : properties_of(m)) {
            size += name.size() + value.size();
        }
        return size > options_.message_size_max ? std::optional<std::string>("message_too_large") : std::nullopt;
    }

    void publish_all(const batch& all, std::unique_lock<std::mutex>& lock) {
        connect(lock);
        auto end = detail::steady::now() + options_.confirm_limit;
        auto how = channel_->publish(all, end);
        if (how == ending::unsent) { // the connection had died while it was not used
            channel_.reset();
            connect(lock);
            end = detail::steady::now() + options_.confirm_limit;
            how = channel_->publish(all, end);
        }
        if (how == ending::closed && all.chosen.size() > 1 && channel_->closed_with() != AMQP_NOT_FOUND) {
            publish_one_by_one(all, end);
        } else {
            finish(all, how);
        }
    }

    /// One of the messages made the broker close the channel, and it does not say which. So that it stops no other message,
    /// all that have no answer are sent again, each alone.
    void publish_one_by_one(const batch& all, detail::steady::time_point end) {
        for (const auto index : all.chosen) {
            if (all.answers[index].what == confirmation::kind::unknown && all.answers[index].code.empty()) {
                const batch one{all.messages, {&index, 1}, all.exchange, all.now, all.answers};
                const auto how = channel_->publish(one, end);
                if (how == ending::answered || how == ending::closed) {
                    finish(one, how);
                } else {
                    finish(all, how);
                    return;
                }
            }
        }
    }

    /// Gives every message of the batch that has no answer the code of the ending.
    void finish(const batch& sent, ending how) {
        confirmation rest{confirmation::kind::unknown, "connection_lost"};
        if (how == ending::timed_out) {
            rest.code = channel_->is_blocked() ? "broker_blocked" : "confirm_timeout";
        } else if (how == ending::closed) {
            rest = detail::confirmation_of_reply(channel_->closed_with(), channel_->closed_text());
            if (sent.chosen.size() > 1) {
                rest.what = confirmation::kind::unknown;
            }
        }
        for (const auto index : sent.chosen) {
            if (auto& one = sent.answers[index]; one.what == confirmation::kind::unknown && one.code.empty()) {
                one = rest;
            }
        }
        if (how == ending::timed_out || how == ending::lost || how == ending::unsent) {
            channel_.reset();
        }
    }

    /// Makes a connection unless there is one that works.
    void connect(std::unique_lock<std::mutex>& lock) {
        if (channel_ && channel_->is_alive()) {
            return;
        }
        channel_.reset();
        while (detail::steady::now() < back_off_.not_before() && !channel_) {
            waiting_.wait_until(lock, back_off_.not_before()); // other calls may connect meanwhile
        }
        if (channel_) {
            return;
        }
        try {
            channel_ = std::make_unique<detail::confirm_channel>(target_);
            back_off_.worked();
        } catch (const std::bad_alloc&) {
            throw error(error_kind::full, "rabbitmq: connect: out of memory");
        } catch (const error&) {
            back_off_.failed();
            throw;
        }
        waiting_.notify_all();
    }

    const publisher_options options_;
    const detail::target target_;
    std::mutex mutex_{};
    std::condition_variable waiting_{};
    detail::back_off back_off_;
    std::unique_ptr<detail::confirm_channel> channel_{};
};

static_assert(vouch::publisher<publisher>);

} // namespace rabbitmq
} // namespace v0
} // namespace vouch

#endif // VOUCH_SINGLE_HEADER_RABBITMQ
