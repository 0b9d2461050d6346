// SPDX-License-Identifier: MIT
// Hand-written statements, prepared once, on the store's own table: they show what the schema alone costs. Claims the
// first due entries under a lease and settles by id and epoch. Writes every column as the store does, but supports only
// entries without key, group, lane and parent. For one thread.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include <sqlite3.h>

namespace same_schema {

struct job {
    std::array<std::uint8_t, 16> id{};
    std::string topic{};
    std::string payload{};
    std::string progress{};
    std::int64_t due_at = 0; // in microseconds, like all times here
    std::int64_t sequence = 0;
    std::int64_t attempts = 0;
    std::int64_t epoch = 0;
};

class queue {
  public:
    /// Requires that the file has the tables with the prefix `vouch_`.
    queue(const std::string& path, bool full) {
        check(sqlite3_open(path.c_str(), &db_));
        execute("PRAGMA journal_mode = WAL");
        execute(full ? "PRAGMA synchronous = FULL" : "PRAGMA synchronous = NORMAL");
        prepare(begin_, "BEGIN IMMEDIATE");
        prepare(commit_, "COMMIT");
        prepare(due_,
                "SELECT sequence, id, topic, payload, progress, due_at, attempts + 1, epoch + 1 FROM vouch_entries"
                " WHERE partition = (SELECT number * 4 FROM vouch_queues WHERE name = ?1) AND gate <= ?2"
                " ORDER BY gate, sequence LIMIT ?3");
        prepare(claim_, "UPDATE vouch_entries SET state = 2, attempts = attempts + 1, epoch = epoch + 1, gate = ?4,"
                        " woken = 0, worker = ?5, updated_at = ?2, last_attempt_at = ?2"
                        " WHERE sequence IN (SELECT sequence FROM vouch_entries"
                        " WHERE partition = (SELECT number * 4 FROM vouch_queues WHERE name = ?1) AND gate <= ?2"
                        " ORDER BY gate, sequence LIMIT ?3)");
        prepare(settle_, "UPDATE vouch_entries SET state = 3, partition = partition + 1, gate = ?3, result = x'',"
                         " updated_at = ?3 WHERE id = ?1 AND epoch = ?2 AND state = 2");
    }
    queue(const queue&) = delete;
    queue& operator=(const queue&) = delete;
    ~queue() {
        for (auto* const statement : {begin_, commit_, due_, claim_, settle_}) {
            sqlite3_finalize(statement);
        }
        sqlite3_close(db_);
    }

    void begin() { finish(begin_); }
    void commit() { finish(commit_); }

    void claim(std::vector<job>& into, std::size_t limit, std::int64_t now, std::int64_t lease) {
        into.clear();
        for (auto* const statement : {due_, claim_}) {
            sqlite3_bind_text(statement, 1, "mail", -1, SQLITE_STATIC);
            sqlite3_bind_int64(statement, 2, now);
            sqlite3_bind_int64(statement, 3, static_cast<std::int64_t>(limit));
        }
        sqlite3_bind_int64(claim_, 4, now + lease);
        sqlite3_bind_text(claim_, 5, "worker-1", -1, SQLITE_STATIC);
        while (sqlite3_step(due_) == SQLITE_ROW) {
            auto& j = into.emplace_back();
            j.sequence = sqlite3_column_int64(due_, 0);
            std::copy_n(static_cast<const std::uint8_t*>(sqlite3_column_blob(due_, 1)), j.id.size(), j.id.begin());
            read(2, j.topic);
            read(3, j.payload);
            read(4, j.progress);
            j.due_at = sqlite3_column_int64(due_, 5);
            j.attempts = sqlite3_column_int64(due_, 6);
            j.epoch = sqlite3_column_int64(due_, 7);
        }
        check(sqlite3_reset(due_));
        finish(claim_);
    }

    /// Returns whether the claim was still valid.
    bool settle(const job& j, std::int64_t now) {
        sqlite3_bind_blob(settle_, 1, j.id.data(), static_cast<int>(j.id.size()), SQLITE_STATIC);
        sqlite3_bind_int64(settle_, 2, j.epoch);
        sqlite3_bind_int64(settle_, 3, now);
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
        to.assign(bytes == nullptr ? "" : bytes, static_cast<std::size_t>(sqlite3_column_bytes(due_, column)));
    }

    sqlite3* db_ = nullptr;
    sqlite3_stmt *begin_{}, *commit_{}, *due_{}, *claim_{}, *settle_{};
};

} // namespace same_schema
