// SPDX-License-Identifier: MIT
// What a producer wants stored. Drafts are plain values: fill in what matters, the rest has a meaning when left alone.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <vouch/contract/id.hpp>
#include <vouch/contract/time.hpp>

namespace vouch {
inline namespace v0 {

/// Names and values that travel with an entry, in the order given. Names may repeat.
using header_list = std::vector<std::pair<std::string, std::string>>;
using id_list = std::vector<vouch::id>;

struct draft {
    vouch::id id{};          ///< required; the idempotency key of the work
    std::string queue{};     ///< required; who claims it
    std::string topic{};     ///< required; what it is, words joined by dots
    std::string payload{};   ///< opaque bytes
    std::string key{};       ///< dedup key, unique per queue among stored entries; empty: none
    std::string group{};     ///< entries that complete together, across queues; empty: none
    std::string lane{};      ///< ordering key within the queue; empty: none
    vouch::id parent{};      ///< the entry to nudge when this one ends; nil: none
    vouch::id predecessor{}; ///< the dead entry this one replaces, whose key, group and lane it takes over; nil: none
    std::optional<time_point> due_at{};     ///< when it may run; unset: now
    std::optional<time_point> expires_at{}; ///< when trying ends, whatever the retries; unset: never
    std::uint32_t attempts_max = 0;         ///< 0: the handler's
    id_list trail{};                        ///< the emissions that led here, outermost first, its own last
    header_list headers{};
    std::string progress{};              ///< where a multi-step entry begins
    std::optional<std::string> result{}; ///< set: born succeeded; then lane, group, parent and predecessor are refused

    [[nodiscard]] friend bool operator==(const draft&, const draft&) = default;
};

/// Calls `f(name, value...)` for every field of one or several drafts side by side.
template <class F, class... Drafts>
    requires(std::same_as<std::remove_const_t<Drafts>, draft>&&...)
void for_each_field(F&& f, Drafts&... d) {
    f("id", d.id...);
    f("queue", d.queue...);
    f("topic", d.topic...);
    f("payload", d.payload...);
    f("key", d.key...);
    f("group", d.group...);
    f("lane", d.lane...);
    f("parent", d.parent...);
    f("predecessor", d.predecessor...);
    f("due_at", d.due_at...);
    f("expires_at", d.expires_at...);
    f("attempts_max", d.attempts_max...);
    f("trail", d.trail...);
    f("headers", d.headers...);
    f("progress", d.progress...);
    f("result", d.result...);
}

} // namespace v0
} // namespace vouch
