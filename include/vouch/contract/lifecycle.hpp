// SPDX-License-Identifier: MIT
// The verbs as pure functions: `apply` changes one entry as the table of transitions says (transitions.hpp) and returns
// the verdict. A simple store reads an entry, applies the verb, and writes the entry back under its fence.
//
// Only `applied` changes anything; with any other verdict every field stays as it is. The functions know nothing about
// lanes: a store must not let a claim reach an entry that is blocked in its lane. They are safe to call from any thread
// as long as no two threads use the same entry.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>

#include <vouch/contract/detail/next_state.hpp>
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

namespace detail {

/// Sets the next due time. A nudge during the claim makes the entry due now at the latest.
inline void set_due(life& l, time_point due, time_point now) { l.due_at = l.woken ? std::min(due, now) : due; }

/// The fields that each outcome changes. What all outcomes have in common is in `apply`.
struct settle_on {
    life& l;
    time_point now;

    void operator()(const succeed& o) const {
        l.state = state_after(state::claimed, verb::succeed);
        l.lapses = 0;
        l.result = o.result;
    }
    void operator()(const retry& o) const {
        l.state = state_after(state::claimed, verb::retry);
        set_due(l, o.at, now);
        l.lapses = 0;
        l.failures += 1;
        l.last_error = o.error;
    }
    void operator()(const bury& o) const {
        l.state = state_after(state::claimed, verb::bury);
        l.lapses = 0;
        l.failures += 1;
        l.last_error = o.error;
        l.result = o.result;
    }
    void operator()(const release& o) const {
        l.attempts -= 1;
        l.state = l.attempts == 0 ? state_after(state::claimed, verb::release, condition::first_attempt)
                                  : state_after(state::claimed, verb::release, condition::later_attempt);
        set_due(l, o.at.value_or(l.due_at), now);
    }
    void operator()(const advance& o) const {
        l.state = state_after(state::claimed, verb::advance);
        l.attempts = 0;
        l.lapses = 0;
        l.progress = o.progress;
        set_due(l, o.at.value_or(now), now);
    }
};

[[nodiscard]] inline verdict verdict_on_ticket(const life& l, std::uint64_t epoch, time_point now) noexcept {
    return verdict_on(epoch == l.epoch ? verdict_row::settle : verdict_row::settle_other_epoch, column_of(l, now));
}

/// A state has a gate exactly if it can be claimed, and the gate is the end of the lease exactly if that is the
/// condition of the claim.
[[nodiscard]] consteval bool gates_agree_with_transitions() {
    for (const auto s : all_states) {
        if (has_transition(s, verb::claim) != is_live(s) ||
            has_transition(s, verb::claim, condition::lease_over) != (s == state::claimed)) {
            return false;
        }
    }
    return true;
}

} // namespace detail

/// The time from which a claim may take the entry, if its lane does not block it: the end of the lease if it is
/// claimed, else `due_at`. A terminal entry has none.
[[nodiscard]] constexpr std::optional<time_point> gate_of(const life& l) noexcept {
    static_assert(detail::gates_agree_with_transitions(), "vouch: gate_of contradicts the table of transitions");
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
