// SPDX-License-Identifier: MIT
// Creates and migrates the tables, and checks their version. The version is a row of `@meta`, because
// `PRAGMA user_version` belongs to the application.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <sqlite3.h>

#include <vouch/contract/error.hpp>
#include <vouch/sqlite/detail/result_codes.hpp>
#include <vouch/sqlite/detail/schema_text.hpp>
#include <vouch/sqlite/detail/statement.hpp>
#include <vouch/sqlite/prefix.hpp>

namespace vouch {
inline namespace v0 {
namespace sqlite::detail {

inline void execute(sqlite3* db, const std::string& sql, std::string_view doing) {
    const int rc = sqlite3_exec(db, sql.c_str(), nullptr, nullptr, nullptr);
    if (rc != SQLITE_OK) {
        throw error_of(sqlite3_extended_errcode(db), doing);
    }
}

/// Throws `unsupported` unless the database is encoded in UTF-8. In any other encoding SQLite would convert names, and
/// change those that are not valid UTF-8.
inline void expect_utf8(sqlite3* db) {
    const statement encoding(db, "PRAGMA encoding");
    run row(encoding);
    if (!row.step() || row.bytes(0) != "UTF-8") {
        throw error(error_kind::unsupported,
                    "sqlite: the database is encoded in UTF-16, which would change names; create it with PRAGMA "
                    "encoding = 'UTF-8'");
    }
}

/// Returns 0 if there are no tables.
[[nodiscard]] inline std::int64_t stored_version(sqlite3* db, std::string_view prefix) {
    const auto meta = with_prefix("@meta", prefix);
    const statement exists(db, "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?1 COLLATE NOCASE");
    if (!run(exists).bind(meta).step()) {
        return 0;
    }
    const statement version(db, with_prefix("SELECT value FROM @meta WHERE name = 'schema_version'", prefix));
    run row(version);
    if (!row.step()) {
        throw error(error_kind::corrupt, "sqlite: " + meta + " has no schema_version");
    }
    constexpr std::int64_t least = 0;
    return row.integer_between(0, least);
}

inline void refuse_newer(std::int64_t stored, std::size_t known) {
    if (stored > static_cast<std::int64_t>(known)) {
        throw error(error_kind::unsupported, "sqlite: the tables have schema version " + std::to_string(stored) +
                                                 "; this library supports up to version " + std::to_string(known) +
                                                 " and has changed nothing. Use a newer version of vouch");
    }
}

/// Runs the steps that the database does not have yet, in one transaction: the open one, or its own.
inline void migrate(sqlite3* db, std::string_view prefix, std::span<const std::string_view> steps) {
    validate_prefix(prefix);
    expect_utf8(db);
    const auto stored = stored_version(db, prefix);
    refuse_newer(stored, steps.size());
    if (stored == static_cast<std::int64_t>(steps.size())) {
        return; // without taking the write lock
    }
    const bool own = sqlite3_get_autocommit(db) != 0;
    execute(db, own ? "BEGIN IMMEDIATE" : "SAVEPOINT vouch_migrate", "begin to migrate");
    try {
        const auto from = stored_version(db, prefix); // again, because another process may have migrated meanwhile
        refuse_newer(from, steps.size());
        for (auto i = static_cast<std::size_t>(from); i < steps.size(); ++i) {
            execute(db, with_prefix(steps[i], prefix), "migrate to schema version " + std::to_string(i + 1));
        }
        execute(db, record_version(prefix, steps.size()), "record the schema version");
        execute(db, own ? "COMMIT" : "RELEASE vouch_migrate", "commit the migration");
    } catch (...) {
        if (sqlite3_get_autocommit(db) == 0) {
            sqlite3_exec(db, own ? "ROLLBACK" : "ROLLBACK TO vouch_migrate; RELEASE vouch_migrate", nullptr, nullptr,
                         nullptr);
        }
        throw;
    }
}

/// Throws `unsupported` unless the tables exist in the current version.
inline void expect_schema(sqlite3* db, std::string_view prefix) {
    validate_prefix(prefix);
    expect_utf8(db);
    const auto stored = stored_version(db, prefix);
    refuse_newer(stored, migrations.size());
    constexpr auto current = static_cast<std::int64_t>(migrations.size());
    if (stored < current) {
        throw error(error_kind::unsupported,
                    (stored == 0 ? "sqlite: there are no tables with the prefix " + std::string(prefix)
                                 : "sqlite: the tables have schema version " + std::to_string(stored) +
                                       ", this library needs version " + std::to_string(current)) +
                        "; call vouch::sqlite::migrate");
    }
}

} // namespace sqlite::detail
} // namespace v0
} // namespace vouch
