// SPDX-License-Identifier: MIT
// Questions to a database that are not part of the contract: its schema version, its queues, its lanes and its ids. Each
// function runs on a connection of the caller and changes nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sqlite3.h>

#include <vouch/contract/id.hpp>
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

/// A lane of a queue.
struct lane_name {
    std::string queue{};
    std::string lane{};
};

/// The entry that holds the lane: the first live one. Nothing if the lane is empty.
[[nodiscard]] inline std::optional<id> head_of_lane(sqlite3* connection, const lane_name& which,
                                                    std::string_view prefix = default_prefix) {
    validate_prefix(prefix);
    const detail::statement head(connection, detail::with_prefix(R"(SELECT e.id FROM @relations r
 JOIN @entries e ON e.sequence = r.sequence WHERE r.queue = (SELECT number FROM @queues WHERE name = ?1)
 AND r.lane = ?2 AND r.is_live = 1 ORDER BY r.sequence LIMIT 1)",
                                                                 prefix));
    detail::run row(head);
    if (!row.bind(which.queue, which.lane).step()) {
        return std::nullopt;
    }
    id out;
    row.read_all(out);
    return out;
}

/// Ids from `first` to `last`.
struct id_range {
    id first{};
    id last{};
    std::size_t limit = 100; ///< at most this many
};

/// The ids of the range that are stored, ascending. Works with tables of any schema version.
[[nodiscard]] inline std::vector<id> ids_between(sqlite3* connection, const id_range& range,
                                                 std::string_view prefix = default_prefix) {
    validate_prefix(prefix);
    const detail::statement ids(
        connection,
        detail::with_prefix("SELECT id FROM @entries WHERE id BETWEEN ?1 AND ?2 ORDER BY id LIMIT ?3", prefix));
    detail::run row(ids);
    row.bind(range.first, range.last, std::uint64_t{range.limit});
    std::vector<id> out;
    while (row.step()) {
        row.read_all(out.emplace_back());
    }
    return out;
}

} // namespace sqlite
} // namespace v0
} // namespace vouch
