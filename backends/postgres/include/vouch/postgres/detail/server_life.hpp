// SPDX-License-Identifier: MIT
// Finds out whether a transaction has committed whose connection was lost. PostgreSQL can tell by the transaction's
// number, but after a crash, or a failover, it may give the same number to another transaction. So "committed" counts
// only if the server is in the same life: a row in an unlogged table, which PostgreSQL empties after a crash and does
// not copy to replicas, has the same value as before. (The start time of the checkpointer would tell as well, but only
// to privileged roles.)
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <libpq-fe.h>
#include <poll.h>

#include <vouch/contract/error.hpp>
#include <vouch/contract/id.hpp>
#include <vouch/postgres/detail/connect.hpp>
#include <vouch/postgres/detail/rows.hpp>
#include <vouch/postgres/detail/table_names.hpp>

namespace vouch {
inline namespace v0 {
namespace postgres::detail {

/// The mark of the server's life. Makes one if there is none yet. Nil if there is none and the role may not write: then it
/// has no commits to ask about.
[[nodiscard]] inline id server_life(PGconn* c, const table_names& names) {
    const auto read = names.in("SELECT life FROM @server");
    auto found = run_text(c, read, "connect");
    if (found.size() == 0) {
        try {
            run_text(c,
                     names.in("INSERT INTO @server VALUES (1, md5(random()::text || clock_timestamp()::text)::uuid) "
                              "ON CONFLICT DO NOTHING"),
                     "connect");
        } catch (const error& e) {
            if (e.kind() != error_kind::read_only) {
                throw;
            }
            return {};
        }
        found = run_text(c, read, "connect");
    }
    id life;
    row::expect(found.size() == 1, "postgres: the tables are damaged: the row of the server's life is missing");
    found[0].read(life);
    return life;
}

/// Waits until server processes have ended, for at most a second in all. One that has lost its client keeps its locks until
/// it notices.
inline void wait_for_end(PGconn* c, const std::vector<int>& processes) {
    if (processes.empty()) {
        return;
    }
    std::string list;
    for (const int one : processes) {
        list.append(list.empty() ? "" : ", ").append(std::to_string(one));
    }
    constexpr std::chrono::milliseconds pause{2};
    const auto end = steady::now() + std::chrono::seconds{1};
    const auto text = "SELECT 1 FROM pg_stat_activity WHERE pid IN (" + list + ") AND pid <> pg_backend_pid() LIMIT 1";
    while (run_text(c, text, "connect").size() != 0 && steady::now() < end) {
        std::this_thread::sleep_for(pause);
    }
}

/// Whether the standbys that commits wait for have everything that this server has committed. A COMMIT that was ended while
/// it waited for them is committed here, but a failover would lose it. A new commit waits for all before it.
[[nodiscard]] inline bool is_replicated(PGconn* c) {
    bool has_standbys = false;
    run_text(c, "SELECT current_setting('synchronous_standby_names') <> ''", "commit")[0].read(has_standbys);
    if (!has_standbys) {
        return true;
    }
    bool is_cancelled = false; // then the server warns, and answers as if all were well
    PQsetNoticeReceiver(
        c, [](void* flag, const PGresult*) { *static_cast<bool*>(flag) = true; }, &is_cancelled);
    const auto end = steady::now() + std::chrono::seconds{2};
    bool is_done = PQsendQuery(c, "SELECT pg_logical_emit_message(true, 'vouch', '')") == 1;
    while (is_done && PQisBusy(c) == 1) {
        is_done = wait_for_socket(PQsocket(c), POLLIN, end) && PQconsumeInput(c) == 1;
    }
    const result_ptr answer(is_done ? PQgetResult(c) : nullptr);
    return PQresultStatus(answer.get()) == PGRES_TUPLES_OK && !is_cancelled;
}

enum class commit_fate : std::uint8_t { committed, rolled_back, unknown };

/// Whether the transaction has committed. `c` is a new connection, `life` the server's life when the transaction was open.
[[nodiscard]] inline commit_fate fate_of(PGconn* c, const table_names& names, std::uint64_t transaction_number,
                                         const id& life) {
    const auto text = "SELECT txid_status(" + std::to_string(transaction_number) + "::bigint)";
    std::string status = "in progress";
    constexpr std::chrono::milliseconds pause{2};
    const auto end = steady::now() + std::chrono::seconds{1};
    while (status == "in progress" && steady::now() < end) {
        // The life is read after the status: if it is the same then, it was the same before.
        run_text(c, text, "commit")[0].read(or_default{status});
        if (status == "in progress") {
            std::this_thread::sleep_for(pause);
        }
    }
    if (status == "aborted") {
        return commit_fate::rolled_back;
    }
    const bool is_certain =
        status == "committed" && !life.is_nil() && server_life(c, names) == life && is_replicated(c);
    return is_certain ? commit_fate::committed : commit_fate::unknown;
}

} // namespace postgres::detail
} // namespace v0
} // namespace vouch
