// SPDX-License-Identifier: MIT
// An audit trail in the same file: one row for each ended entry and each completed group. The row is written in the
// transaction that records the outcome, so both are stored or neither.
//
//   vouch::sqlite::audit_table audit(store);
//   worker.audit(audit);
//
// Rows are only appended; removing them is up to the application. Any number of threads may use one object.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include <sqlite3.h>

#include <vouch/sqlite/detail/migration.hpp>
#include <vouch/sqlite/detail/schema_text.hpp>
#include <vouch/sqlite/detail/statement.hpp>
#include <vouch/sqlite/prefix.hpp>
#include <vouch/sqlite/store.hpp>

namespace vouch {
inline namespace v0 {
namespace sqlite {

/// An audit hook for a runner or worker.
class audit_table {
  public:
    /// Creates the table if it does not exist.
    explicit audit_table(store& in, std::string prefix = std::string(default_prefix)) : prefix_(std::move(prefix)) {
        const auto sql = schema(prefix_);
        auto tx = in.begin();
        detail::execute(tx.connection(), sql, "create the audit table");
        tx.commit();
    }

    /// The statement that creates the table, for a migration tool.
    [[nodiscard]] static std::string schema(std::string_view prefix = default_prefix) {
        validate_prefix(prefix);
        return detail::with_prefix(R"(CREATE TABLE IF NOT EXISTS @audit (
  number INTEGER PRIMARY KEY,
  at INTEGER NOT NULL,
  what TEXT NOT NULL,
  id BLOB NOT NULL,
  queue TEXT NOT NULL,
  topic TEXT NOT NULL,
  "group" TEXT NOT NULL,
  worker TEXT NOT NULL,
  error TEXT NOT NULL,
  attempts INTEGER NOT NULL
);
)",
                                   prefix);
    }

    /// Appends a `vouch::audit_line`. If it throws, the outcome is not stored either; the runner keeps it and settles it
    /// again later.
    template <class Line>
    void operator()(transaction& tx, const Line& line) const {
        const detail::statement insert(
            tx.connection(),
            detail::with_prefix(R"(INSERT INTO @audit (at, what, id, queue, topic, "group", worker, error, attempts)
                                   VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9))",
                                prefix_));
        detail::run(insert)
            .bind(line.at, name_of(line.what), line.id, line.queue, line.topic, line.group, line.worker, line.error,
                  line.attempts)
            .finish();
    }

  private:
    std::string prefix_;
};

} // namespace sqlite
} // namespace v0
} // namespace vouch
