// SPDX-License-Identifier: MIT
// The nudge of a plain store, with the defects it may have.
#pragma once

#include <optional>
#include <utility>

#include <vouch/contract/entry.hpp>
#include <vouch/contract/lifecycle.hpp>
#include <vouch/contract/outcome.hpp>
#include <vouch/contract/verdict.hpp>

#include "workspace.hpp"

namespace mutants {

class nudger {
  public:
    using verdict = vouch::verdict;

    explicit nudger(workspace& on) : workspace_(on) {}

    [[nodiscard]] verdict nudge(const id& wanted, time_point now) {
        const auto stored = workspace_.snapshot.find(wanted);
        if (!stored) {
            return workspace_.answer(verb_row::nudge, verdict_row::nudge, verdict_column::absent, verdict::unknown);
        }
        auto r = *stored;
        const auto at = vouch::detail::column_of(r.entry, now);
        const bool is_claimed = r.entry.state == vouch::state::claimed;
        if (is(defect::nudge_compares_unsigned) && !is_claimed && vouch::is_live(r.entry.state) &&
            as_unsigned(r.entry.due_at) <= as_unsigned(now)) {
            return verdict::repeated;
        }
        const bool again = is_claimed ? r.entry.woken : r.entry.due_at <= now;
        const auto answer = apply(r.entry, vouch::nudge{}, now);
        const bool is_blocked = !stored->gate && vouch::is_live(stored->entry.state);
        workspace_.between_steps("nudge", is(defect::nudge_reads_then_writes));
        if (answer == verdict::applied) {
            if (is(defect::nudge_ignores_claimed) && is_claimed) {
                r.entry.woken = false;
            }
            if (is(defect::nudge_clears_lapses)) {
                r.entry.lapses = 0;
            }
            if (is(defect::nudge_forgets_updated_at)) {
                r.entry.updated_at = stored->entry.updated_at;
            }
            r.gate = is_blocked && !is(defect::nudge_unblocks) ? std::nullopt : gate_of(r.entry);
            if (is(defect::nudge_ends_the_lease) && is_claimed) {
                r.entry.lease_until = now;
                r.gate = now;
            }
            if (is(defect::nudge_leaves_the_gate) && !is_claimed) {
                r.gate = stored->gate;
            }
            workspace_.put(std::move(r));
        } else if ((is(defect::nudge_postpones_the_due) && answer == verdict::repeated && !is_claimed) ||
                   is(defect::no_op_nudge_touches_updated_at)) {
            r.entry.due_at = is(defect::nudge_postpones_the_due) ? now : r.entry.due_at;
            r.entry.updated_at = now;
            r.gate = is_blocked ? std::nullopt : gate_of(r.entry);
            workspace_.put(std::move(r));
        }
        return workspace_.answer(verb_row::nudge, again ? verdict_row::nudge_again : verdict_row::nudge, at, answer);
    }

  private:
    [[nodiscard]] bool is(defect d) const noexcept { return workspace_.is(d); }

    workspace& workspace_;
};

} // namespace mutants
