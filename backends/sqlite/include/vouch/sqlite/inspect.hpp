// SPDX-License-Identifier: MIT
// Questions to a database that are not part of the contract: its schema version and its queues. Each function runs on a
// connection of the caller and changes nothing.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sqlite3.h>

#include <vouch/contract/state.hpp>
#include <vouch/sqlite/detail/migration.hpp>
#include <vouch/sqlite/detail/schema_text.hpp>
#include <vouch/sqlite/detail/statement.hpp>
#include <vouch/sqlite/prefix.hpp>

namespace vouch {
inline namespace v0 {
namespace sqlite {

/// The schema version of the tables with this prefix; nothing if there are no tables. It may differ from
/// `schema_version`.
[[nodiscard]] inline std::optional<std::int64_t> stored_schema_version(sqlite3* connection,
                                                                       std::string_view prefix = default_prefix) {
    validate_prefix(prefix);
    const detail::statement exists(connection,
                                   "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?1 COLLATE NOCASE");
    const auto meta = detail::with_prefix("@meta", prefix);
    if (!detail::run(exists).bind(meta).step()) {
        return std::nullopt;
    }
    return detail::stored_version(connection, prefix);
}

/// The names of all queues that have an entry, sorted.
[[nodiscard]] inline std::vector<std::string> queue_names(sqlite3* connection,
                                                          std::string_view prefix = default_prefix) {
    validate_prefix(prefix);
    const detail::statement names(connection, detail::with_prefix(R"(SELECT name FROM @queues
 WHERE EXISTS (SELECT 1 FROM @entries WHERE partition BETWEEN number * 4 AND number * 4 + 3) ORDER BY name)",
                                                                  prefix));
    std::vector<std::string> out;
    detail::run row(names);
    while (row.step()) {
        out.emplace_back(row.bytes(0));
    }
    return out;
}

/// Entries by queue and state. Reads only columns that every schema version has, so that it works with tables of any
/// version. Reads every row.
[[nodiscard]] inline std::map<std::string, state_counts>
counts_of_any_schema(sqlite3* connection, std::string_view prefix = default_prefix) {
    validate_prefix(prefix);
    const detail::statement counts(connection, detail::with_prefix(R"(SELECT name, state, count(*)
 FROM @entries JOIN @queues ON number = partition >> 2 GROUP BY name, state)",
                                                                   prefix));
    std::map<std::string, state_counts> out;
    detail::run row(counts);
    while (row.step()) {
        std::string queue;
        auto which = state::pending;
        std::uint64_t number = 0;
        row.read_all(queue, which, number);
        out[queue][which] += number;
    }
    return out;
}

} // namespace sqlite
} // namespace v0
} // namespace vouch
