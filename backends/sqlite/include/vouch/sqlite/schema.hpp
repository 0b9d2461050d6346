// SPDX-License-Identifier: MIT
// The tables and indexes, as text for a migration tool or carried out on request; `backends/README.md` explains every
// column and index. The version is a row of our own: `PRAGMA user_version` belongs to the application.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <sqlite3.h>

#include <vouch/contract/error.hpp>
#include <vouch/sqlite/detail/result_codes.hpp>
#include <vouch/sqlite/detail/statement.hpp>

namespace vouch {
inline namespace v0 {
namespace sqlite {

inline constexpr std::string_view default_prefix = "vouch_";

namespace detail {

/// Each brings the tables from the version of its index to the next; `@` stands for the prefix. Never change one that
/// was released: append.
inline constexpr std::array<std::string_view, 1> migrations{R"(CREATE TABLE @queues (
  number INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE
);
CREATE TABLE @entries (
  sequence INTEGER PRIMARY KEY,
  shelf INTEGER NOT NULL,
  gate INTEGER,
  state INTEGER NOT NULL,
  attempts INTEGER NOT NULL,
  lapses INTEGER NOT NULL,
  failures INTEGER NOT NULL,
  epoch INTEGER NOT NULL,
  due_at INTEGER NOT NULL,
  woken INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  last_attempt_at INTEGER,
  worker TEXT NOT NULL,
  last_error TEXT NOT NULL,
  id BLOB NOT NULL,
  topic TEXT NOT NULL,
  tied INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  attempts_max INTEGER NOT NULL,
  expires_at INTEGER,
  trail BLOB,
  headers BLOB,
  progress BLOB,
  result BLOB,
  payload BLOB
);
CREATE UNIQUE INDEX @entries_id ON @entries (id);
CREATE INDEX @entries_gate ON @entries (shelf, gate);
CREATE TABLE @dead (
  queue INTEGER NOT NULL,
  sequence INTEGER NOT NULL,
  PRIMARY KEY (queue, sequence)
) WITHOUT ROWID;
CREATE TABLE @payloads (
  sequence INTEGER PRIMARY KEY,
  payload BLOB NOT NULL
);
CREATE TABLE @relations (
  sequence INTEGER PRIMARY KEY,
  queue INTEGER NOT NULL,
  "key" TEXT,
  generation INTEGER NOT NULL,
  "group" TEXT,
  lane TEXT,
  is_live INTEGER NOT NULL,
  parent BLOB,
  predecessor BLOB,
  replaces INTEGER
);
CREATE UNIQUE INDEX @relations_key ON @relations (queue, "key", generation) WHERE "key" IS NOT NULL;
CREATE INDEX @relations_group ON @relations ("group") WHERE "group" IS NOT NULL;
CREATE INDEX @relations_lane ON @relations (queue, lane) WHERE lane IS NOT NULL AND is_live = 1;
CREATE INDEX @relations_parent ON @relations (parent) WHERE parent IS NOT NULL;
CREATE INDEX @relations_live_child ON @relations (parent) WHERE parent IS NOT NULL AND is_live = 1;
CREATE UNIQUE INDEX @relations_replaces ON @relations (replaces) WHERE replaces IS NOT NULL;
CREATE TABLE @groups (
  name TEXT PRIMARY KEY,
  members INTEGER NOT NULL,
  live INTEGER NOT NULL,
  unfinished INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE @meta (
  name TEXT PRIMARY KEY,
  value INTEGER NOT NULL
) WITHOUT ROWID;
INSERT INTO @meta VALUES ('sequence_floor', 0);
)"};

/// `text` with the prefix in place of every `@`. Prefixes are validated; nothing else is ever put into SQL.
[[nodiscard]] inline std::string with_prefix(std::string_view text, std::string_view prefix) {
    std::string out;
    out.reserve(text.size() + 16 * prefix.size());
    for (const char c : text) {
        if (c == '@') {
            out += prefix;
        } else {
            out += c;
        }
    }
    return out;
}

} // namespace detail

/// The version these headers work with.
inline constexpr std::int64_t schema_version = static_cast<std::int64_t>(detail::migrations.size());

/// Throws `invalid_argument` unless the prefix is 1 to 40 letters, digits and underscores, beginning with no digit and
/// not with `sqlite_`, which SQLite keeps for itself.
inline void validate_prefix(std::string_view prefix) {
    const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
    const auto fits = [&](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_';
    };
    if (prefix.empty() || prefix.size() > 40 || is_digit(prefix.front()) ||
        !std::all_of(prefix.begin(), prefix.end(), fits)) {
        throw error(error_kind::invalid_argument, "sqlite: options: prefix must be 1 to 40 letters, digits and "
                                                  "underscores, the first no digit; it has " +
                                                      std::to_string(prefix.size()) + " bytes");
    }
    constexpr std::string_view reserved = "sqlite_";
    const auto same = [](char a, char b) { return (a | 0x20) == (b | 0x20); };
    if (prefix.size() >= reserved.size() && std::equal(reserved.begin(), reserved.end() - 1, prefix.begin(), same) &&
        prefix[reserved.size() - 1] == '_') {
        throw error(error_kind::invalid_argument, "sqlite: options: prefix must not begin with sqlite_");
    }
}

namespace detail {

[[nodiscard]] inline std::string record_version(std::string_view prefix, std::size_t version) {
    return with_prefix("INSERT INTO @meta VALUES ('schema_version', " + std::to_string(version) +
                           ") ON CONFLICT (name) DO UPDATE SET value = excluded.value;\n",
                       prefix);
}

inline void execute(sqlite3* db, const std::string& sql, std::string_view doing) {
    const int rc = sqlite3_exec(db, sql.c_str(), nullptr, nullptr, nullptr);
    if (rc != SQLITE_OK) {
        throw error_of(sqlite3_extended_errcode(db), doing);
    }
}

/// SQLite would store names in the database's encoding, and change those that are not valid in it.
inline void expect_utf8(sqlite3* db) {
    const statement encoding(db, "PRAGMA encoding");
    run reading(encoding);
    if (!reading.step() || reading.bytes(0) != "UTF-8") {
        throw error(error_kind::unsupported,
                    "sqlite: the database is encoded in UTF-16, which would change names; only "
                    "a database in UTF-8 can hold the tables");
    }
}

/// 0 if there are no tables.
[[nodiscard]] inline std::int64_t stored_version(sqlite3* db, std::string_view prefix) {
    const auto meta = with_prefix("@meta", prefix);
    const statement exists(db, "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?1 COLLATE NOCASE");
    if (!run(exists).bind(meta).step()) {
        return 0;
    }
    const statement version(db, with_prefix("SELECT value FROM @meta WHERE name = 'schema_version'", prefix));
    run reading(version);
    if (!reading.step()) {
        throw error(error_kind::corrupt, "sqlite: " + meta + " has no schema_version");
    }
    constexpr std::int64_t least = 0;
    return reading.integer_between(0, least);
}

inline void refuse_newer(std::int64_t stored, std::size_t known) {
    if (stored > static_cast<std::int64_t>(known)) {
        throw error(error_kind::unsupported, "sqlite: the tables are of schema version " + std::to_string(stored) +
                                                 ", newer than " + std::to_string(known) +
                                                 ", the newest this library knows; nothing was touched");
    }
}

/// Carries out what is missing of `steps`, in one transaction: the one that is open, or its own.
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
        const auto from = stored_version(db, prefix); // another process may have been first
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

/// Throws unless the tables are there, in the version these headers work with.
inline void expect_schema(sqlite3* db, std::string_view prefix) {
    validate_prefix(prefix);
    expect_utf8(db);
    const auto stored = stored_version(db, prefix);
    refuse_newer(stored, migrations.size());
    if (stored < schema_version) {
        throw error(error_kind::unsupported,
                    (stored == 0 ? "sqlite: there are no tables with the prefix " + std::string(prefix)
                                 : "sqlite: the tables are of schema version " + std::to_string(stored) +
                                       ", this library needs " + std::to_string(schema_version)) +
                        "; migrate() brings them up to date");
    }
}

} // namespace detail

/// Creates the tables, or brings older ones up to date, in one transaction: the one that is open on the connection, or
/// its own. Tables newer than the library are refused (`unsupported`) and not touched. If memory is so short that not
/// even a rollback can be carried out, its own transaction stays open, and `full` is thrown: roll back when there is
/// memory.
inline void migrate(sqlite3* connection, std::string_view prefix = default_prefix) {
    detail::in_memory([&] { detail::migrate(connection, prefix, detail::migrations); });
}

/// The statements that create everything in an empty database, for a migration tool.
[[nodiscard]] inline std::string schema(std::string_view prefix = default_prefix) {
    validate_prefix(prefix);
    std::string out;
    for (const auto step : detail::migrations) {
        out += detail::with_prefix(step, prefix);
    }
    return out + detail::record_version(prefix, detail::migrations.size());
}

} // namespace sqlite
} // namespace v0
} // namespace vouch
