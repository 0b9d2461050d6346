// SPDX-License-Identifier: MIT
// A fast hand-written job queue to compare the SQLite store with: one table with nine columns per queue, indexes on the
// id and the gate only, every statement prepared once. It has the same operations: enqueue once per id, claim the first
// due jobs under a lease, settle by id and epoch. It keeps none of the contract's other promises. For one thread.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include <sqlite3.h>

namespace bare {

struct job {
    std::array<std::uint8_t, 16> id{};
    std::string topic{};
    std::string payload{};
    std::int64_t due_at = 0; // in microseconds, like all times here
    std::int64_t sequence = 0;
    std::int64_t attempts = 0;
    std::int64_t epoch = 0;
};

class queue {
  public:
    queue(const std::string& path, bool full) {
        check(sqlite3_open(path.c_str(), &db_));
        execute(full ? "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL"
                     : "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL");
        execute("CREATE TABLE IF NOT EXISTS jobs (sequence INTEGER PRIMARY KEY, id BLOB NOT NULL, topic TEXT NOT NULL,"
                " payload BLOB NOT NULL, due_at INTEGER NOT NULL, state INTEGER NOT NULL, attempts INTEGER NOT NULL,"
                " epoch INTEGER NOT NULL, gate INTEGER);"
                "CREATE UNIQUE INDEX IF NOT EXISTS jobs_id ON jobs (id);"
                "CREATE INDEX IF NOT EXISTS jobs_gate ON jobs (gate) WHERE gate IS NOT NULL");
        prepare(begin_, "BEGIN IMMEDIATE");
        prepare(commit_, "COMMIT");
        prepare(insert_, "INSERT INTO jobs (id, topic, payload, due_at, state, attempts, epoch, gate)"
                         " VALUES (?1, ?2, ?3, ?4, 0, 0, 0, ?4) ON CONFLICT (id) DO NOTHING");
        prepare(due_, "SELECT sequence, id, topic, payload, due_at, attempts + 1, epoch + 1 FROM jobs WHERE gate <= ?1"
                      " ORDER BY gate, sequence LIMIT ?2");
        prepare(claim_, "UPDATE jobs SET state = 1, attempts = attempts + 1, epoch = epoch + 1, gate = ?3 WHERE"
                        " sequence IN (SELECT sequence FROM jobs WHERE gate <= ?1 ORDER BY gate, sequence LIMIT ?2)");
        prepare(settle_, "UPDATE jobs SET state = 2, gate = NULL WHERE id = ?1 AND epoch = ?2 AND state = 1");
    }
    queue(const queue&) = delete;
    ~queue() {
        for (auto* const statement : {begin_, commit_, insert_, due_, claim_, settle_}) {
            sqlite3_finalize(statement);
        }
        sqlite3_close(db_);
    }

    void begin() { finish(begin_); }
    void commit() { finish(commit_); }

    void enqueue(const job& j) {
        sqlite3_bind_blob(insert_, 1, j.id.data(), 16, SQLITE_STATIC);
        sqlite3_bind_text(insert_, 2, j.topic.data(), static_cast<int>(j.topic.size()), SQLITE_STATIC);
        sqlite3_bind_blob(insert_, 3, j.payload.data(), static_cast<int>(j.payload.size()), SQLITE_STATIC);
        sqlite3_bind_int64(insert_, 4, j.due_at);
        finish(insert_);
    }

    void claim(std::vector<job>& into, std::size_t limit, std::int64_t now, std::int64_t lease) {
        into.clear();
        for (auto* const statement : {due_, claim_}) {
            sqlite3_bind_int64(statement, 1, now);
            sqlite3_bind_int64(statement, 2, static_cast<std::int64_t>(limit));
        }
        sqlite3_bind_int64(claim_, 3, now + lease);
        while (sqlite3_step(due_) == SQLITE_ROW) {
            auto& j = into.emplace_back();
            j.sequence = sqlite3_column_int64(due_, 0);
            std::copy_n(static_cast<const std::uint8_t*>(sqlite3_column_blob(due_, 1)), j.id.size(), j.id.begin());
            read(2, j.topic);
            read(3, j.payload);
            j.due_at = sqlite3_column_int64(due_, 4);
            j.attempts = sqlite3_column_int64(due_, 5);
            j.epoch = sqlite3_column_int64(due_, 6);
        }
        check(sqlite3_reset(due_));
        finish(claim_);
    }

    /// Returns whether the claim was still valid.
    bool settle(const job& j) {
        sqlite3_bind_blob(settle_, 1, j.id.data(), 16, SQLITE_STATIC);
        sqlite3_bind_int64(settle_, 2, j.epoch);
        finish(settle_);
        return sqlite3_changes(db_) == 1;
    }

  private:
    static void check(int rc) {
        if (rc != SQLITE_OK) {
            throw std::runtime_error(sqlite3_errstr(rc));
        }
    }
    void execute(const char* sql) { check(sqlite3_exec(db_, sql, nullptr, nullptr, nullptr)); }
    void prepare(sqlite3_stmt*& to, const char* sql) { check(sqlite3_prepare_v2(db_, sql, -1, &to, nullptr)); }
    static void finish(sqlite3_stmt* statement) {
        sqlite3_step(statement);
        check(sqlite3_reset(statement));
    }
    void read(int column, std::string& to) const {
        const auto* const bytes = static_cast<const char*>(sqlite3_column_blob(due_, column));
        to.assign(bytes, static_cast<std::size_t>(sqlite3_column_bytes(due_, column)));
    }

    sqlite3* db_ = nullptr;
    sqlite3_stmt *begin_{}, *commit_{}, *insert_{}, *due_{}, *claim_{}, *settle_{};
};

} // namespace bare
