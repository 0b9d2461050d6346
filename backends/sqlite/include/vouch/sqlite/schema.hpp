// SPDX-License-Identifier: MIT
// The tables of a store: created and migrated on request, or as text for a migration tool.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <sqlite3.h>

#include <vouch/sqlite/detail/migration.hpp>
#include <vouch/sqlite/detail/result_codes.hpp>
#include <vouch/sqlite/detail/schema_text.hpp>
#include <vouch/sqlite/prefix.hpp>

namespace vouch {
inline namespace v0 {
namespace sqlite {

/// The schema version of this library.
inline constexpr std::int64_t schema_version = static_cast<std::int64_t>(detail::migrations.size());

/// Creates the tables, or migrates older ones, in one transaction: the one that is open on the connection, or its own.
/// Throws `unsupported`, and changes nothing, if the tables are newer than this library. Throws `full` if memory runs
/// out; if even the rollback fails then, its transaction stays open and the caller must roll back.
inline void migrate(sqlite3* connection, std::string_view prefix = default_prefix) {
    detail::translate_bad_alloc([&] { detail::migrate(connection, prefix, detail::migrations); });
}

/// The statements that create all tables and indexes in an empty database, for a migration tool.
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
