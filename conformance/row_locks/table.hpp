// SPDX-License-Identifier: MIT
// Rows, and the ordered paths on which they are found: by id, queue, gate, key, group, parent, lane or predecessor. A
// `name` names a path, and is also what transactions lock. Not safe for concurrent use; the store's mutex guards it.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <vouch/contract/entry.hpp>
#include <vouch/contract/state.hpp>

namespace row_locks {

using vouch::entry;
using vouch::id;
using vouch::time_point;

struct row {
    row_locks::entry entry{};
    std::optional<time_point> gate{}; ///< unset: terminal, or blocked in its lane
    std::uint64_t replaces = 0;       ///< the sequence of its predecessor; ids can be reused, sequences cannot

    [[nodiscard]] bool is_blocked() const noexcept { return !gate && vouch::is_live(entry.state); }
};
using row_ptr = std::shared_ptr<const row>;

struct name {
    enum class kind : std::uint8_t { lane, key, row, children, group, queue, gates, successor };
    name::kind what = kind::row;
    std::string queue{};
    std::string text{};
    row_locks::id which{};

    [[nodiscard]] friend auto operator<=>(const name&, const name&) = default;
};

// Names that are locked, too.
[[nodiscard]] inline name row_of(const id& which) { return {.what = name::kind::row, .which = which}; }
[[nodiscard]] inline name lane_of(const entry& e) { return {name::kind::lane, e.queue, e.lane}; }
[[nodiscard]] inline name key_of(const entry& e) { return {name::kind::key, e.queue, e.key}; }
[[nodiscard]] inline name group_of(std::string group) { return {name::kind::group, {}, std::move(group)}; }
[[nodiscard]] inline name children_of(const id& parent) { return {.what = name::kind::children, .which = parent}; }
// Names of paths only.
[[nodiscard]] inline name queue_of(std::string queue) { return {name::kind::queue, std::move(queue)}; }
[[nodiscard]] inline name gates_of(std::string queue) { return {name::kind::gates, std::move(queue)}; }
[[nodiscard]] inline name successor_of(std::uint64_t sequence) {
    return {.what = name::kind::successor, .which = {0, sequence}};
}

class table {
  public:
    /// The gate on the path of gates, else the same for all; then the sequence.
    using order = std::pair<time_point, std::uint64_t>;
    using path = std::map<order, row_ptr>;

    [[nodiscard]] const path& along(const name& wanted) const {
        static const path empty{};
        const auto found = paths_.find(wanted);
        return found == paths_.end() ? empty : found->second;
    }
    [[nodiscard]] row_ptr find(const id& wanted) const {
        const auto& found = along(row_of(wanted));
        return found.empty() ? nullptr : found.begin()->second;
    }

    void put(const row_ptr& r) {
        remove(r->entry.id);
        for (const auto& [where, at] : places_of(*r)) {
            paths_[where][at] = r;
        }
    }
    void remove(const id& gone) {
        const auto r = find(gone);
        if (!r) {
            return;
        }
        for (const auto& [where, at] : places_of(*r)) {
            const auto on = paths_.find(where);
            on->second.erase(at);
            if (on->second.empty()) {
                paths_.erase(on);
            }
        }
    }

  private:
    [[nodiscard]] static std::vector<std::pair<name, order>> places_of(const row& r) {
        const auto& e = r.entry;
        const order in_sequence{time_point{}, e.sequence};
        std::vector<std::pair<name, order>> out{{row_of(e.id), in_sequence}, {queue_of(e.queue), in_sequence}};
        const auto add_if = [&](bool is, const auto& make) {
            if (is) {
                out.emplace_back(make(), in_sequence);
            }
        };
        add_if(!e.key.empty(), [&] { return key_of(e); });
        add_if(!e.group.empty(), [&] { return group_of(e.group); });
        add_if(!e.parent.is_nil(), [&] { return children_of(e.parent); });
        add_if(!e.lane.empty() && vouch::is_live(e.state), [&] { return lane_of(e); });
        add_if(r.replaces != 0, [&] { return successor_of(r.replaces); });
        if (r.gate) {
            out.emplace_back(gates_of(e.queue), order{*r.gate, e.sequence});
        }
        return out;
    }

    std::map<name, path> paths_{};
};

} // namespace row_locks
