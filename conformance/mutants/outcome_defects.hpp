// SPDX-License-Identifier: MIT
// The defects of settle and cancel that concern a single field of the entry.
#pragma once

#include <algorithm>
#include <variant>

#include <vouch/contract/entry.hpp>
#include <vouch/contract/outcome.hpp>

#include "workspace.hpp"

namespace mutants {

/// Changes `e`, which the settle has left correct. `was` is the entry before the settle.
inline void apply_settle_defect(const workspace& on, entry& e, const entry& was, const vouch::outcome& how,
                                time_point now) {
    const auto* const retry = std::get_if<vouch::retry>(&how);
    const auto* const release = std::get_if<vouch::release>(&how);
    const auto* const advance = std::get_if<vouch::advance>(&how);
    const bool is_success = std::holds_alternative<vouch::succeed>(how);
    const bool is_burial = std::holds_alternative<vouch::bury>(how);
    const auto unwoken = retry ? retry->at : release ? release->at.value_or(was.due_at) : e.due_at;
    using enum defect;
    switch (on.variant.defect) {
    case succeed_drops_result:
        if (is_success) {
            e.result.reset();
        }
        break;
    case wake_compares_unsigned:
        e.due_at = was.woken && retry ? (as_unsigned(retry->at) < as_unsigned(now) ? retry->at : now) : e.due_at;
        break;
    case retry_at_zero_is_now: e.due_at = retry && retry->at == time_point{} ? now : e.due_at; break;
    case release_at_zero_keeps_due: e.due_at = release && release->at == time_point{} ? was.due_at : e.due_at; break;
    case advance_at_zero_is_now: e.due_at = advance && advance->at == time_point{} ? now : e.due_at; break;
    case succeed_clears_error:
        if (is_success) {
            e.last_error.clear();
        }
        break;
    case succeed_resets_attempts: e.attempts = is_success ? 0 : e.attempts; break;
    case retry_ignores_at: e.due_at = retry ? now : e.due_at; break;
    case retry_keeps_due: e.due_at = retry ? was.due_at : e.due_at; break;
    case retry_in_the_past_becomes_now: e.due_at = retry ? std::max(e.due_at, now) : e.due_at; break;
    case retry_counts_no_failure: e.failures = retry ? was.failures : e.failures; break;
    case retry_forgets_error: e.last_error = retry ? was.last_error : e.last_error; break;
    case retry_becomes_pending: e.state = retry ? vouch::state::pending : e.state; break;
    case retry_returns_the_attempt: e.attempts -= retry ? 1U : 0U; break;
    case retry_forgets_wake: e.due_at = retry ? unwoken : e.due_at; break;
    case retry_buries_exhausted:
        if (retry && e.attempts_max > 0 && e.attempts >= e.attempts_max) {
            e.state = vouch::state::dead;
        }
        break;
    case bury_forgets_error: e.last_error = is_burial ? was.last_error : e.last_error; break;
    case bury_drops_result:
        if (is_burial) {
            e.result.reset();
        }
        break;
    case bury_counts_no_failure: e.failures = is_burial ? was.failures : e.failures; break;
    case bury_succeeds: e.state = is_burial ? vouch::state::succeeded : e.state; break;
    case release_costs_an_attempt: e.attempts = release ? was.attempts : e.attempts; break;
    case release_resets_attempts: e.attempts = release ? 0 : e.attempts; break;
    case release_is_always_pending: e.state = release ? vouch::state::pending : e.state; break;
    case release_is_always_retrying: e.state = release ? vouch::state::retrying : e.state; break;
    case release_ignores_at: e.due_at = release ? was.due_at : e.due_at; break;
    case release_makes_due_now: e.due_at = release && !release->at ? now : e.due_at; break;
    case release_counts_a_failure: e.failures += release ? 1U : 0U; break;
    case release_forgets_wake: e.due_at = release ? unwoken : e.due_at; break;
    case release_lowers_epoch: e.epoch -= release ? 1U : 0U; break;
    case advance_keeps_attempts: e.attempts = advance ? was.attempts : e.attempts; break;
    case advance_drops_progress: e.progress = advance ? was.progress : e.progress; break;
    case advance_ignores_at: e.due_at = advance ? now : e.due_at; break;
    case advance_keeps_due: e.due_at = advance && !advance->at ? was.due_at : e.due_at; break;
    case advance_is_retrying: e.state = advance ? vouch::state::retrying : e.state; break;
    case advance_forgets_wake: e.due_at = advance && advance->at ? *advance->at : e.due_at; break;
    case advance_resets_failures: e.failures = advance ? 0 : e.failures; break;
    case advance_appends_progress: e.progress = advance ? was.progress + e.progress : e.progress; break;
    case succeed_keeps_lapses: e.lapses = is_success ? was.lapses : e.lapses; break;
    case retry_keeps_lapses: e.lapses = retry ? was.lapses : e.lapses; break;
    case bury_keeps_lapses: e.lapses = is_burial ? was.lapses : e.lapses; break;
    case release_clears_lapses: e.lapses = release ? 0 : e.lapses; break;
    case release_subtracts_a_lapse: e.lapses -= release && e.lapses > 0 ? 1U : 0U; break;
    case advance_keeps_lapses: e.lapses = advance ? was.lapses : e.lapses; break;
    case wake_is_always_now: e.due_at = was.woken && !is_terminal(e.state) ? now : e.due_at; break;
    case settle_keeps_wake_mark: e.woken = was.woken; break;
    case settle_forgets_updated_at: e.updated_at = was.updated_at; break;
    case settle_clears_worker: e.worker.clear(); break;
    case settle_keeps_lease_until: e.lease_until = was.lease_until; break;
    case settle_raises_epoch: e.epoch += 1; break;
    default: break;
    }
}

/// The same for a cancel.
inline void apply_cancel_defect(const workspace& on, entry& e, const entry& was) {
    using enum defect;
    switch (on.variant.defect) {
    case cancel_keeps_epoch: e.epoch = was.epoch; break;
    case cancel_always_raises_epoch: e.epoch = was.epoch + 1; break;
    case cancel_forgets_error: e.last_error = was.last_error; break;
    case cancel_counts_a_failure: e.failures += 1; break;
    case cancel_drops_progress: e.progress.clear(); break;
    case cancel_forgets_updated_at: e.updated_at = was.updated_at; break;
    case cancel_clears_lapses: e.lapses = 0; break;
    case cancel_counts_a_lapse: e.lapses += was.state == vouch::state::claimed ? 1U : 0U; break;
    case cancel_counts_an_attempt: e.attempts += was.state == vouch::state::claimed ? 1U : 0U; break;
    case cancel_succeeds: e.state = vouch::state::succeeded; break;
    case cancel_keeps_lease_until: e.lease_until = was.lease_until; break;
    default: break;
    }
}

} // namespace mutants
