// SPDX-License-Identifier: MIT
// The reader's operations on one connection. Each is a single statement, so it sees one moment. Arguments are valid
// when they come here.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include <vouch/contract/entry.hpp>
#include <vouch/contract/query.hpp>
#include <vouch/contract/state.hpp>
#include <vouch/sqlite/connection.hpp>
#include <vouch/sqlite/row.hpp>
#include <vouch/sqlite/sql.hpp>
#include <vouch/sqlite/statement.hpp>

namespace vouch {
inline namespace v0 {
namespace sqlite::detail {

class reading {
  public:
    explicit reading(connection& on) noexcept : on_(on) {}

    [[nodiscard]] std::optional<entry> find(const id& wanted) {
        run row(on_.prepared(sql::find));
        std::optional<entry> found;
        if (row.bind(wanted).step()) {
            read_entry(row, found.emplace());
        }
        return found;
    }

    [[nodiscard]] std::vector<entry> list(const query& q) {
        run row(on_.prepared(path(q.by)));
        const auto after = std::min(q.after, std::uint64_t{INT64_MAX});
        const auto bind = [&](const auto& by) {
            if (q.by == query::path::key) {
                row.bind(by, after, q.state, q.topic, std::uint64_t{q.limit}, q.payloads, q.key);
            } else {
                row.bind(by, after, q.state, q.topic, std::uint64_t{q.limit}, q.payloads);
            }
        };
        switch (q.by) {
        case query::path::group: bind(q.group); break;
        case query::path::parent: bind(q.parent); break;
        default: bind(q.queue);
        }
        std::vector<entry> found;
        while (row.step()) {
            read_entry(row, found.emplace_back());
        }
        return found;
    }

    [[nodiscard]] state_counts counts(std::string_view queue) {
        run row(on_.prepared(sql::counts));
        state_counts counts;
        row.bind(queue).step();
        for (const auto s : all_states) {
            counts[s] = static_cast<std::size_t>(row.integer(static_cast<int>(s)));
        }
        return counts;
    }

    [[nodiscard]] std::optional<time_point> next_due(std::string_view queue) {
        run row(on_.prepared(sql::next_due));
        std::optional<time_point> due;
        if (row.bind(queue).step()) {
            row.read(0, due);
        }
        return due;
    }

  private:
    [[nodiscard]] static sql path(query::path by) noexcept {
        switch (by) {
        case query::path::group: return sql::list_group;
        case query::path::parent: return sql::list_parent;
        case query::path::key: return sql::list_key;
        case query::path::dead: return sql::list_dead;
        case query::path::live: return sql::list_live;
        case query::path::all: break;
        }
        return sql::list_all;
    }

    connection& on_;
};

} // namespace sqlite::detail
} // namespace v0
} // namespace vouch
