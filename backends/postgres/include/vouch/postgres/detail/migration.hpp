// SPDX-License-Identifier: MIT
// Creates and migrates the tables, and checks their version, on a connection outside pipeline mode. The version is a row
// of `@meta`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <libpq-fe.h>

#include <vouch/contract/error.hpp>
#include <vouch/postgres/detail/connect.hpp>
#include <vouch/postgres/detail/rows.hpp>
#include <vouch/postgres/detail/schema_text.hpp>
#include <vouch/postgres/detail/sqlstate.hpp>
#include <vouch/postgres/detail/table_names.hpp>

namespace vouch {
inline namespace v0 {
namespace postgres::detail {

/// Several statements without answers.
inline void run_script(PGconn* c, const std::string& text, std::string_view doing) {
    const result_ptr result(PQexec(c, text.c_str()));
    if (PQresultStatus(result.get()) != PGRES_COMMAND_OK && PQresultStatus(result.get()) != PGRES_TUPLES_OK) {
        throw error_of(sqlstate_of(result.get()), doing);
    }
}

/// Whether a query about the catalog finds something. Read as a table: `to_regclass` may answer from a cache that is older
/// than the lock under which it is asked.
[[nodiscard]] inline bool is_in_catalog(PGconn* c, const std::string& query) {
    bool exists = false;
    run_text(c, "SELECT EXISTS (" + query + ")", "read the schema version")[0].read(exists);
    return exists;
}

/// Returns 0 if there are no tables.
[[nodiscard]] inline std::int64_t stored_version(PGconn* c, const table_names& names) {
    const bool exists = is_in_catalog(c, "SELECT 1 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE "
                                         "n.nspname = '" +
                                             names.schema + "' AND c.relname = '" + names.tables + "meta'");
    if (!exists) {
        return 0;
    }
    const auto found =
        run_text(c, names.in("SELECT value FROM @meta WHERE name = 'schema_version'"), "read the schema version");
    row::expect(found.size() == 1, "postgres: the tables are damaged: there is no schema_version");
    std::int64_t version = 0;
    found[0].read(version);
    return version;
}

inline void refuse_newer(std::int64_t stored, std::size_t known) {
    if (stored > static_cast<std::int64_t>(known)) {
        throw error(error_kind::unsupported, "postgres: the tables have schema version " + std::to_string(stored) +
                                                 "; this library supports up to version " + std::to_string(known) +
                                                 " and has changed nothing. Use a newer version of vouch");
    }
}

/// Runs the steps from `from` on, inside a transaction.
inline void run_steps(PGconn* c, const table_names& names, std::span<const std::string_view> steps) {
    // Held until the transaction ends, so that two processes do not create the same tables.
    const auto lock = "SELECT pg_advisory_xact_lock(hashtextextended('" + names.channel() + "', 0))";
    run_text(c, lock, "begin to migrate");
    const auto from = stored_version(c, names); // again, because another process may have migrated meanwhile
    refuse_newer(from, steps.size());
    if (!is_in_catalog(c, "SELECT 1 FROM pg_namespace WHERE nspname = '" + names.schema + "'")) {
        run_script(c, create_schema(names), "create the schema");
    }
    for (auto i = static_cast<std::size_t>(from); i < steps.size(); ++i) {
        run_script(c, names.in(steps[i]), "migrate to schema version " + std::to_string(i + 1));
    }
    run_script(c, record_version(names, steps.size()), "record the schema version");
}

/// Runs the steps that the database does not have yet, in one transaction: the open one, or its own.
inline void migrate(PGconn* c, const table_names& names, std::span<const std::string_view> steps) {
    const auto stored = stored_version(c, names);
    refuse_newer(stored, steps.size());
    if (stored == static_cast<std::int64_t>(steps.size())) {
        return;
    }
    const bool is_own = PQtransactionStatus(c) == PQTRANS_IDLE;
    run_script(c, is_own ? "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE" : "SAVEPOINT vouch_migrate",
               "begin to migrate");
    try {
        run_steps(c, names, steps);
        run_script(c, is_own ? "COMMIT" : "RELEASE SAVEPOINT vouch_migrate", "commit the migration");
    } catch (...) {
        const result_ptr undone(
            PQexec(c, is_own ? "ROLLBACK" : "ROLLBACK TO SAVEPOINT vouch_migrate; RELEASE SAVEPOINT vouch_migrate"));
        throw;
    }
}

/// Throws `unsupported` unless the tables exist in the current version.
inline void expect_schema(PGconn* c, const table_names& names) {
    const auto stored = stored_version(c, names);
    refuse_newer(stored, migrations.size());
    constexpr auto current = static_cast<std::int64_t>(migrations.size());
    if (stored < current) {
        throw error(error_kind::unsupported,
                    (stored == 0 ? "postgres: there are no tables with the prefix " + names.schema + '.' + names.tables
                                 : "postgres: the tables have schema version " + std::to_string(stored) +
                                       ", this library needs version " + std::to_string(current)) +
                        "; call vouch::postgres::migrate");
    }
}

} // namespace postgres::detail
} // namespace v0
} // namespace vouch
