// SPDX-License-Identifier: MIT
// A history of attempts in the same database: one row for each settled outcome, retries included. The row is written in
// the transaction that records the outcome, so both are stored or neither. `vouch show` prints the rows of an entry.
//
//   vouch::postgres::history_table history(store);
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

#include <libpq-fe.h>

#include <vouch/contract/attempt.hpp>
#include <vouch/contract/id.hpp>
#include <vouch/contract/time.hpp>
#include <vouch/postgres/detail/migration.hpp>
#include <vouch/postgres/detail/parameters.hpp>
#include <vouch/postgres/detail/rows.hpp>
#include <vouch/postgres/detail/run_with.hpp>
#include <vouch/postgres/detail/sqlstate.hpp>
#include <vouch/postgres/detail/table_names.hpp>
#include <vouch/postgres/prefix.hpp>
#include <vouch/postgres/store.hpp>

namespace vouch {
inline namespace v0 {
namespace postgres {

namespace detail {

[[nodiscard]] inline bool has_history(PGconn* connection, const table_names& names) {
    return is_in_catalog(connection,
                         "SELECT 1 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = '" +
                             names.schema + "' AND c.relname = '" + names.tables + "history'");
}

} // namespace detail

struct history_options {
    std::string prefix = std::string(default_prefix); ///< may differ from that of the store; its schema must exist
    duration keep = std::chrono::hours{24 * 7};       ///< rows older than this are removed by later appends
    std::uint32_t lines_max = 100;                    ///< rows of one entry; the newest are kept
};

/// A history hook for a runner or worker.
class history_table {
  public:
    /// Creates the table if it does not exist.
    explicit history_table(store& in, history_options how = {}) : how_(std::move(how)) {
        detail::translate_bad_alloc([&] {
            auto tx = in.begin();
            create(tx.connection());
            tx.commit();
        });
    }

    /// The statements that create the table, for a migration tool.
    [[nodiscard]] static std::string schema(std::string_view prefix = default_prefix) {
        return detail::table_names(prefix).in(R"(CREATE TABLE IF NOT EXISTS @history (
  id uuid NOT NULL,
  epoch bigint NOT NULL,
  what text COLLATE "C" NOT NULL,
  at bigint NOT NULL,
  claimed_at bigint NOT NULL,
  attempt bigint NOT NULL,
  worker text COLLATE "C" NOT NULL,
  error text COLLATE "C" NOT NULL,
  PRIMARY KEY (id, epoch)
);
CREATE INDEX IF NOT EXISTS #history_at ON @history (at);
)");
    }

    /// Appends a line. If it throws, the outcome is not stored either; the runner keeps it and settles it again later.
    void operator()(transaction& tx, const attempt_line& line) const {
        detail::translate_bad_alloc([&] {
            const detail::table_names names(how_.prefix);
            // An id can only be there with this epoch if its entry was purged and stored again.
            detail::run_with(tx.connection(),
                             names.in(R"(INSERT INTO @history (id, epoch, what, at, claimed_at, attempt, worker, error)
 VALUES ($1::uuid, $2::bigint, $3::text, $4::bigint, $5::bigint, $6::bigint, $7::text, $8::text)
 ON CONFLICT (id, epoch) DO UPDATE SET what = excluded.what, at = excluded.at, claimed_at = excluded.claimed_at,
 attempt = excluded.attempt, worker = excluded.worker, error = excluded.error)"),
                             "append to the history table",
                             detail::parameters(line.id, line.epoch, name_of(line.what), line.at, line.claimed_at,
                                                line.attempt, line.worker, line.error));
            if (line.epoch > how_.lines_max) {
                detail::run_with(
                    tx.connection(), names.in("DELETE FROM @history WHERE id = $1::uuid AND epoch <= $2::bigint"),
                    "shorten the history of an entry", detail::parameters(line.id, line.epoch - how_.lines_max));
            }
            // Two for one, so that the table shrinks after `keep` was made shorter. Rows that another worker removes are
            // passed over, so that none waits for another.
            detail::run_with(tx.connection(),
                             names.in(R"(DELETE FROM @history WHERE (id, epoch) IN (SELECT h.id, h.epoch FROM @history h
 WHERE h.at < $1::bigint ORDER BY h.at LIMIT 2 FOR UPDATE SKIP LOCKED))"),
                             "remove old rows of the history", detail::parameters(later(line.at, -how_.keep)));
        });
    }

  private:
    void create(PGconn* c) const {
        const detail::table_names names(how_.prefix);
        if (detail::has_history(c, names)) { // a role that works needs no right to create tables
            return;
        }
        // IF NOT EXISTS does not wait for another transaction that creates the same table: both would, and one would fail.
        detail::run_text(c, "SELECT pg_advisory_xact_lock(hashtextextended('" + names.channel() + "', 0))",
                         "create the history table");
        detail::run_script(c, schema(how_.prefix), "create the history table");
    }

    history_options how_;
};

/// The lines of an entry, oldest first; none if there is no history table.
[[nodiscard]] inline std::vector<attempt_line> history_of(PGconn* connection, const id& which,
                                                          std::string_view prefix = default_prefix) {
    return detail::translate_bad_alloc([&] {
        const detail::table_names names(prefix);
        std::vector<attempt_line> out;
        if (!detail::has_history(connection, names)) {
            return out;
        }
        const auto text = names.in(R"(SELECT h.id, h.epoch, h.at, h.claimed_at, h.attempt, h.worker, h.error, h.what
 FROM @history h WHERE h.id = $1::uuid ORDER BY h.epoch)");
        detail::run_with(connection, text, "read the history", detail::parameters(which)).each([&](detail::row one) {
            auto& line = out.emplace_back();
            std::string what;
            one.read(line.id, line.epoch, line.at, line.claimed_at, line.attempt, line.worker, line.error, what);
            for (const auto kind : all_attempt_kinds) {
                line.what = name_of(kind) == what ? kind : line.what;
            }
            detail::row::expect(name_of(line.what) == what,
                                "postgres: the tables are damaged: an attempt has an unknown outcome");
        });
        return out;
    });
}

} // namespace postgres
} // namespace v0
} // namespace vouch
