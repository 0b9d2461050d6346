// SPDX-License-Identifier: MIT
// The operations of `reader` on one connection. Each sees one state of the database. Requires valid arguments.
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

class entry_reader {
  public:
    explicit entry_reader(connection& on) noexcept : on_(on) {}

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
        default: return list_partitions(q, *queue);
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
                        "sqlite: the file is damaged: an entry in a live partition is not live");
        }
        return counts;
    }

    [[nodiscard]] std::optional<time_point> next_due(std::string_view queue) {
        std::optional<time_point> due;
        if (const auto number = find_queue(on_, queue)) {
            run row(on_.prepared(sql::next_due));
            if (row.bind(number->partition(state::pending)).step()) {
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
            run::expect(e.state == state::dead,
                        "sqlite: the file is damaged: an entry in the list of dead entries is not dead");
        }
        return found;
    }

    /// A page of a queue's partitions. There is no index by sequence, because it would slow down every enqueue. Most
    /// pages are found near the end of the last one. Otherwise the page is chosen from the index on gates, at the cost
    /// of reading the partitions' part of it.
    [[nodiscard]] std::vector<entry> list_partitions(const query& q, queue_number queue) {
        const snapshot all(on_);
        const partition_range partitions{queue.partition(state::pending),
                                         queue.partition(q.by == query::path::live ? state::pending : state::dead)};
        auto page = list_near(q, partitions);
        return page.size() == q.limit ? page : list_far(q, partitions);
    }

    /// Adjacent partitions, both ends included.
    struct partition_range {
        std::int64_t first = 0;
        std::int64_t last = 0;
    };

    [[nodiscard]] std::vector<entry> list_near(const query& q, partition_range partitions) {
        const auto until = std::min(after(q) + 1000 + 8 * std::uint64_t{q.limit}, std::uint64_t{INT64_MAX});
        run row(on_.prepared(sql::list_near));
        row.bind(q.queue, after(q), q.state, q.topic, std::uint64_t{q.limit}, q.payloads, partitions.first,
                 partitions.last, until);
        return entries_of(row, q.payloads);
    }

    [[nodiscard]] std::vector<entry> list_far(const query& q, partition_range partitions) {
        std::vector<std::uint64_t> chosen;
        {
            run row(on_.prepared(sql::list_far));
            row.bind(after(q), q.state, q.topic, partitions.first, partitions.last);
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
            run::expect(row.bind(chosen[i], q.payloads).step(),
                        "sqlite: the file is damaged: an index contains an entry that does not exist");
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

    /// Lets several statements see the same state: in the open transaction, or in one of their own.
    class snapshot {
      public:
        explicit snapshot(connection& on) : on_(on), is_own_(!on.in_transaction()) {
            if (is_own_) {
                on_.execute(sql::begin_reading);
            }
        }
        snapshot(const snapshot&) = delete;
        snapshot& operator=(const snapshot&) = delete;
        ~snapshot() {
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
