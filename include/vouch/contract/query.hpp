// SPDX-License-Identifier: MIT
// Reading several entries. A query names one path, which a store can usually serve from an index, then filters, then a
// page of ascending sequences:
//
//   auto page = vouch::query::dead("mail");
//   for (auto found = store.list(page); !found.empty(); found = store.list(page)) {
//       show(found);
//       page.after = found.back().sequence;
//   }
//
// The pages contain every entry that was committed before the first page was read. They are no way to follow new
// entries: in a store with several writers an entry may be committed after others with a greater sequence.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include <vouch/contract/id.hpp>
#include <vouch/contract/state.hpp>

namespace vouch {
inline namespace v0 {

/// What to read. The static functions make a query for each path; set the filters afterwards.
struct query {
    /// Which entries, before any filter. The fields that the path does not use must be empty.
    enum class path : std::uint8_t {
        group,  ///< entries of `group`, across queues
        parent, ///< entries whose parent is `parent`
        key,    ///< every generation of (`queue`, `key`)
        dead,   ///< dead entries of `queue`
        live,   ///< entries of `queue` that are not terminal
        all,    ///< entries of `queue`
    };
    query::path by = path::all;
    std::string queue{};
    std::string key{};
    std::string group{};
    vouch::id parent{};

    std::optional<vouch::state> state{}; ///< unset: any
    std::string topic{};                 ///< exactly this topic, no pattern; empty: any
    std::uint64_t after = 0;             ///< only entries with a greater sequence
    std::size_t limit = 100;             ///< at most this many; 0 finds nothing
    bool payloads = false;               ///< whether to read payloads; if not, they are empty

    [[nodiscard]] static query members(std::string group) { return {.by = path::group, .group = std::move(group)}; }
    [[nodiscard]] static query children(const vouch::id& parent) { return {.by = path::parent, .parent = parent}; }
    [[nodiscard]] static query keyed(std::string queue, std::string key) {
        return {.by = path::key, .queue = std::move(queue), .key = std::move(key)};
    }
    [[nodiscard]] static query dead(std::string queue) { return {.by = path::dead, .queue = std::move(queue)}; }
    [[nodiscard]] static query live(std::string queue) { return {.by = path::live, .queue = std::move(queue)}; }
    [[nodiscard]] static query all(std::string queue) { return {.by = path::all, .queue = std::move(queue)}; }
};

} // namespace v0
} // namespace vouch
