// SPDX-License-Identifier: MIT
// A stored draft and its life. The fields that come from the draft never change. The fields of `life` change, by the
// verbs of `lifecycle.hpp` only.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include <vouch/contract/detail/field_text.hpp>
#include <vouch/contract/draft.hpp>
#include <vouch/contract/state.hpp>
#include <vouch/contract/text_stream.hpp>
#include <vouch/contract/ticket.hpp>
#include <vouch/contract/time.hpp>

namespace vouch {
inline namespace v0 {

/// The part of an entry that verbs change.
struct life {
    vouch::state state = vouch::state::pending;
    std::uint32_t attempts = 0;              ///< claims that count; a release takes one off, an advance resets it to 0
    std::uint32_t lapses = 0;                ///< leases in a row that expired without an outcome
    std::uint32_t failures = 0;              ///< settles that were a retry or a bury
    std::uint64_t epoch = 0;                 ///< number of claims ever; grows only
    time_point due_at{};                     ///< the earliest time to run; a claim does not change it
    std::optional<time_point> lease_until{}; ///< claimed only: the time from which another claim may take over
    bool woken = false;                      ///< claimed only: nudged since the claim, so due when the claim ends
    std::string last_error{};                ///< code of the last failure; kept after a success
    std::optional<std::string> result{};     ///< from succeed or bury
    std::string progress{};                  ///< the last checkpoint
    std::string worker{};                    ///< the worker that claimed it last
    time_point updated_at{};                 ///< the `now` of the last change
    std::optional<time_point> last_attempt_at{}; ///< the `now` of the last claim

    [[nodiscard]] friend bool operator==(const life&, const life&) = default;
};

/// A stored draft. See `draft` for the fields that are not explained here.
struct entry : life {
    vouch::id id{};
    std::string queue{};
    std::string topic{};
    std::string payload{};
    std::string key{};
    std::string group{};
    std::string lane{};
    vouch::id parent{};
    vouch::id predecessor{};
    std::optional<time_point> expires_at{};
    std::uint32_t attempts_max = 0;
    id_list trail{};
    header_list headers{};
    std::uint64_t sequence = 0;   ///< orders the entries of a lane by commit; never reused, may have gaps
    std::uint32_t generation = 1; ///< 1, or one more than the predecessor's
    time_point created_at{};      ///< the `now` of the enqueue

    [[nodiscard]] friend bool operator==(const entry&, const entry&) = default;
};

/// The ticket of the entry's current claim.
[[nodiscard]] inline ticket ticket_of(const entry& e) noexcept { return {.id = e.id, .epoch = e.epoch}; }

/// Calls `f(name, value...)` for every field, with the values of all the entries given. Tests use it to name the field
/// that a store forgets.
template <class F, class... Entries>
    requires(std::same_as<std::remove_const_t<Entries>, entry>&&...)
void for_each_field(F&& f, Entries&... e) {
    f("id", e.id...);
    f("queue", e.queue...);
    f("topic", e.topic...);
    f("payload", e.payload...);
    f("key", e.key...);
    f("group", e.group...);
    f("lane", e.lane...);
    f("parent", e.parent...);
    f("predecessor", e.predecessor...);
    f("expires_at", e.expires_at...);
    f("attempts_max", e.attempts_max...);
    f("trail", e.trail...);
    f("headers", e.headers...);
    f("sequence", e.sequence...);
    f("generation", e.generation...);
    f("created_at", e.created_at...);
    f("state", e.state...);
    f("attempts", e.attempts...);
    f("lapses", e.lapses...);
    f("failures", e.failures...);
    f("epoch", e.epoch...);
    f("due_at", e.due_at...);
    f("lease_until", e.lease_until...);
    f("woken", e.woken...);
    f("last_error", e.last_error...);
    f("result", e.result...);
    f("progress", e.progress...);
    f("worker", e.worker...);
    f("updated_at", e.updated_at...);
    f("last_attempt_at", e.last_attempt_at...);
}

/// Writes the id, the state and every field that is set: `{id=..., queue="mail", state=pending, attempts=1}`.
template <text_stream Stream>
Stream& operator<<(Stream& out, const entry& e) {
    return detail::write_text(out, detail::all_fields_text(e));
}

/// The entry that a draft becomes at `now`: pending, or succeeded if the draft carries a result. The store sets the
/// sequence and, for a successor, the generation, key, group and lane.
[[nodiscard]] inline entry born(draft d, time_point now) {
    entry e;
    e.id = d.id;
    e.queue = std::move(d.queue);
    e.topic = std::move(d.topic);
    e.payload = std::move(d.payload);
    e.key = std::move(d.key);
    e.group = std::move(d.group);
    e.lane = std::move(d.lane);
    e.parent = d.parent;
    e.predecessor = d.predecessor;
    e.expires_at = d.expires_at;
    e.attempts_max = d.attempts_max;
    e.trail = std::move(d.trail);
    e.headers = std::move(d.headers);
    e.created_at = now;
    e.state = d.result ? state::succeeded : state::pending;
    e.due_at = d.due_at.value_or(now);
    e.result = std::move(d.result);
    e.progress = std::move(d.progress);
    e.updated_at = now;
    return e;
}

} // namespace v0
} // namespace vouch
