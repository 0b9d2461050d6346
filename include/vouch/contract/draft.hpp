// SPDX-License-Identifier: MIT
// What a producer wants to have stored. A draft is a plain value: set `id`, `queue` and `topic`; every other field has
// a useful default.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <vouch/contract/detail/field_text.hpp>
#include <vouch/contract/id.hpp>
#include <vouch/contract/text_stream.hpp>
#include <vouch/contract/time.hpp>

namespace vouch {
inline namespace v0 {

/// Names and values that travel with an entry, in the order given. Names may repeat.
using header_list = std::vector<std::pair<std::string, std::string>>;
/// Ids, in the order given.
using id_list = std::vector<vouch::id>;

/// Work to be stored. `limits` bounds the size of every field.
struct draft {
    vouch::id id{};          ///< required; the idempotency key of the work
    std::string queue{};     ///< required; workers claim by queue
    std::string topic{};     ///< required; what the work is, as words joined by dots; selects the handler
    std::string payload{};   ///< bytes that the store does not interpret
    std::string key{};       ///< dedup key, unique among the stored entries of the queue; empty: none
    std::string group{};     ///< names a set of entries, across queues, whose completion is reported; empty: none
    std::string lane{};      ///< ordering key: entries of a lane are claimed one at a time, in order; empty: none
    vouch::id parent{};      ///< the entry to nudge when this one ends; nil: none
    vouch::id predecessor{}; ///< the dead entry to replace, whose key, group and lane are taken over; nil: none
    std::optional<time_point> due_at{};     ///< the earliest time to run; unset: now
    std::optional<time_point> expires_at{}; ///< when trying ends, even if attempts are left; unset: never
    std::uint32_t attempts_max = 0;         ///< how many attempts are allowed; 0: as the handler's policy says
    id_list trail{};                        ///< the emissions that led to this draft, oldest first, its own last
    header_list headers{};                  ///< passed on to the handler unchanged
    std::string progress{};                 ///< the first checkpoint of work in several steps
    /// Set: the entry is stored as succeeded at once. Then group, lane, parent and predecessor are refused.
    std::optional<std::string> result{};

    [[nodiscard]] friend bool operator==(const draft&, const draft&) = default;
};

/// Calls `f(name, value...)` for every field, with the values of all the drafts given.
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

/// Writes the id and every field that is set: `{id=..., queue="mail", topic="user.created"}`.
template <text_stream Stream>
Stream& operator<<(Stream& out, const draft& d) {
    return detail::write_text(out, detail::all_fields_text(d));
}

} // namespace v0
} // namespace vouch
