// SPDX-License-Identifier: MIT
// The change that each outcome makes to a claimed entry.
#pragma once

#include <algorithm>

#include <vouch/contract/detail/next_state.hpp>
#include <vouch/contract/entry.hpp>
#include <vouch/contract/outcome.hpp>
#include <vouch/contract/state.hpp>
#include <vouch/contract/time.hpp>
#include <vouch/contract/transitions.hpp>

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

} // namespace detail
} // namespace v0
} // namespace vouch
