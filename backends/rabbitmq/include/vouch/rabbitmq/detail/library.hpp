// SPDX-License-Identifier: MIT
// The headers of rabbitmq-c, whose names depend on its version, and conversions to and from its types.
#pragma once

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

#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>

#include <sys/time.h>

#include <vouch/version.hpp>

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
