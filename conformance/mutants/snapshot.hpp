// SPDX-License-Identifier: MIT
// Everything a plain store holds, as one value: the entries and their indexes. Copied in constant time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <vouch/contract/entry.hpp>
#include <vouch/contract/lifecycle.hpp>

#include "persistent_map.hpp"
#include "variant.hpp"

namespace mutants {

using vouch::entry;
using vouch::id;
using vouch::time_point;

struct row {
    vouch::entry entry{};
    std::optional<time_point> gate{}; ///< when it may be claimed; none: terminal, or blocked in its lane
    std::uint64_t replaces = 0;       ///< the predecessor's sequence; its id may be reused after a purge
    std::string worker_before{};      ///< of the claim before the present one
};

using row_ptr = std::shared_ptr<const row>;

class snapshot {
  public:
    using by_number = std::tuple<std::string, std::uint64_t>;
    using by_time = std::tuple<std::string, time_point, std::uint64_t>;
    using by_names = std::tuple<std::string, std::string, std::uint64_t>;

    mutants::variant variant{}; ///< how names are compared
    std::uint64_t last_sequence = 0;
    persistent_map<id, row_ptr> rows{};
    persistent_map<by_number, row_ptr> queues{};
    persistent_map<by_time, row_ptr> gates{};
    persistent_map<by_names, row_ptr> lanes{}; ///< live entries only
    persistent_map<by_names, row_ptr> keys{};  ///< by generation
    persistent_map<by_number, row_ptr> groups{};
    persistent_map<std::tuple<id, std::uint64_t>, row_ptr> children{};
    persistent_map<std::uint64_t, row_ptr> successors{}; ///< by the predecessor's sequence

    /// A name as the indexes compare it. `kind` is the field's name.
    [[nodiscard]] std::string as(std::string_view kind, const std::string& name) const {
        const bool is_loose = variant.is(defect::name_is_compared_loosely) && variant.field == kind;
        return is_loose ? folded(name, variant.fold) : name;
    }

    [[nodiscard]] by_names key_of(const std::string& queue, const std::string& key, std::uint64_t n) const {
        switch (variant.defect) {
        case defect::keys_are_joined_by_a_colon: return {queue + ':' + key, "", n};
        case defect::keys_are_joined_by_a_slash: return {queue + '/' + key, "", n};
        case defect::keys_are_joined_by_nothing: return {queue + key, "", n};
        default: return {as("queue", queue), as("key", key), n};
        }
    }
    [[nodiscard]] by_names lane_of(const std::string& queue, const std::string& lane, std::uint64_t n) const {
        switch (variant.defect) {
        case defect::lanes_are_joined_by_a_colon: return {queue + ':' + lane, "", n};
        case defect::lanes_are_joined_by_a_slash: return {queue + '/' + lane, "", n};
        case defect::lanes_are_joined_by_nothing: return {queue + lane, "", n};
        default: return {as("queue", queue), as("lane", lane), n};
        }
    }

    [[nodiscard]] row_ptr find(const id& wanted) const {
        const auto* const found = rows.find(wanted);
        return found == nullptr ? nullptr : *found;
    }

    void put(row fresh) {
        if (const auto old = find(fresh.entry.id)) {
            unlink(*old);
        }
        const auto kept = std::make_shared<const row>(std::move(fresh));
        const auto& e = kept->entry;
        last_sequence = std::max(last_sequence, e.sequence);
        rows.set(e.id, kept);
        queues.set({as("queue", e.queue), e.sequence}, kept);
        if (kept->gate) {
            gates.set({as("queue", e.queue), *kept->gate, e.sequence}, kept);
        }
        if (is_live(e.state) && !e.lane.empty()) {
            lanes.set(lane_of(e.queue, e.lane, e.sequence), kept);
        }
        if (!e.key.empty()) {
            keys.set(key_of(e.queue, e.key, e.generation), kept);
        }
        if (!e.group.empty()) {
            groups.set({as("group", e.group), e.sequence}, kept);
        }
        if (!e.parent.is_nil()) {
            children.set({e.parent, e.sequence}, kept);
        }
        if (kept->replaces != 0) {
            successors.set(kept->replaces, kept);
        }
    }

    void remove(const id& gone) {
        if (const auto old = find(gone)) {
            unlink(*old);
            rows.erase(gone);
        }
    }

    /// The first live entry of a lane after a sequence.
    [[nodiscard]] row_ptr next_in_lane(const std::string& queue, const std::string& lane,
                                       std::uint64_t after = 0) const {
        const auto from = lane_of(queue, lane, after + 1);
        return first(lanes, from, [&](const auto& k) { return is_same_place(k, from); });
    }

    /// The newest or the oldest generation of a key.
    [[nodiscard]] row_ptr find_by_key(const std::string& queue, const std::string& key, bool newest = true) const {
        row_ptr found;
        const auto from = key_of(queue, key, 0);
        keys.walk(from, [&](const auto& k, const auto& r) {
            if (!is_same_place(k, from)) {
                return false;
            }
            found = r;
            constexpr std::uint32_t few = 16;
            return newest && !(variant.is(defect::key_looks_at_sixteen_generations) && r->entry.generation == few);
        });
        return found;
    }

    [[nodiscard]] row_ptr successor_of(const entry& dead) const {
        const auto* const found = successors.find(dead.sequence);
        return found == nullptr ? nullptr : *found;
    }

    /// The row that `r` replaces, if it is still stored.
    [[nodiscard]] row_ptr predecessor_of(const row& r) const {
        const auto found = r.replaces == 0 ? nullptr : find(r.entry.predecessor);
        return found && found->entry.sequence == r.replaces ? found : nullptr;
    }

    [[nodiscard]] std::vector<row_ptr> members(const std::string& group) const {
        std::vector<row_ptr> found;
        const auto name = as("group", group);
        groups.walk({name, 0}, [&](const auto& k, const auto& r) {
            if (std::get<0>(k) != name) {
                return false;
            }
            found.push_back(r);
            return true;
        });
        return found;
    }

    [[nodiscard]] std::vector<row_ptr> children_of(const id& parent) const {
        std::vector<row_ptr> found;
        children.walk({parent, 0}, [&](const auto& k, const auto& r) {
            if (std::get<0>(k) != parent) {
                return false;
            }
            found.push_back(r);
            return true;
        });
        return found;
    }

    [[nodiscard]] std::vector<row_ptr> in_queue(const std::string& queue) const {
        std::vector<row_ptr> found;
        const auto name = as("queue", queue);
        queues.walk({name, 0}, [&](const auto& k, const auto& r) {
            if (std::get<0>(k) != name) {
                return false;
            }
            found.push_back(r);
            return true;
        });
        return found;
    }

    [[nodiscard]] std::vector<row_ptr> all_rows() const {
        std::vector<row_ptr> found;
        rows.walk([&](const auto&, const auto& r) {
            found.push_back(r);
            return true;
        });
        return found;
    }

  private:
    [[nodiscard]] static bool is_same_place(const by_names& a, const by_names& b) {
        return std::get<0>(a) == std::get<0>(b) && std::get<1>(a) == std::get<1>(b);
    }

    template <class Map, class Key, class Fits>
    static row_ptr first(const Map& in, const Key& from, Fits&& fits) {
        row_ptr found;
        in.walk(from, [&](const auto& k, const auto& r) {
            if (fits(k)) {
                found = r;
            }
            return false;
        });
        return found;
    }

    void unlink(const row& old) {
        const auto& e = old.entry;
        queues.erase({as("queue", e.queue), e.sequence});
        if (old.gate) {
            gates.erase({as("queue", e.queue), *old.gate, e.sequence});
        }
        lanes.erase(lane_of(e.queue, e.lane, e.sequence));
        // In some mutants another entry may have taken the key or the successor.
        const auto key = key_of(e.queue, e.key, e.generation);
        if (const auto* const r = keys.find(key); r != nullptr && (*r)->entry.id == e.id) {
            keys.erase(key);
        }
        groups.erase({as("group", e.group), e.sequence});
        children.erase({e.parent, e.sequence});
        if (const auto* const r = successors.find(old.replaces); r != nullptr && (*r)->entry.id == e.id) {
            successors.erase(old.replaces);
        }
    }
};

} // namespace mutants
