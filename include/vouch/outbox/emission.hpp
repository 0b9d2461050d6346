// SPDX-License-Identifier: MIT
// What a producer wants done: a draft without the parts that the emitter fills in (id, times, trail).
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <vouch/contract/draft.hpp>
#include <vouch/contract/id.hpp>
#include <vouch/contract/time.hpp>

namespace vouch {
inline namespace v0 {

struct emission {
    std::string queue{};                    ///< empty: every queue bound to the topic
    std::string topic{};                    ///< required
    std::string payload{};                  ///< `encode(value)` for typed ones
    std::string key{};                      ///< dedup key, unique in its queue; empty: none
    std::string group{};                    ///< entries that complete together; empty: none
    std::string lane{};                     ///< entries of one lane run one at a time, in order; empty: none
    vouch::id parent{};                     ///< the entry to wake when this one ends
    std::optional<time_point> due_at{};     ///< not before this time
    std::optional<duration> due_in{};       ///< not before this long from now; not together with `due_at`
    std::optional<time_point> expires_at{}; ///< no attempt from this time on; must be later than the due time
    std::optional<duration> expires_in{};   ///< the same, counted from the due time; not together with `expires_at`
    std::uint32_t attempts_max = 0;         ///< 0: the route's limit
    header_list headers{};
    std::string progress{}; ///< the first checkpoint of a handler that advances
    /// The trail to continue. Empty: that of the delivery in `delivery::emit`, else that of the `tracking` scope, if any.
    id_list trail{};
};

} // namespace v0
} // namespace vouch
