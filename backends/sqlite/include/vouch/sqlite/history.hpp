// SPDX-License-Identifier: MIT
// A history of attempts in the same file: one row for each settled outcome, retries included. The row is written in the
// transaction that records the outcome, so both are stored or neither. `vouch show` prints the rows of an entry.
//
//   vouch::sqlite::history_table history(store);
//   worker.history(history);
//
// The table stays bounded: an append removes the rows that are too many or too old. Any number of threads may use one
// object.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sqlite3.h>

#include <vouch/contract/attempt.hpp>
#include <vouch/contract/error.hpp>
#include <vouch/contract/id.hpp>
#include <vouch/contract/time.hpp>
#include <vouch/sqlite/detail/migration.hpp>
#include <vouch/sqlite/detail/schema_text.hpp>
#include <vouch/sqlite/detail/statement.hpp>
#include <vouch/sqlite/prefix.hpp>
#include <vouch/sqlite/store.hpp>

namespace vouch {
inline namespace v0 {
namespace sqlite {

struct history_options {
    std::string prefix = std::string(default_prefix);
    duration keep = std::chrono::hours{24 * 7}; ///< rows older than this are removed by later appends
    std::uint32_t lines_max = 100;              ///< rows of one entry; the newest are kept
};

/// A history hook for a runner or worker.
class history_table {
  public:
    /// Creates the table if it does not exist.
    explicit history_table(store& in, history_options how = {}) : how_(std::move(how)) {
        const auto sql = schema(how_.prefix);
        auto tx = in.begin();
        detail::execute(tx.connection(), sql, "create the history table");
        tx.commit();
    }

    /// The statements that create the table, for a migration tool.
    [[nodiscard]] static std::string schema(std::string_view prefix = default_prefix) {
        validate_prefix(prefix);
        return detail::with_prefix(R"(CREATE TABLE IF NOT EXISTS @history (
  id BLOB NOT NULL,
  epoch INTEGER NOT NULL,
  what TEXT NOT NULL,
  at INTEGER NOT NULL,
  claimed_at INTEGER NOT NULL,
  attempt INTEGER NOT NULL,
  worker TEXT NOT NULL,
  error TEXT NOT NULL,
  PRIMARY KEY (id, epoch)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS @history_at ON @history (at);
)",
                                   prefix);
    }

    /// Appends a line. If it throws, the outcome is not stored either; the runner keeps it and settles it again later.
    void operator()(transaction& tx, const attempt_line& line) const {
        // An id can only be there with this epoch if its entry was purged and stored again.
        const detail::statement insert(
            tx.connection(),
            detail::with_prefix(
                R"(INSERT OR REPLACE INTO @history (id, epoch, what, at, claimed_at, attempt, worker, error)
 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8))",
                how_.prefix));
        detail::run(insert)
            .bind(line.id, line.epoch, name_of(line.what), line.at, line.claimed_at, line.attempt, line.worker,
                  line.error)
            .finish();
        const detail::statement surplus(
            tx.connection(), detail::with_prefix("DELETE FROM @history WHERE id = ?1 AND epoch <= ?2", how_.prefix));
        if (line.epoch > how_.lines_max) {
            detail::run(surplus).bind(line.id, line.epoch - how_.lines_max).finish();
        }
        // Two for one, so that the table shrinks after `keep` was made shorter.
        const detail::statement old(
            tx.connection(),
            detail::with_prefix(
                "DELETE FROM @history WHERE (id, epoch) IN (SELECT id, epoch FROM @history WHERE at < ?1"
                " ORDER BY at LIMIT 2)",
                how_.prefix));
        detail::run(old).bind(later(line.at, -how_.keep)).finish();
    }

  private:
    history_options how_;
};

/// The lines of an entry, oldest first; none if there is no history table.
[[nodiscard]] inline std::vector<attempt_line> history_of(sqlite3* connection, const id& which,
                                                          std::string_view prefix = default_prefix) {
    validate_prefix(prefix);
    const detail::statement exists(connection,
                                   "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?1 COLLATE NOCASE");
    const auto table = detail::with_prefix("@history", prefix);
    if (!detail::run(exists).bind(table).step()) {
        return {};
    }
    const detail::statement lines(connection, detail::with_prefix(R"(SELECT id, epoch, at, claimed_at, attempt, worker,
 error, what FROM @history WHERE id = ?1 ORDER BY epoch)",
                                                                  prefix));
    std::vector<attempt_line> out;
    detail::run row(lines);
    row.bind(which);
    while (row.step()) {
        auto& line = out.emplace_back();
        std::string what;
        row.read_all(line.id, line.epoch, line.at, line.claimed_at, line.attempt, line.worker, line.error, what);
        for (const auto kind : all_attempt_kinds) {
            line.what = name_of(kind) == what ? kind : line.what;
        }
        detail::run::expect(name_of(line.what) == what,
                            "sqlite: the file is damaged: an attempt has an unknown outcome");
    }
    return out;
}

} // namespace sqlite
} // namespace v0
} // namespace vouch
