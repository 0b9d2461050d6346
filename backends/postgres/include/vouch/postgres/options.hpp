// SPDX-License-Identifier: MIT
// How a store uses its database.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>

#include <vouch/postgres/prefix.hpp>

namespace vouch {
inline namespace v0 {
namespace postgres {

/// Every member has a usable default.
struct options {
    std::string prefix{default_prefix}; ///< of every table and index, with or without a schema; see `prefix.hpp`
    bool create = true; ///< create or migrate the schema and the tables; false: they must exist, in this version
    /// How many transactions may be open at the same time, and how many reads on the store. The copies of a store share
    /// these connections, which are opened when they are first needed. At least 1.
    std::size_t connections_max = 8;
    /// How long `begin` waits for a connection, and a statement for the lock of another transaction, before `busy` is
    /// thrown. At least 1 ms.
    std::chrono::milliseconds busy_limit{10'000};
    /// How long to wait for a connection to be made, and for a server that is starting up. At least 1 ms.
    std::chrono::milliseconds connect_limit{10'000};
    /// Whether to prepare statements and to configure connections. Set it to false if conninfo leads to pgbouncer in
    /// transaction mode, or to another pool that changes servers between transactions.
    bool prepare = true;
    /// Whether commits of other processes end a `wait`. If false, only commits of this process do.
    bool listen = true;
    /// A conninfo that leads directly to the server, for LISTEN, which does not work through pgbouncer in transaction
    /// mode. Empty: the store's own conninfo.
    std::string listen_conninfo{};
};

} // namespace postgres
} // namespace v0
} // namespace vouch
