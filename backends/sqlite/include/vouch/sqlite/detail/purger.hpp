// SPDX-License-Identifier: MIT
// Removes ended entries, oldest first. Generations of one entry go together: the newest decides, and none is removed if
// a live entry still needs one of them.
//
// A purge looks at a bounded number of entries: first the oldest, then those after the position where the last purge
// stopped. So its cost depends on its limit, however many entries are still needed, and every entry is looked at
// eventually. The position is kept in memory only: a new connection begins with the oldest.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <vouch/contract/detail/purge_looks.hpp>
#include <vouch/contract/request.hpp>
#include <vouch/contract/state.hpp>
#include <vouch/sqlite/detail/connection.hpp>
#include <vouch/sqlite/detail/partition.hpp>
#include <vouch/sqlite/detail/session.hpp>
#include <vouch/sqlite/detail/sql.hpp>
#include <vouch/sqlite/detail/statement.hpp>

namespace vouch {
inline namespace v0 {
namespace sqlite::detail {

class purger {
  public:
    explicit purger(connection& on) noexcept : on_(on) {}

    [[nodiscard]] std::size_t purge(const purge_request& request) {
        const auto queue = find_queue(on_, request.queue);
        if (!queue || request.limit == 0) {
            return 0;
        }
        find(*queue, request);
        going_.resize(std::min(going_.size(), request.limit)); // older generations go first
        std::uint64_t highest = 0;
        for (const auto& g : going_) {
            remove(*queue, g);
            highest = std::max(highest, g.sequence);
        }
        if (highest > find_last_sequence(on_)) {
            run(on_.prepared(sql::raise_floor)).bind(highest).finish();
        }
        return going_.size();
    }

  private:
    struct generation {
        std::uint64_t sequence = 0;
        std::optional<std::uint64_t> replaces{};
        state ended{};
        std::string group{};
        bool has_relations = false;
        bool has_payload_apart = false;
        bool is_newest = false;
    };

    void find(queue_number queue, const purge_request& request) {
        constexpr std::int64_t none = -1;
        const auto partition = [&](state s) {
            return !request.state || *request.state == s ? queue.partition(s) : none;
        };
        const partition_pair where{partition(state::succeeded), partition(state::dead)};
        auto& until = on_.purged_until(where.succeeded, where.dead);
        auto stopped = look(where, {}, request);
        if (stopped && going_.size() >= request.limit) {
            return;
        }
        if (stopped) {
            stopped = look(where, std::max(*stopped, until), request);
        }
        until = stopped.value_or(partition_position{});
    }

    struct partition_pair {
        std::int64_t succeeded = 0;
        std::int64_t dead = 0;
    };

    /// Looks at the entries after a position. Returns where it stopped; nothing if it reached the end.
    [[nodiscard]] std::optional<partition_position> look(const partition_pair& where, partition_position at,
                                                         const purge_request& request) {
        run row(on_.prepared(sql::purge_find));
        row.bind(where.succeeded, where.dead, request.before, at.gate, at.sequence);
        for (auto left = vouch::detail::purge_looks(request.limit); row.step(); --left) {
            bool has_successor = false;
            row.read_all(at.gate, at.sequence, has_successor);
            if (!has_successor) {
                add_generations(at.sequence);
            }
            if (left == 1 || going_.size() >= request.limit) {
                return at;
            }
        }
        return std::nullopt;
    }

    /// Adds the newest generation with its predecessors, oldest first; none of them if one is still needed.
    void add_generations(std::uint64_t newest) {
        const auto first = static_cast<std::ptrdiff_t>(going_.size());
        std::optional<std::uint64_t> next = newest;
        while (next) {
            generation g{.sequence = *next, .is_newest = *next == newest};
            bool is_needed = false;
            run row(on_.prepared(sql::purge_generation));
            if (!row.bind(g.sequence).step()) {
                break; // purged earlier
            }
            row.read_all(g.replaces, g.ended, or_none{g.group}, g.has_relations, g.has_payload_apart, is_needed);
            run::expect(is_terminal(g.ended) && (!g.replaces || *g.replaces < g.sequence),
                        "sqlite: the file is damaged: an ended entry is live, or replaces a later one");
            if (is_needed) {
                going_.resize(static_cast<std::size_t>(first));
                return;
            }
            next = g.replaces;
            going_.push_back(std::move(g));
        }
        std::reverse(going_.begin() + first, going_.end());
    }

    void remove(queue_number queue, const generation& g) {
        run(on_.prepared(sql::purge_entry)).bind(g.sequence).finish();
        if (g.ended == state::dead) {
            run(on_.prepared(sql::purge_dead)).bind(queue.value, g.sequence).finish();
        }
        if (g.has_payload_apart) {
            run(on_.prepared(sql::purge_payload)).bind(g.sequence).finish();
        }
        if (g.has_relations) {
            run(on_.prepared(sql::purge_relations)).bind(g.sequence).finish();
        }
        if (!g.group.empty()) {
            const bool was_unfinished = g.ended == state::dead && g.is_newest;
            run(on_.prepared(sql::group_leave)).bind(g.group, was_unfinished).finish();
            run(on_.prepared(sql::group_drop)).bind(g.group).finish();
        }
    }

    connection& on_;
    std::vector<generation> going_{};
};

} // namespace sqlite::detail
} // namespace v0
} // namespace vouch
