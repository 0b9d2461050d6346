// SPDX-License-Identifier: MIT
// The operations of `reader` on one connection. Each is one statement, so it sees one state of the database. Requires
// valid arguments.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include <vouch/contract/entry.hpp>
#include <vouch/contract/query.hpp>
#include <vouch/contract/state.hpp>
#include <vouch/postgres/detail/claim_heads.hpp>
#include <vouch/postgres/detail/connection.hpp>
#include <vouch/postgres/detail/entry_row.hpp>
#include <vouch/postgres/detail/parameters.hpp>
#include <vouch/postgres/detail/sql.hpp>

namespace vouch {
inline namespace v0 {
namespace postgres::detail {

class entry_reader {
  public:
    /// With `heads`, `next_due` looks where a claim would look. Not inside a transaction, which sees all its own writes.
    explicit entry_reader(connection& on, const claim_heads* heads = nullptr) noexcept : on_(on), heads_(heads) {}

    [[nodiscard]] std::optional<entry> find(const id& wanted) {
        on_.set_doing("find");
        const auto found = on_.ask(sql::find, parameters(wanted));
        if (found.size() == 0) {
            return std::nullopt;
        }
        std::optional<entry> out(std::in_place);
        auto first = found[0];
        read_entry(first, *out);
        return out;
    }

    [[nodiscard]] std::vector<entry> list(const query& q) {
        on_.set_doing("list");
        switch (q.by) {
        case query::path::group: return list_by(sql::list_group, q, q.group);
        case query::path::parent: return list_by(sql::list_parent, q, q.parent);
        case query::path::key: return list_by(sql::list_key, q, q.key, q.queue);
        case query::path::dead: return list_by(sql::list_dead, q, q.queue);
        case query::path::live: return list_by(sql::list_live, q, q.queue);
        case query::path::all: break;
        }
        return list_by(sql::list_all, q, q.queue);
    }

    [[nodiscard]] state_counts counts(std::string_view queue) {
        on_.set_doing("counts");
        const auto found = on_.ask(sql::counts, parameters(queue));
        auto all = found[0];
        state_counts out;
        for (const auto s : all_states) {
            std::uint64_t count = 0;
            all.read(count);
            out[s] = count;
        }
        return out;
    }

    [[nodiscard]] std::optional<time_point> next_due(std::string_view queue) {
        on_.set_doing("next_due");
        const auto from = heads_ == nullptr ? claim_heads::everywhere : heads_->of(queue, claim_heads::clock::now());
        const auto found = on_.ask(sql::next_due, parameters(queue, from));
        std::optional<time_point> due;
        if (found.size() != 0) {
            found[0].read(due);
        }
        return due;
    }

  private:
    template <class... More>
    [[nodiscard]] std::vector<entry> list_by(sql which, const query& q, const auto& path, const More&... more) {
        const auto after = std::min(q.after, std::uint64_t{INT64_MAX});
        const auto found =
            on_.ask(which, parameters(path, after, q.state, q.topic, std::uint64_t{q.limit}, q.payloads, more...));
        std::vector<entry> out(found.size());
        for (std::size_t i = 0; i < out.size(); ++i) {
            auto one = found[i];
            read_entry(one, out[i]);
        }
        return out;
    }

    connection& on_;
    const claim_heads* heads_;
};

} // namespace postgres::detail
} // namespace v0
} // namespace vouch
