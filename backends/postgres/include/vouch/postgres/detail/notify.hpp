// SPDX-License-Identifier: MIT
// The statement that wakes the processes which listen for a transaction's queues. It travels with the commit.
#pragma once

#include <vouch/postgres/detail/connection.hpp>
#include <vouch/postgres/detail/parameters.hpp>
#include <vouch/postgres/detail/session.hpp>
#include <vouch/postgres/detail/sql.hpp>

namespace vouch {
inline namespace v0 {
namespace postgres::detail {

inline void add_notify(connection& on, const session& in) {
    if (in.woken_queues.empty()) {
        return;
    }
    array queues(pg_type::text);
    for (const auto& [queue, gate] : in.woken_queues) {
        queues.add(queue);
    }
    on.add(sql::notify, parameters(on.names().channel(), queues));
}

} // namespace postgres::detail
} // namespace v0
} // namespace vouch
