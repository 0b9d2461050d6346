// SPDX-License-Identifier: MIT
// The reader's operations on one connection. Each sees one moment. Arguments are valid when they come here.
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
#include <vouch/sqlite/detail/connection.hpp>
#include <vouch/sqlite/detail/partition.hpp>
#include <vouch/sqlite/detail/row.hpp>
#include <vouch/sqlite/detail/session.hpp>
#include <vouch/sqlite/detail/sql.hpp>
#include <vouch/sqlite/detail/statement.hpp>

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
        switch (q.by) {
        case query::path::group: return list_by(sql::list_group, q, q.group);
        case query::path::parent: return list_by(sql::list_parent, q, q.parent);
        default: break;
        }
        const auto queue = find_queue(on_, q.queue);
        if (!queue) {
            return {};
        }
        switch (q.by) {
        case query::path::key: return list_by(sql::list_key, q, q.queue, queue->value, q.key);
        case query::path::dead: return list_dead(q, *queue);
        default: return list_shelves(q, *queue);
        }
    }

    [[nodiscard]] state_counts counts(std::string_view queue) {
        state_counts counts;
        if (const auto number = find_queue(on_, queue)) {
            run row(on_.prepared(sql::counts));
            row.bind(number->first()).step();
            for (const auto s : all_states) {
                counts[s] = static_cast<std::size_t>(row.integer(static_cast<int>(s)));
            }
            constexpr int live = 5;
            run::expect(counts.total() - counts[state::succeeded] - counts[state::dead] ==
                            static_cast<std::size_t>(row.integer(live)),
                        "sqlite: an entry among the live ones is none");
        }
        return counts;
    }

    [[nodiscard]] std::optional<time_point> next_due(std::string_view queue) {
        std::optional<time_point> due;
        if (const auto number = find_queue(on_, queue)) {
            run row(on_.prepared(sql::next_due));
            if (row.bind(number->shelf(state::pending)).step()) {
                row.read(0, due);
            }
        }
        return due;
    }

  private:
    template <class... Path>
    [[nodiscard]] std::vector<entry> list_by(sql which, const query& q, const auto& path, const Path&... more) {
        run row(on_.prepared(which));
        row.bind(path, after(q), q.state, q.topic, std::uint64_t{q.limit}, q.payloads, more...);
        return entries_of(row, q.payloads);
    }

    [[nodiscard]] std::vector<entry> list_dead(const query& q, queue_number queue) {
        auto found = list_by(sql::list_dead, q, q.queue, queue.value);
        for (const auto& e : found) {
            run::expect(e.state == state::dead, "sqlite: an entry among the dead ones is none");
        }
        return found;
    }

    /// A page of a queue's shelves. No index has them in sequence, because every enqueue would pay for it. Most pages
    /// are found near where the last one ended; else the page is chosen from the index on gates, which costs what
    /// stands on the shelves.
    [[nodiscard]] std::vector<entry> list_shelves(const query& q, queue_number queue) {
        const one_moment all(on_);
        const shelf_range shelves{queue.shelf(state::pending),
                                  queue.shelf(q.by == query::path::live ? state::pending : state::dead)};
        auto page = list_near(q, shelves);
        return page.size() == q.limit ? page : list_far(q, shelves);
    }

    /// Shelves beside each other, both ends included.
    struct shelf_range {
        std::int64_t first = 0;
        std::int64_t last = 0;
    };

    [[nodiscard]] std::vector<entry> list_near(const query& q, shelf_range shelves) {
        const auto until = std::min(after(q) + 1000 + 8 * std::uint64_t{q.limit}, std::uint64_t{INT64_MAX});
        run row(on_.prepared(sql::list_near));
        row.bind(q.queue, after(q), q.state, q.topic, std::uint64_t{q.limit}, q.payloads, shelves.first, shelves.last,
                 until);
        return entries_of(row, q.payloads);
    }

    [[nodiscard]] std::vector<entry> list_far(const query& q, shelf_range shelves) {
        std::vector<std::uint64_t> chosen;
        {
            run row(on_.prepared(sql::list_far));
            row.bind(after(q), q.state, q.topic, shelves.first, shelves.last);
            const auto keep_lowest = [&] {
                const auto end = chosen.begin() + static_cast<std::ptrdiff_t>(std::min(q.limit, chosen.size()));
                std::nth_element(chosen.begin(), end, chosen.end());
                chosen.erase(end, chosen.end());
            };
            while (row.step()) {
                chosen.push_back(static_cast<std::uint64_t>(row.integer(0)));
                if (chosen.size() > 2 * q.limit + 1000) {
                    keep_lowest();
                }
            }
            keep_lowest();
        }
        std::sort(chosen.begin(), chosen.end());
        std::vector<entry> found(chosen.size());
        for (std::size_t i = 0; i < chosen.size(); ++i) {
            run row(on_.prepared(sql::at));
            run::expect(row.bind(chosen[i], q.payloads).step(), "sqlite: an index names an entry that is not there");
            read_entry(row, found[i], q.payloads);
        }
        return found;
    }

    [[nodiscard]] static std::vector<entry> entries_of(run& row, bool has_payloads) {
        std::vector<entry> found;
        while (row.step()) {
            read_entry(row, found.emplace_back(), has_payloads);
        }
        return found;
    }

    [[nodiscard]] static std::uint64_t after(const query& q) noexcept {
        return std::min(q.after, std::uint64_t{INT64_MAX});
    }

    /// Several statements that see the same moment: inside the transaction that is open, or one of their own.
    class one_moment {
      public:
        explicit one_moment(connection& on) : on_(on), is_own_(!on.in_transaction()) {
            if (is_own_) {
                on_.execute(sql::begin_reading);
            }
        }
        one_moment(const one_moment&) = delete;
        one_moment& operator=(const one_moment&) = delete;
        ~one_moment() {
            if (is_own_) {
                on_.roll_back(); // nothing was written
            }
        }

      private:
        connection& on_;
        bool is_own_;
    };

    connection& on_;
};

} // namespace sqlite::detail
} // namespace v0
} // namespace vouch
