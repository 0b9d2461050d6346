// SPDX-License-Identifier: MIT
// An audit trail in the same database: one row for each ended entry and each completed group. The row is written in the
// transaction that records the outcome, so both are stored or neither.
//
//   vouch::postgres::audit_table audit(store);
//   worker.audit(audit);
//
// Rows are only appended; removing them is up to the application. Any number of threads may use one object.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include <vouch/postgres/detail/migration.hpp>
#include <vouch/postgres/detail/parameters.hpp>
#include <vouch/postgres/detail/run_with.hpp>
#include <vouch/postgres/detail/sqlstate.hpp>
#include <vouch/postgres/detail/table_names.hpp>
#include <vouch/postgres/prefix.hpp>
#include <vouch/postgres/store.hpp>

namespace vouch {
inline namespace v0 {
namespace postgres {

/// An audit hook for a runner or worker.
class audit_table {
  public:
    /// Creates the table if it does not exist. The prefix may differ from that of the store; its schema must exist.
    explicit audit_table(store& in, std::string prefix = std::string(default_prefix)) : prefix_(std::move(prefix)) {
        detail::translate_bad_alloc([&] {
            auto tx = in.begin();
            create(tx.connection());
            tx.commit();
        });
    }

    /// The statement that creates the table, for a migration tool.
    [[nodiscard]] static std::string schema(std::string_view prefix = default_prefix) {
        return detail::table_names(prefix).in(R"(CREATE TABLE IF NOT EXISTS @audit (
  number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at bigint NOT NULL,
  what text COLLATE "C" NOT NULL,
  id uuid NOT NULL,
  queue text COLLATE "C" NOT NULL,
  topic text COLLATE "C" NOT NULL,
  "group" text COLLATE "C" NOT NULL,
  worker text COLLATE "C" NOT NULL,
  error text COLLATE "C" NOT NULL,
  attempts bigint NOT NULL
);
)");
    }

    /// Appends a `vouch::audit_line`. If it throws, the outcome is not stored either; the runner keeps it and settles it
    /// again later.
    template <class Line>
    void operator()(transaction& tx, const Line& line) const {
        detail::translate_bad_alloc([&] {
            const auto text = detail::table_names(prefix_).in(
                R"(INSERT INTO @audit (at, what, id, queue, topic, "group", worker, error, attempts)
 VALUES ($1::bigint, $2::text, $3::uuid, $4::text, $5::text, $6::text, $7::text, $8::text, $9::bigint))");
            detail::run_with(tx.connection(), text, "append to the audit table",
                             detail::parameters(line.at, name_of(line.what), line.id, line.queue, line.topic,
                                                line.group, line.worker, line.error, line.attempts));
        });
    }

  private:
    void create(PGconn* c) const {
        const detail::table_names names(prefix_);
        const auto exists = [&] {
            return detail::is_in_catalog(
                c, "SELECT 1 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = '" +
                       names.schema + "' AND c.relname = '" + names.tables + "audit'");
        };
        if (exists()) { // a role that works needs no right to create tables
            return;
        }
        // IF NOT EXISTS does not wait for another transaction that creates the same table: both would, and one would fail.
        detail::run_text(c, "SELECT pg_advisory_xact_lock(hashtextextended('" + names.channel() + "', 0))",
                         "create the audit table");
        detail::run_script(c, schema(prefix_), "create the audit table");
    }

    std::string prefix_;
};

} // namespace postgres
} // namespace v0
} // namespace vouch
