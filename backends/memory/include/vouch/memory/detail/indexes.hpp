// SPDX-License-Identifier: MIT
// All indexes of a memory store, and the two steps that put a row into them. `link` adds a row to the indexes on what
// never changes: id, key, queue, group, parent, lane. `enter` adds it to those that depend on its state: gates, ended
// entries, counts, the head of its lane. `unlink` and `leave` undo them.
//
// Takes no lock and knows nothing of transactions.
//
// Invariants: 1. A row is in `gates` exactly if it is live and not blocked, and in one of `ended` exactly if it is
//                terminal.
//             2. Only `link` and `queue` allocate or throw. What a `link` that throws leaves, `unlink` removes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <vouch/contract/entry.hpp>
#include <vouch/contract/lifecycle.hpp>
#include <vouch/memory/detail/hash_index.hpp>
#include <vouch/memory/detail/layout.hpp>

namespace vouch {
inline namespace v0 {
namespace memory::detail {

template <class Seam>
class indexes {
  public:
    using row = typename layout<Seam>::row;
    using queue_index = typename layout<Seam>::queue_index;
    using lane_index = typename layout<Seam>::lane_index;
    using group_index = typename layout<Seam>::group_index;
    using family_index = typename layout<Seam>::family_index;

    /// The row with this id for which `wanted(row)` holds, or null.
    template <class Wanted>
    [[nodiscard]] row* find(const id& which, const Wanted& wanted) const {
        return by_id_.find(std::hash<id>{}(which), [&](const row& r) { return r.entry.id == which && wanted(r); });
    }

    /// The row with this queue and key for which `wanted(row)` holds, or null.
    template <class Wanted>
    [[nodiscard]] row* find(const queue_index& queue, std::string_view key, const Wanted& wanted) const {
        return by_key_.find(key_hash(queue, key),
                            [&](const row& r) { return r.queue == &queue && r.entry.key == key && wanted(r); });
    }

    [[nodiscard]] queue_index* find_queue(std::string_view name) { return find_in(queues_, name); }
    [[nodiscard]] group_index* find_group(std::string_view name) { return find_in(groups_, name); }
    [[nodiscard]] family_index* find_family(const id& parent) { return find_in(families_, parent); }

    /// The queue of this name, created if there is none.
    [[nodiscard]] queue_index& queue(std::string_view name) {
        if (last_queue_ == nullptr || last_queue_->first != name) {
            last_queue_ = &*queues_.try_emplace(std::string(name)).first;
        }
        return last_queue_->second;
    }

    [[nodiscard]] std::vector<std::string> queue_names() const {
        std::vector<std::string> names;
        for (const auto& [name, queue] : queues_) {
            names.push_back(name);
        }
        return names;
    }

    /// Requires that the row has its entry, queue and sequence.
    void link(row& r) {
        const auto& e = r.entry;
        by_id_.insert(std::hash<id>{}(e.id), r);
        if (!e.key.empty()) {
            by_key_.insert(key_hash(*r.queue, e.key), r);
        }
        r.queue->all.append(e.sequence, r);
        r.queue->gates.make_room(r.queue->all.size());
        r.queue->succeeded.waiting().make_room(r.queue->all.size());
        r.queue->dead.waiting().make_room(r.queue->all.size());
        if (!e.group.empty()) {
            r.group = &groups_[e.group];
            r.group->members.append(e.sequence, r);
        }
        if (!e.parent.is_nil()) {
            r.family = &families_[e.parent];
            r.family->children.append(e.sequence, r);
        }
        if (!e.lane.empty()) {
            r.lane = &r.queue->lanes[e.lane];
            r.lane->rows += 1;
            r.lane->live.append_gap(e.sequence);
        }
    }

    /// Not an error if `link` threw before it was done.
    void unlink(row& r) noexcept {
        const auto& e = r.entry;
        by_id_.erase(std::hash<id>{}(e.id), r);
        if (!e.key.empty()) {
            by_key_.erase(key_hash(*r.queue, e.key), r);
        }
        r.queue->all.erase(e.sequence);
        if (r.group != nullptr && take_out(r.group->members, e.sequence)) {
            groups_.erase(e.group);
        }
        if (r.family != nullptr && take_out(r.family->children, e.sequence)) {
            families_.erase(e.parent);
        }
        leave_lane(r);
    }

    /// Removes the row from its lane for good. Not an error if it has none.
    void leave_lane(row& r) noexcept {
        if (auto* const lane = std::exchange(r.lane, nullptr)) {
            lane->rows -= 1;
            if (lane->rows == 0) {
                r.queue->lanes.erase(r.entry.lane);
            } else {
                lane->live.tidy();
            }
        }
    }

    void enter(row& r) noexcept {
        const bool live = is_live(r.entry.state);
        r.entered = true;
        r.queue->counts[r.entry.state] += 1;
        if (r.group != nullptr) {
            r.group->live += live ? 1U : 0U;
            r.group->unfinished += unfinished(r);
        }
        if (r.family != nullptr) {
            r.family->live += live ? 1U : 0U;
        }
        if (!live) {
            r.ended_in = &r.queue->ended(r.entry.state).waiting();
            r.ended_in->push(r, {r.entry.updated_at, r.entry.sequence});
        } else if (r.lane == nullptr) {
            open_gate(r);
        } else {
            r.lane->live.restore(r.entry.sequence, r);
            find_head(*r.lane);
        }
    }

    void leave(row& r) noexcept {
        const bool live = is_live(r.entry.state);
        r.entered = false;
        r.queue->counts[r.entry.state] -= 1;
        if (r.group != nullptr) {
            r.group->live -= live ? 1U : 0U;
            r.group->unfinished -= unfinished(r);
        }
        if (r.family != nullptr) {
            r.family->live -= live ? 1U : 0U;
        }
        if (!live) {
            r.ended_in->erase(r);
        } else if (r.lane == nullptr) {
            r.queue->gates.erase(r);
        } else {
            r.lane->live.erase(r.entry.sequence);
            find_head(*r.lane);
        }
    }

    void set_successor(row& predecessor, row* successor) noexcept {
        const bool entered = predecessor.entered;
        if (entered) {
            leave(predecessor);
        }
        predecessor.successor = successor;
        if (entered) {
            enter(predecessor);
        }
    }

  private:
    template <class Map, class Key>
    [[nodiscard]] static auto find_in(Map& map, const Key& key) -> typename Map::mapped_type* {
        const auto found = map.find(key);
        return found == map.end() ? nullptr : &found->second;
    }

    [[nodiscard]] static std::size_t key_hash(const queue_index& queue, std::string_view key) noexcept {
        return vouch::detail::mix(std::hash<std::string_view>{}(key) ^ std::hash<const void*>{}(&queue));
    }

    /// Returns whether the list is empty now.
    static bool take_out(sequence_list<row>& list, std::uint64_t sequence) noexcept {
        list.erase(sequence);
        list.tidy();
        return list.empty();
    }

    [[nodiscard]] static std::size_t unfinished(const row& r) noexcept {
        return r.entry.state == state::succeeded || (r.entry.state == state::dead && r.successor != nullptr) ? 0U : 1U;
    }

    void open_gate(row& r) noexcept {
        r.queue->gates.push(r, {*gate_of(r.entry), r.entry.sequence});
        r.queue->is_woken |= r.entry.state != state::claimed;
    }

    /// Moves the lane's gate to its first live row.
    void find_head(lane_index& lane) noexcept {
        auto* const first = lane.live.first();
        if (first == lane.head) {
            return;
        }
        if (lane.head != nullptr) {
            lane.head->queue->gates.erase(*lane.head);
        }
        lane.head = first;
        if (first != nullptr) {
            open_gate(*first);
        }
    }

    hash_index<row> by_id_;
    hash_index<row> by_key_;
    by_name<queue_index> queues_;                                     // queues are never removed
    typename by_name<queue_index>::value_type* last_queue_ = nullptr; // a batch is usually for one queue
    by_name<group_index> groups_;
    std::unordered_map<id, family_index> families_;
};

} // namespace memory::detail
} // namespace v0
} // namespace vouch
