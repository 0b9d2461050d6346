// SPDX-License-Identifier: MIT
// The settle, extend and cancel of a plain store, with the defects they may have.
#pragma once

#include <chrono>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>

#include <vouch/contract/entry.hpp>
#include <vouch/contract/lifecycle.hpp>
#include <vouch/contract/outcome.hpp>
#include <vouch/contract/verdict.hpp>

#include "outcome_defects.hpp"
#include "relation_updater.hpp"
#include "workspace.hpp"

namespace mutants {

class settler {
  public:
    using verdict = vouch::verdict;

    explicit settler(workspace& on) : workspace_(on) {}
    /// `before` is the snapshot before the batch.
    settler(workspace& on, const snapshot& before) : workspace_(on), before_(&before) {}

    [[nodiscard]] vouch::settlement settle(const vouch::settle& s, time_point now) {
        const bool is_blind = before_ != nullptr && is(defect::settles_do_not_see_each_other);
        const auto stored = is_blind ? before_->find(s.ticket.id) : workspace_.snapshot.find(s.ticket.id);
        if (!stored) {
            return {workspace_.answer(verb_row::settle, verdict_row::settle, verdict_column::absent, verdict::unknown),
                    false};
        }
        auto r = *stored;
        const auto at = vouch::detail::column_of(r.entry, now);
        const auto what = s.ticket.epoch == r.entry.epoch ? verdict_row::settle : verdict_row::settle_other_epoch;
        auto answer = settle_life(r, s, at, now);
        bool completed = false;
        workspace_.between_steps("settle", is(defect::settle_reads_then_writes));
        if (answer == verdict::applied) {
            r.gate = gate_of(r.entry);
            if (is(defect::release_leaves_the_lease) && std::holds_alternative<vouch::release>(s.outcome)) {
                r.gate = stored->gate;
            }
            if (is(defect::retry_loses_the_gate) && std::holds_alternative<vouch::retry>(s.outcome)) {
                r.gate.reset();
            }
            completed = relation_updater(workspace_).write(*stored, std::move(r), now);
        } else if (is(defect::no_op_touches_updated_at)) {
            r = *stored;
            r.entry.updated_at = now;
            workspace_.put(std::move(r));
        }
        if (is(defect::rejected_settle_reports_applied) && answer == verdict::stale) {
            answer = verdict::applied;
        }
        return {workspace_.answer(verb_row::settle, what, at, answer), completed};
    }

    [[nodiscard]] verdict extend(vouch::ticket t, time_point now, vouch::duration lease) {
        const auto stored = workspace_.snapshot.find(t.id);
        if (!stored) {
            return workspace_.answer(verb_row::extend, verdict_row::settle, verdict_column::absent, verdict::unknown);
        }
        auto r = *stored;
        const auto at = vouch::detail::column_of(r.entry, now);
        const auto what = t.epoch == r.entry.epoch ? verdict_row::settle : verdict_row::settle_other_epoch;
        if (is(defect::extend_ignores_epoch)) {
            t.epoch = r.entry.epoch;
        }
        if (is(defect::extend_ignores_lease)) {
            lease = std::chrono::minutes{5};
        }
        if (is(defect::extend_revives) && t.epoch == r.entry.epoch && r.entry.state != vouch::state::claimed) {
            r.entry.state = vouch::state::claimed;
            r.entry.lease_until = now;
        }
        auto answer = apply(r.entry, vouch::extend{t, lease}, now);
        if (is(defect::extend_rejects_lapsed) && at == verdict_column::lapsed) {
            return verdict::stale;
        }
        workspace_.between_steps("extend", is(defect::extend_reads_then_writes));
        if (answer == verdict::applied) {
            if (is(defect::extend_shortens)) {
                r.entry.lease_until = now + lease;
            }
            if (is(defect::extend_compares_unsigned)) {
                const auto was = stored->entry.lease_until.value_or(now);
                r.entry.lease_until = as_unsigned(was) < as_unsigned(now + lease) ? now + lease : was;
            }
            if (is(defect::extend_adds)) {
                r.entry.lease_until = stored->entry.lease_until.value_or(now) + lease;
            }
            if (is(defect::extend_clears_lapses)) {
                r.entry.lapses = 0;
            }
            if (is(defect::extend_counts_as_attempt)) {
                r.entry.attempts += 1;
            }
            if (is(defect::extend_forgets_updated_at)) {
                r.entry.updated_at = stored->entry.updated_at;
            }
            r.gate = is(defect::extend_leaves_the_gate) ? stored->gate : r.entry.lease_until;
            workspace_.put(std::move(r));
        } else if (is(defect::no_op_extend_touches_updated_at)) {
            r = *stored;
            r.entry.updated_at = now;
            workspace_.put(std::move(r));
        }
        return workspace_.answer(verb_row::extend, what, at, answer);
    }

    [[nodiscard]] verdict cancel(const id& wanted, std::string_view error, time_point now) {
        const auto stored = workspace_.snapshot.find(wanted);
        if (!stored) {
            return workspace_.answer(verb_row::cancel, verdict_row::cancel, verdict_column::absent, verdict::unknown);
        }
        auto r = *stored;
        const auto& was = stored->entry;
        const auto at = vouch::detail::column_of(was, now);
        const bool is_over =
            is(defect::cancel_compares_unsigned) && as_unsigned(was.lease_until.value_or(now)) <= as_unsigned(now);
        if ((is(defect::cancel_accepts_held) || is_over) && at == verdict_column::held) {
            r.entry.lease_until = now;
        }
        if (is(defect::cancel_rejects_lapsed) && at == verdict_column::lapsed) {
            return verdict::stale;
        }
        const auto answer = apply(r.entry, vouch::cancel{error}, now);
        workspace_.between_steps("cancel", is(defect::cancel_reads_then_writes));
        if (answer == verdict::applied) {
            apply_cancel_defect(workspace_, r.entry, was);
            r.gate.reset();
            if (is(defect::cancel_deletes)) {
                workspace_.remove(r.entry.id);
                return answer;
            }
            std::ignore = relation_updater(workspace_).write(*stored, std::move(r), now);
        }
        return workspace_.answer(verb_row::cancel, verdict_row::cancel, at, answer);
    }

  private:
    [[nodiscard]] bool is(defect d) const noexcept { return workspace_.is(d); }

    [[nodiscard]] verdict settle_life(row& r, vouch::settle s, verdict_column at, time_point now) const {
        const auto was = r;
        auto& given = s.ticket.epoch;
        const auto present = r.entry.epoch;
        const bool is_over = vouch::is_terminal(was.entry.state);
        if (is(defect::settle_ignores_epoch) || (is(defect::settle_accepts_later_epochs) && given > present) ||
            (is(defect::settle_accepts_the_previous_epoch) && given + 1 == present) ||
            (is(defect::settle_compares_workers) && given < present && r.entry.worker == r.worker_before)) {
            given = present;
        }
        if (is(defect::settle_rejects_lapsed) && at == verdict_column::lapsed) {
            return verdict::stale;
        }
        if (given == present && ((is(defect::settle_overwrites_terminal) && is_over) ||
                                 (is(defect::settle_works_twice) && at == verdict_column::waiting && present > 0))) {
            r.entry.state = vouch::state::claimed;
        }
        const auto answer = apply(r.entry, s, now);
        if (answer == verdict::applied) {
            apply_settle_defect(workspace_, r.entry, was.entry, s.outcome, now);
        }
        return answer;
    }

    workspace& workspace_;
    const snapshot* before_ = nullptr;
};

} // namespace mutants
