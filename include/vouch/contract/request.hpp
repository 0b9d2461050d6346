// SPDX-License-Identifier: MIT
// The arguments of `claim` and `purge`.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include <vouch/contract/id.hpp>
#include <vouch/contract/state.hpp>
#include <vouch/contract/time.hpp>

namespace vouch {
inline namespace v0 {

/// Claims at most `limit` entries of `queue` whose gate is at or before `now`, the first by (gate, sequence).
struct claim_request {
    std::string queue{};
    std::size_t limit = 1; ///< 0 claims nothing
    time_point now{};
    duration lease = std::chrono::minutes{5}; ///< how long the claims are held unless extended
    std::string worker{};                     ///< the name of the worker; may be empty
    vouch::id only{}; ///< nil: any entry; else only this one, if it is in the queue and its gate is open
};

/// Removes at most `limit` terminal entries of `queue` that ended before `before`, oldest first (by end, then by
/// sequence). An entry is kept while it is the parent of a live entry or in the group of one.
///
/// An entry and its successors are treated as one family. `before`, `state` and the order look at the newest member.
/// The family is removed from the eldest member on, so a purge that reaches its limit in the middle leaves the newest.
/// If a live entry needs one member, the whole family is kept and does not count against the limit. The members left
/// after such a cut have no predecessor, even if another entry is stored later under the predecessor's id.
///
/// A purge may stop after reading a bounded number of ended entries: at least the oldest 1,000, and `limit` others that
/// earlier purges have not read. So a purge that removes fewer than `limit` entries may leave some behind. Call it
/// again: each such call gets at least `limit` entries further, and starts again from the oldest when it has read them
/// all.
struct purge_request {
    std::string queue{};
    time_point before{};
    std::size_t limit = 1000;
    std::optional<vouch::state> state{}; ///< unset: succeeded and dead entries; else only this state
};

} // namespace v0
} // namespace vouch
