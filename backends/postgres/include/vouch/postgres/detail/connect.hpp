// SPDX-License-Identifier: MIT
// Makes a connection: waits for a server that is starting up, and refuses one that the store cannot use. Messages never
// contain the conninfo, which may have a password.
#pragma once

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <libpq-fe.h>
#include <poll.h>

#include <vouch/contract/error.hpp>
#include <vouch/postgres/detail/connection.hpp>
#include <vouch/postgres/detail/endpoints.hpp>
#include <vouch/postgres/detail/rows.hpp>
#include <vouch/postgres/detail/sqlstate.hpp>

namespace vouch {
inline namespace v0 {
namespace postgres::detail {

using steady = std::chrono::steady_clock;

/// The SQLSTATE of a server that is starting up.
inline constexpr std::string_view starting_up = "57P03";

/// Milliseconds until `end`, for `poll`; 0 if it is over.
[[nodiscard]] inline int milliseconds_until(steady::time_point end) noexcept {
    using std::chrono::milliseconds;
    const auto left = std::chrono::ceil<milliseconds>(end - steady::now());
    return static_cast<int>(std::clamp<milliseconds>(left, milliseconds{0}, milliseconds{1'000'000}).count());
}

/// Waits until the socket can be read (or written), or the other file descriptor can be read; -1 is none. Returns false
/// when the time is over.
[[nodiscard]] inline bool wait_for_socket(int socket, short events, steady::time_point end, int other = -1) noexcept {
    std::array<pollfd, 2> both{pollfd{socket, events, 0}, pollfd{other, POLLIN, 0}};
    int ready = 0;
    do {
        ready = poll(both.data(), both.size(), milliseconds_until(end));
    } while (ready < 0 && errno == EINTR);
    return ready != 0;
}

[[nodiscard]] inline bool is_readable(int descriptor) noexcept {
    return descriptor >= 0 && wait_for_socket(descriptor, POLLIN, steady::now());
}

/// The SQLSTATE at the end of a failed connection's message, which libpq was told to end with it; empty if none.
[[nodiscard]] inline std::string_view sqlstate_in(std::string_view message) noexcept {
    while (!message.empty() && (message.back() == '\n' || message.back() == ' ')) {
        message.remove_suffix(1);
    }
    constexpr std::size_t size = 5;
    const auto is_part = [](char c) { return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z'); };
    if (message.size() <= size || is_part(message[message.size() - size - 1])) {
        return {};
    }
    const auto code = message.substr(message.size() - size);
    return std::all_of(code.begin(), code.end(), is_part) ? code : std::string_view{};
}

/// Throws why the connection failed.
[[noreturn]] inline void throw_refused(PGconn* c) {
    const std::string_view message = PQerrorMessage(c);
    if (const auto code = sqlstate_in(message); !code.empty()) {
        throw error_of(code, "connect");
    }
    if (message.find("no password supplied") != std::string_view::npos) {
        throw error(error_kind::invalid_argument,
                    "postgres: connect: the server asks for a password and conninfo has none");
    }
    if (message.find("read-only") != std::string_view::npos || message.find("hot standby") != std::string_view::npos) {
        throw error(error_kind::read_only, // said by libpq, as target_session_attrs demands
                    "postgres: connect: the server is read-only, and target_session_attrs asks for one that is not",
                    {.text_code = "25006"});
    }
    const char* const host = PQhost(c);
    const char* const port = PQport(c);
    throw error(error_kind::io, "postgres: connect: no server answers at host " + std::string(host ? host : "") +
                                    ", port " + std::string(port ? port : ""));
}

/// How long to try, and what ends it sooner.
struct connect_limits {
    std::chrono::milliseconds limit{};
    /// A server that cannot be reached, or is read-only, may be restarting or failing over: it is tried again.
    bool is_returning = false;
    int interrupt = -1; ///< a file descriptor: connecting fails when it can be read; -1: none
};

/// One attempt.
[[nodiscard]] inline owned_connection try_connect(const std::string& conninfo, const endpoint& to,
                                                  steady::time_point end, int interrupt) {
    const std::array<const char*, 7> names{
        "dbname", "host", "hostaddr", "port", "client_encoding", "fallback_application_name", nullptr};
    const std::array<const char*, 7> values{
        conninfo.c_str(), to.host.c_str(), to.address.c_str(), to.port.c_str(), "UTF8", "vouch", nullptr};
    constexpr int expand_dbname = 1;
    owned_connection c(PQconnectStartParams(names.data(), values.data(), expand_dbname));
    if (!c) {
        throw std::bad_alloc();
    }
    PQsetErrorVerbosity(c.get(), PQERRORS_SQLSTATE);
    PQsetNoticeProcessor(
        c.get(), [](void*, const char*) {}, nullptr);
    auto next = PQstatus(c.get()) == CONNECTION_BAD ? PGRES_POLLING_FAILED : PGRES_POLLING_WRITING;
    while (next != PGRES_POLLING_OK) {
        if (next == PGRES_POLLING_FAILED) {
            throw_refused(c.get());
        }
        const short events = next == PGRES_POLLING_READING ? POLLIN : POLLOUT;
        if (!wait_for_socket(PQsocket(c.get()), events, end, interrupt)) {
            throw error(error_kind::io, "postgres: connect: the server did not answer within connect_limit");
        }
        if (is_readable(interrupt)) {
            throw error(error_kind::io, "postgres: connect: the store is being destroyed");
        }
        next = PQconnectPoll(c.get());
    }
    return c;
}

/// Throws `invalid_argument` if libpq cannot read the conninfo.
inline void validate_conninfo(const std::string& conninfo) {
    PQconninfoOption* const parsed = PQconninfoParse(conninfo.c_str(), nullptr);
    if (parsed == nullptr) {
        throw error(error_kind::invalid_argument,
                    "postgres: conninfo is not valid; it must be keywords and values, or a postgresql:// URI");
    }
    PQconninfoFree(parsed);
}

/// A statement without parameters, outside pipeline mode.
inline rows run_text(PGconn* c, const std::string& text, std::string_view doing) {
    constexpr int binary = 1;
    result_ptr result(PQexecParams(c, text.c_str(), 0, nullptr, nullptr, nullptr, nullptr, binary));
    const auto status = PQresultStatus(result.get());
    if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK) {
        throw error_of(sqlstate_of(result.get()), doing);
    }
    return rows(std::move(result));
}

/// Throws unless the store can use this server.
inline void expect_usable(PGconn* c) {
    constexpr int oldest = 120000;
    if (PQserverVersion(c) < oldest) {
        throw error(error_kind::unsupported, "postgres: connect: the server has version " +
                                                 std::to_string(PQserverVersion(c) / 10000) +
                                                 "; the store needs PostgreSQL 12 or newer");
    }
    const char* const encoding = PQparameterStatus(c, "server_encoding");
    if (encoding == nullptr || std::string_view(encoding) != "UTF8") {
        throw error(error_kind::unsupported,
                    "postgres: connect: the database is not encoded in UTF8 and would change or "
                    "refuse names; create it with ENCODING 'UTF8'");
    }
    bool is_replica = false;
    run_text(c, "SELECT pg_is_in_recovery()", "connect")[0].read(is_replica);
    if (is_replica) {
        throw error(error_kind::read_only,
                    "postgres: connect: the server is a read-only replica; connect to the primary, for instance with "
                    "target_session_attrs=read-write",
                    {.text_code = "25006"});
    }
}

/// Tries each endpoint once, with an equal share of the time. If all fail, throws what says most: a server that is
/// starting up, else one that refuses, else that none answers.
[[nodiscard]] inline owned_connection connect_to_any(const std::string& conninfo, steady::time_point end,
                                                     int interrupt) {
    const auto servers = endpoints_of(conninfo);
    std::optional<error> failed;
    for (std::size_t i = 0; i < servers.size(); ++i) {
        try {
            const auto share = (end - steady::now()) / static_cast<long>(servers.size() - i);
            auto c = try_connect(conninfo, servers[i], steady::now() + share, interrupt);
            expect_usable(c.get());
            return c;
        } catch (const error& e) {
            if (!failed || failed->text_code().empty() || e.text_code() == starting_up) {
                failed = e;
            }
        }
    }
    throw error(*failed);
}

/// A connection to a server that the store can use. A server that is starting up is waited for within the limit.
[[nodiscard]] inline owned_connection connect(const std::string& conninfo, const connect_limits& how) {
    const auto end = steady::now() + how.limit;
    std::chrono::milliseconds pause{20};
    constexpr std::chrono::milliseconds pause_max{320};
    std::optional<error> said; // the last answer of a server: an attempt that runs out of time says less
    for (;;) {
        try {
            return connect_to_any(conninfo, end, how.interrupt);
        } catch (const error& e) {
            if (!said || e.kind() != error_kind::io || !e.text_code().empty()) {
                said = e;
            }
            const bool is_passing = e.text_code() == starting_up ||
                                    (how.is_returning && (e.is_transient() || e.kind() == error_kind::read_only));
            if (!is_passing || steady::now() + pause >= end || is_readable(how.interrupt)) {
                throw error(*said);
            }
        }
        static_cast<void>(wait_for_socket(-1, 0, steady::now() + pause, how.interrupt));
        pause = std::min(2 * pause, pause_max);
    }
}

} // namespace postgres::detail
} // namespace v0
} // namespace vouch
