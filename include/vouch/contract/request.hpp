// SPDX-License-Identifier: MIT
// What is asked of a claim and of a purge. Time is always an argument.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include <vouch/contract/id.hpp>
#include <vouch/contract/state.hpp>
#include <vouch/contract/time.hpp>

namespace vouch {
inline namespace v0 {

/// Eligible is exactly `gate <= now`; the first `limit` by (gate, sequence) are taken.
struct claim_request {
    std::string queue{};
    std::size_t limit = 1; ///< 0 takes nothing
    time_point now{};
    duration lease = std::chrono::minutes{5};
    std::string worker{}; ///< who asks; may be empty
    vouch::id only{};     ///< nil: any; else this entry alone, if it is eligible and in the queue
};

/// Removes at most `limit` terminal entries of the queue that ended before `before`, oldest first (by end, then by
/// sequence), and none that a live entry still needs: as its parent, or in its group.
///
/// An entry and its successors, all generations, go by the newest of them: its end and state are what `before` and
/// `state` ask about, and its place among the others is theirs. They go eldest first, so that a limit that cuts through
/// them leaves the newest; if one of them is needed, all are kept, and use up nothing of the limit. What is left of
/// them after such a cut has no predecessor, even if another entry is given that id.
///
/// A purge may look at a bounded number of ended entries, so that those which are needed cost it no more than its limit
/// allows, however many they are: at the oldest 1,000 at least, and at `limit` others that earlier purges have not
/// looked at. So fewer than `limit` removed does not mean that none is left: call again; every call that removes fewer
/// gets further by `limit` entries, and begins again with the oldest when it has seen all.
struct purge_request {
    std::string queue{};
    time_point before{};
    std::size_t limit = 1000;
    std::optional<vouch::state> state{}; ///< unset: succeeded and dead; else only those that ended so
};

namespace detail {

/// How many ended entries a purge of our stores looks at in each of its parts: among the oldest, and among those that
/// earlier purges have not looked at.
[[nodiscard]] constexpr std::size_t purge_looks(std::size_t limit) noexcept { return 1000 + 2 * limit; }

} // namespace detail

} // namespace v0
} // namespace vouch
