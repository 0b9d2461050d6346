// SPDX-License-Identifier: MIT
// The verbs as pure functions: `apply` changes one entry as the table of transitions says (transitions.hpp) and returns
// the verdict. A simple store reads an entry, applies the verb, and writes the entry back under its fence.
//
// Only `applied` changes anything; with any other verdict every field stays as it is. The functions know nothing about
// lanes: a store must not let a claim reach an entry that is blocked in its lane. They are safe to call from any thread
// as long as no two threads use the same entry.
#pragma once

#include <algorithm>
#include <optional>
#include <string_view>

#include <vouch/contract/detail/next_state.hpp>
#include <vouch/contract/detail/settle_on.hpp>
#include <vouch/contract/detail/verdict_table.hpp>
#include <vouch/contract/entry.hpp>
#include <vouch/contract/outcome.hpp>
#include <vouch/contract/request.hpp>
#include <vouch/contract/state.hpp>
#include <vouch/contract/ticket.hpp>
#include <vouch/contract/time.hpp>
#include <vouch/contract/transitions.hpp>
#include <vouch/contract/verdict.hpp>

namespace vouch {
inline namespace v0 {

/// The time from which a claim may take the entry, if its lane does not block it: the end of the lease if it is
/// claimed, else `due_at`. A terminal entry has none.
[[nodiscard]] constexpr std::optional<time_point> gate_of(const life& l) noexcept {
    if (is_terminal(l.state)) {
        return std::nullopt;
    }
    return l.state == state::claimed ? l.lease_until : l.due_at;
}

/// Claims the entry. Requires that its gate is at or before `request.now`.
///
/// A claim counts as an attempt, except the claim that takes over after a first lapse: the process that held the entry
/// may have died of another entry, so the first lapse costs no attempt. Every further lapse in a row costs one. A
/// runner handles an entry that has lapsed alone, so an entry that kills its process every time runs out of attempts.
inline void apply(life& l, const claim_request& request) {
    const bool is_takeover = l.state == state::claimed;
    l.attempts += is_takeover && l.lapses == 0 ? 0U : 1U;
    l.lapses += is_takeover ? 1U : 0U;
    l.state = detail::state_after<verb::claim>(l.state);
    l.epoch += 1;
    l.lease_until = request.now + request.lease;
    l.woken = false;
    l.worker = request.worker;
    l.last_attempt_at = request.now;
    l.updated_at = request.now;
}

/// Settles a claim. Only the ticket decides, never the time: if the lease is over and no other claim has taken over,
/// the settle is applied.
[[nodiscard]] inline verdict apply(life& l, const settle& s, time_point now) {
    const auto v = detail::verdict_on_ticket(l, s.ticket.epoch, now);
    if (v == verdict::applied) {
        visit_outcome(detail::settle_on{l, now}, s.outcome);
        l.lease_until.reset();
        l.woken = false;
        l.updated_at = now;
    }
    return v;
}

/// Extends a claim's lease to `now + lease`. A lease never gets shorter.
struct extend {
    vouch::ticket ticket{};
    duration lease{};
};

[[nodiscard]] inline verdict apply(life& l, const extend& x, time_point now) {
    const auto v = detail::verdict_on_ticket(l, x.ticket.epoch, now);
    if (v == verdict::applied) {
        l.state = detail::state_after(state::claimed, verb::extend);
        l.lease_until = std::max(*l.lease_until, now + x.lease);
        l.updated_at = now;
    }
    return v;
}

/// Makes an entry due now. A claimed entry is marked instead (`life::woken`) and becomes due when its claim ends.
struct nudge {};

[[nodiscard]] inline verdict apply(life& l, nudge, time_point now) {
    using detail::verdict_row;
    const bool is_claimed = l.state == state::claimed;
    const bool is_again = is_claimed ? l.woken : l.due_at <= now;
    const auto row = is_again ? verdict_row::nudge_again : verdict_row::nudge;
    const auto v = detail::verdict_on(row, detail::column_of(l, now));
    if (v == verdict::applied) {
        l.state = detail::state_after<verb::nudge>(l.state);
        if (is_claimed) {
            l.woken = true;
        } else {
            l.due_at = now;
        }
        l.updated_at = now;
    }
    return v;
}

/// Ends an entry that is not held under a running lease. If it was claimed its epoch grows, so that the lapsed ticket
/// becomes stale.
struct cancel {
    std::string_view error{};
};

[[nodiscard]] inline verdict apply(life& l, const cancel& c, time_point now) {
    const auto v = detail::verdict_on(detail::verdict_row::cancel, detail::column_of(l, now));
    if (v == verdict::applied) {
        l.epoch += l.state == state::claimed ? 1U : 0U;
        l.state = detail::state_after<verb::cancel>(l.state);
        l.last_error = c.error;
        l.lease_until.reset();
        l.woken = false;
        l.updated_at = now;
    }
    return v;
}

} // namespace v0
} // namespace vouch
