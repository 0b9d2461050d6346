// SPDX-License-Identifier: MIT
// Questions to a database that are not part of the contract: its schema version, its queues, its lanes and its ids. Each
// function runs on a connection of the caller, which is in no pipeline, and changes nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <libpq-fe.h>

#include <vouch/contract/id.hpp>
#include <vouch/postgres/detail/migration.hpp>
#include <vouch/postgres/detail/parameters.hpp>
#include <vouch/postgres/detail/rows.hpp>
#include <vouch/postgres/detail/run_with.hpp>
#include <vouch/postgres/detail/sqlstate.hpp>
#include <vouch/postgres/detail/table_names.hpp>
#include <vouch/postgres/prefix.hpp>

namespace vouch {
inline namespace v0 {
namespace postgres {

/// The schema version of the tables with this prefix; nothing if there are no tables. It may differ from
/// `schema_version`.
[[nodiscard]] inline std::optional<std::int64_t> stored_schema_version(PGconn* connection,
                                                                       std::string_view prefix = default_prefix) {
    return detail::translate_bad_alloc([&] {
        const auto found = detail::stored_version(connection, detail::table_names(prefix));
        return found == 0 ? std::nullopt : std::optional(found);
    });
}

/// The names of all queues that have an entry, sorted. Reads one index entry per queue.
[[nodiscard]] inline std::vector<std::string> queue_names(PGconn* connection,
                                                          std::string_view prefix = default_prefix) {
    return detail::translate_bad_alloc([&] {
        const auto text = detail::table_names(prefix).in(R"(WITH RECURSIVE names AS (
 (SELECT e.queue FROM @entries e ORDER BY e.queue LIMIT 1) UNION ALL
 SELECT (SELECT e.queue FROM @entries e WHERE e.queue > n.queue ORDER BY e.queue LIMIT 1)
 FROM names n WHERE n.queue IS NOT NULL) SELECT queue FROM names WHERE queue IS NOT NULL)");
        std::vector<std::string> out;
        detail::run_text(connection, text, "read the queues").each([&](detail::row one) {
            one.read(out.emplace_back());
        });
        return out;
    });
}

/// A lane of a queue.
struct lane_name {
    std::string queue{};
    std::string lane{};
};

/// The entry that holds the lane: the first live one. Nothing if the lane is empty.
[[nodiscard]] inline std::optional<id> head_of_lane(PGconn* connection, const lane_name& which,
                                                    std::string_view prefix = default_prefix) {
    return detail::translate_bad_alloc([&] {
        const auto text = detail::table_names(prefix).in(R"(SELECT e.id FROM @entries e
 WHERE e.queue = $1::text AND e.lane = $2::text AND e.state < 3 ORDER BY e.sequence LIMIT 1)");
        const auto found =
            detail::run_with(connection, text, "read the lane", detail::parameters(which.queue, which.lane));
        std::optional<id> head;
        if (found.size() != 0) {
            found[0].read(head);
        }
        return head;
    });
}

/// Ids from `first` to `last`.
struct id_range {
    id first{};
    id last{};
    std::size_t limit = 100; ///< at most this many
};

/// The ids of the range that are stored, ascending.
[[nodiscard]] inline std::vector<id> ids_between(PGconn* connection, const id_range& range,
                                                 std::string_view prefix = default_prefix) {
    return detail::translate_bad_alloc([&] {
        const auto text = detail::table_names(prefix).in(
            "SELECT e.id FROM @entries e WHERE e.id BETWEEN $1::uuid AND $2::uuid ORDER BY e.id LIMIT $3::bigint");
        std::vector<id> out;
        detail::run_with(connection, text, "read the ids",
                         detail::parameters(range.first, range.last, std::uint64_t{range.limit}))
            .each([&](detail::row one) { one.read(out.emplace_back()); });
        return out;
    });
}

} // namespace postgres
} // namespace v0
} // namespace vouch
