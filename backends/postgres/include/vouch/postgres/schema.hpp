// SPDX-License-Identifier: MIT
// The tables of a store: created and migrated on request, or as text for a migration tool.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <libpq-fe.h>

#include <vouch/postgres/detail/migration.hpp>
#include <vouch/postgres/detail/schema_text.hpp>
#include <vouch/postgres/detail/sqlstate.hpp>
#include <vouch/postgres/detail/table_names.hpp>
#include <vouch/postgres/prefix.hpp>

namespace vouch {
inline namespace v0 {
namespace postgres {

/// The schema version of this library.
inline constexpr std::int64_t schema_version = static_cast<std::int64_t>(detail::migrations.size());

/// Creates the schema and the tables, or migrates older tables, in one transaction: the one that is open on the
/// connection, or its own. Throws `unsupported`, and changes nothing, if the tables are newer than this library.
inline void migrate(PGconn* connection, std::string_view prefix = default_prefix) {
    detail::translate_bad_alloc([&] {
        const detail::table_names names(prefix);
        detail::expect_usable(connection);
        detail::migrate(connection, names, detail::migrations);
    });
}

/// The statements that create the schema, all tables and indexes in an empty database, for a migration tool.
[[nodiscard]] inline std::string schema(std::string_view prefix = default_prefix) {
    const detail::table_names names(prefix);
    std::string out = detail::create_schema(names);
    for (const auto step : detail::migrations) {
        out += names.in(step);
    }
    return out + detail::record_version(names, detail::migrations.size());
}

} // namespace postgres
} // namespace v0
} // namespace vouch
