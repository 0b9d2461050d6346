// SPDX-License-Identifier: MIT
// Removes ended entries, oldest first. Generations of one entry are a family and go together: the newest decides, and none
// is removed if a live entry still needs one of them.
//
// A purge looks at a bounded number of entries: first the oldest, then those after the position where the last purge
// stopped. It looks without locks, locks what it wants to remove and looks again. It passes over families of which another
// transaction has locked a member, so that it never waits for an application's transaction.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <vouch/contract/detail/purge_looks.hpp>
#include <vouch/contract/request.hpp>
#include <vouch/contract/state.hpp>
#include <vouch/postgres/detail/connection.hpp>
#include <vouch/postgres/detail/parameters.hpp>
#include <vouch/postgres/detail/purge_positions.hpp>
#include <vouch/postgres/detail/session.hpp>
#include <vouch/postgres/detail/sql.hpp>

namespace vouch {
inline namespace v0 {
namespace postgres::detail {

class purger {
  public:
    purger(connection& on, session& in, purge_positions& positions) noexcept
        : on_(on), session_(in), positions_(positions) {}

    [[nodiscard]] std::size_t purge(const purge_request& request) {
        on_.set_doing("purge");
        if (request.limit == 0) {
            return 0;
        }
        const auto start = positions_.of(request);
        auto stopped = look(request, {});
        lock(request.limit);
        if (stopped && going_.size() < request.limit) {
            stopped = look(request, std::max(*stopped, start));
            const auto last = lock(request.limit);
            positions_.set(request, going_.size() < request.limit ? stopped : last);
        } else if (!stopped) {
            positions_.set(request, stopped);
        }
        going_.resize(std::min(going_.size(), request.limit)); // older generations go first
        return erase();
    }

  private:
    struct generation {
        ended_position at{};
        id which{};
        state ended{};
        std::string group{};
        id predecessor{};
        std::optional<std::uint64_t> replaces{};
        bool is_newest = false;
        bool is_needed = false;
    };
    using family = std::vector<generation>; ///< eldest first

    [[nodiscard]] static generation read(row from) {
        generation g;
        from.read(g.at.updated_at, g.at.sequence, g.which, g.ended, or_default{g.group}, or_default{g.predecessor},
                  g.replaces, g.is_newest, g.is_needed);
        return g;
    }

    /// Looks at the entries after a position, and finds the families that may go. Returns where it stopped; nothing if it
    /// reached the end.
    [[nodiscard]] std::optional<ended_position> look(const purge_request& request, const ended_position& after) {
        const auto looks = vouch::detail::purge_looks(request.limit);
        std::vector<std::size_t> places;
        for (const auto ended : {state::succeeded, state::dead}) {
            if (request.state.value_or(ended) == ended) {
                places.push_back(
                    on_.add(sql::purge_look, parameters(request.queue, ended, request.before, after.updated_at,
                                                        after.sequence, std::uint64_t{looks})));
            }
        }
        const auto answers = on_.exchange();
        std::vector<generation> newest;
        bool has_more = false;
        for (const auto place : places) {
            answers[place].each([&](row one) { newest.push_back(read(one)); });
            has_more = has_more || answers[place].size() == looks;
        }
        std::sort(newest.begin(), newest.end(), [](const auto& a, const auto& b) { return a.at < b.at; });
        if (newest.size() > looks) {
            newest.resize(looks);
            has_more = true;
        }
        families_ = with_predecessors(newest);
        std::erase_if(families_, [](const family& f) {
            return std::any_of(f.begin(), f.end(), [](const generation& g) { return g.is_needed; });
        });
        return has_more ? std::optional(newest.back().at) : std::nullopt;
    }

    /// The families of these entries, each eldest first. One round trip for each generation.
    [[nodiscard]] std::vector<family> with_predecessors(const std::vector<generation>& newest) {
        std::vector<family> families;
        for (const auto& g : newest) {
            families.push_back({g});
        }
        for (;;) {
            array wanted(pg_type::uuid);
            for (const auto& f : families) {
                if (f.back().replaces) {
                    wanted.add(f.back().predecessor);
                }
            }
            if (wanted.size() == 0) {
                break;
            }
            const auto found = read_again(wanted);
            for (auto& f : families) {
                if (const auto next = std::exchange(f.back().replaces, std::nullopt)) {
                    add_predecessor(f, found, *next);
                }
            }
        }
        for (auto& f : families) {
            std::reverse(f.begin(), f.end());
        }
        return families;
    }

    /// Adds the predecessor of the last member, unless it was purged and its id, perhaps, used again.
    static void add_predecessor(family& to, const std::map<id, generation>& found, std::uint64_t replaces) {
        const auto at = found.find(to.back().predecessor);
        if (at != found.end() && at->second.at.sequence == replaces) {
            row::expect(replaces < to.back().at.sequence && is_terminal(at->second.ended),
                        "postgres: the tables are damaged: an ended entry is live, or replaces a later one");
            to.push_back(at->second);
        }
    }

    [[nodiscard]] std::map<id, generation> read_again(const array& wanted) {
        std::map<id, generation> found;
        on_.ask(sql::purge_read, parameters(wanted)).each([&](row one) {
            auto g = read(one);
            found.emplace(g.which, std::move(g));
        });
        return found;
    }

    /// Locks families until `limit` entries can go. Others take the place of those that another transaction has locked.
    /// Returns the position of the last family; nothing if there was none.
    std::optional<ended_position> lock(std::size_t limit) {
        std::size_t from = 0;
        while (from < families_.size() && going_.size() < limit) {
            auto to = from;
            for (auto size = going_.size(); to < families_.size() && size < limit; ++to) {
                size += families_[to].size();
            }
            lock_some(std::span(families_).subspan(from, to - from));
            from = to;
        }
        return from == 0 ? std::nullopt : std::optional(families_[from - 1].back().at);
    }

    /// Locks the families and looks at them again. Those that may still go are going.
    void lock_some(std::span<const family> families) {
        array all(pg_type::uuid);
        for (const auto& f : families) {
            for (const auto& g : f) {
                all.add(g.which);
            }
        }
        std::set<id> locked;
        on_.ask(sql::purge_lock, parameters(all)).each([&](row one) {
            id which;
            one.read(which);
            locked.insert(which);
        });
        const auto now = read_again(all);
        for (const auto& f : families) {
            const bool goes = std::all_of(f.begin(), f.end(), [&](const generation& g) {
                const auto found = now.find(g.which);
                return locked.contains(g.which) && found != now.end() && found->second.at == g.at &&
                       !found->second.is_needed && found->second.is_newest == g.is_newest;
            });
            if (goes) {
                going_.insert(going_.end(), f.begin(), f.end());
            }
        }
    }

    [[nodiscard]] std::size_t erase() {
        if (going_.empty()) {
            return 0;
        }
        array ids(pg_type::uuid);
        std::map<std::string, std::pair<std::int64_t, std::int64_t>>
            groups; // members that leave, unfinished ones of them
        for (const auto& g : going_) {
            ids.add(g.which);
            if (!g.group.empty()) {
                auto& [left, dead] = groups[g.group];
                left += 1;
                dead += g.ended == state::dead && g.is_newest ? 1 : 0;
            }
        }
        const auto place = on_.add(sql::purge_delete, parameters(ids));
        if (!groups.empty()) {
            add_groups(groups);
        }
        const auto answers = on_.exchange();
        row::expect(answers[place].size() == going_.size(),
                    "postgres: the tables are damaged: an ended entry cannot be removed");
        answers[place][0].read(session_.transaction_number);
        return going_.size();
    }

    void add_groups(const std::map<std::string, std::pair<std::int64_t, std::int64_t>>& groups) {
        array names(pg_type::text);
        array left(pg_type::bigint);
        array dead(pg_type::bigint);
        for (const auto& [name, counts] : groups) {
            names.add(name);
            left.add(counts.first);
            dead.add(counts.second);
        }
        on_.add(sql::lock_groups, parameters(names));
        on_.add(sql::group_leave, parameters(names, left, dead));
        on_.add(sql::group_drop, parameters(names));
    }

    connection& on_;
    session& session_;
    purge_positions& positions_;
    std::vector<family> families_{};  ///< that may go, in the order of their ends
    std::vector<generation> going_{}; ///< locked, and nothing needs them
};

} // namespace postgres::detail
} // namespace v0
} // namespace vouch
