// SPDX-License-Identifier: MIT
// How a plain store carries out what became of a claim, nudges, cancellations, and what the end of an entry means for
// its lane, its parent and its group.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>

#include <vouch/contract/entry.hpp>
#include <vouch/contract/lifecycle.hpp>
#include <vouch/contract/outcome.hpp>
#include <vouch/contract/verdict.hpp>

#include "outcome_defects.hpp"
#include "workspace.hpp"

namespace mutants {

class settling {
  public:
    using verdict = vouch::verdict;
    using standing = vouch::standing;
    using asked = vouch::asked;

    explicit settling(desk& on) : on_(on) {}
    /// `before` is the world in which the batch began.
    settling(desk& on, const world& before) : on_(on), before_(&before) {}

    [[nodiscard]] vouch::settlement settle(const vouch::settle& s, time_point now) {
        const bool is_blind = before_ != nullptr && is(defect::settles_do_not_see_each_other);
        const auto stored = is_blind ? before_->find(s.ticket.id) : on_.world.find(s.ticket.id);
        if (!stored) {
            return {on_.say(verb_row::settle, asked::settle, standing::absent, verdict::unknown), false};
        }
        auto r = *stored;
        const auto at = standing_of(r.entry, now);
        const auto what = s.ticket.epoch == r.entry.epoch ? asked::settle : asked::settle_behind;
        auto answer = settle_life(r, s, at, now);
        bool completed = false;
        on_.between("settle", is(defect::settle_reads_then_writes));
        if (answer == verdict::applied) {
            r.gate = gate_of(r.entry);
            if (is(defect::release_leaves_the_lease) && std::holds_alternative<vouch::release>(s.outcome)) {
                r.gate = stored->gate;
            }
            if (is(defect::retry_loses_the_gate) && std::holds_alternative<vouch::retry>(s.outcome)) {
                r.gate.reset();
            }
            completed = finish(*stored, std::move(r), now);
        } else if (is(defect::no_op_touches_updated_at)) {
            r = *stored;
            r.entry.updated_at = now;
            on_.put(std::move(r));
        }
        if (is(defect::rejected_settle_says_applied) && answer == verdict::stale) {
            answer = verdict::applied;
        }
        return {on_.say(verb_row::settle, what, at, answer), completed};
    }

    [[nodiscard]] verdict extend(vouch::ticket t, time_point now, vouch::duration lease) {
        const auto stored = on_.world.find(t.id);
        if (!stored) {
            return on_.say(verb_row::extend, asked::settle, standing::absent, verdict::unknown);
        }
        auto r = *stored;
        const auto at = standing_of(r.entry, now);
        const auto what = t.epoch == r.entry.epoch ? asked::settle : asked::settle_behind;
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
        if (is(defect::extend_rejects_lapsed) && at == standing::lapsed) {
            return verdict::stale;
        }
        on_.between("extend", is(defect::extend_reads_then_writes));
        if (answer == verdict::applied) {
            if (is(defect::extend_shortens)) {
                r.entry.lease_until = now + lease;
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
            on_.put(std::move(r));
        } else if (is(defect::no_op_extend_touches_updated_at)) {
            r = *stored;
            r.entry.updated_at = now;
            on_.put(std::move(r));
        }
        return on_.say(verb_row::extend, what, at, answer);
    }

    [[nodiscard]] verdict nudge(const id& wanted, time_point now) {
        const auto stored = on_.world.find(wanted);
        if (!stored) {
            return on_.say(verb_row::nudge, asked::nudge, standing::absent, verdict::unknown);
        }
        auto r = *stored;
        const auto at = standing_of(r.entry, now);
        const bool is_claimed = r.entry.state == vouch::state::claimed;
        const bool again = is_claimed ? r.entry.woken : r.entry.due_at <= now;
        const auto answer = apply(r.entry, vouch::nudge{}, now);
        const bool is_blocked = !stored->gate && vouch::is_live(stored->entry.state);
        on_.between("nudge", is(defect::nudge_reads_then_writes));
        if (answer == verdict::applied) {
            if (is(defect::nudge_forgets_claimed) && is_claimed) {
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
            on_.put(std::move(r));
        } else if ((is(defect::nudge_moves_the_due_back) && answer == verdict::repeated && !is_claimed) ||
                   is(defect::no_op_nudge_touches_updated_at)) {
            r.entry.due_at = is(defect::nudge_moves_the_due_back) ? now : r.entry.due_at;
            r.entry.updated_at = now;
            r.gate = is_blocked ? std::nullopt : gate_of(r.entry);
            on_.put(std::move(r));
        }
        return on_.say(verb_row::nudge, again ? asked::nudge_again : asked::nudge, at, answer);
    }

    [[nodiscard]] verdict cancel(const id& wanted, std::string_view error, time_point now) {
        const auto stored = on_.world.find(wanted);
        if (!stored) {
            return on_.say(verb_row::cancel, asked::cancel, standing::absent, verdict::unknown);
        }
        auto r = *stored;
        const auto& was = stored->entry;
        const auto at = standing_of(was, now);
        if (is(defect::cancel_takes_the_held) && at == standing::held) {
            r.entry.lease_until = now;
        }
        if (is(defect::cancel_spares_the_lapsed) && at == standing::lapsed) {
            return verdict::stale;
        }
        const auto answer = apply(r.entry, vouch::cancel{error}, now);
        on_.between("cancel", is(defect::cancel_reads_then_writes));
        if (answer == verdict::applied) {
            cancel_wrongly(on_, r.entry, was);
            r.gate.reset();
            if (is(defect::cancel_deletes)) {
                on_.remove(r.entry.id);
                return answer;
            }
            std::ignore = finish(*stored, std::move(r), now);
        }
        return on_.say(verb_row::cancel, asked::cancel, at, answer);
    }

  private:
    [[nodiscard]] bool is(defect d) const noexcept { return on_.is(d); }

    [[nodiscard]] verdict settle_life(row& r, vouch::settle s, standing at, time_point now) const {
        const auto was = r;
        auto& given = s.ticket.epoch;
        const auto present = r.entry.epoch;
        const bool is_over = vouch::is_terminal(was.entry.state);
        if (is(defect::settle_ignores_epoch) || (is(defect::settle_takes_later_epochs) && given > present) ||
            (is(defect::settle_takes_the_epoch_before) && given + 1 == present) ||
            (is(defect::settle_goes_by_worker) && given < present && r.entry.worker == r.worker_before)) {
            given = present;
        }
        if (is(defect::settle_goes_by_time) && at == standing::lapsed) {
            return verdict::stale;
        }
        if (given == present && ((is(defect::settle_overwrites_the_ended) && is_over) ||
                                 (is(defect::settle_works_twice) && at == standing::waiting && present > 0))) {
            r.entry.state = vouch::state::claimed;
        }
        const auto answer = apply(r.entry, s, now);
        if (answer == verdict::applied) {
            settle_wrongly(on_, r.entry, was.entry, s.outcome, now);
        }
        return answer;
    }

    /// Writes what a verb made of the row. If it has ended, tells whom that concerns; says whether its group is
    /// complete.
    bool finish(const row& before, row r, time_point now) {
        const auto e = r.entry;
        const bool has_ended = vouch::is_terminal(e.state);
        const bool counts_now = is(defect::group_is_counted_too_early);
        const auto left_before = counts_now ? unfinished(e) : 0U;
        if (counts_now) {
            on_.between("group", true);
        }
        const bool gives_way = (is(defect::lane_passes_the_retrying) && e.state == vouch::state::retrying) ||
                               (is(defect::lane_passes_the_released) && e.state == vouch::state::pending &&
                                e.progress == before.entry.progress) ||
                               (is(defect::lane_passes_between_steps) && e.progress != before.entry.progress) ||
                               (is(defect::lane_passes_the_future) && !has_ended && e.due_at > now);
        on_.put(std::move(r));
        if (!e.lane.empty() && (has_ended || gives_way)) {
            open_lane(e, before.gate.has_value(), gives_way, now);
        }
        if (!e.parent.is_nil() && wakes_parent(e)) {
            wake(e, now);
        }
        if (is(defect::group_is_counted_twice) && e.state == vouch::state::succeeded && !e.group.empty()) {
            on_.between("group shown", true);
        }
        if (!has_ended || e.group.empty()) {
            return is(defect::group_completes_on_any_settle) && !e.group.empty() && unfinished(e) == 1;
        }
        if (e.state == vouch::state::dead && !is(defect::group_completes_with_its_dead)) {
            return is(defect::group_completes_on_burial) && unfinished(e) == 1;
        }
        if (is(defect::group_completes_each_time)) {
            return true;
        }
        return (counts_now ? left_before - 1 : unfinished(e)) == 0;
    }

    /// Members of the group that have not succeeded.
    [[nodiscard]] std::size_t unfinished(const entry& of) const {
        std::size_t n = 0;
        for (const auto& r : on_.world.members(of.group)) {
            const auto& e = r->entry;
            const bool is_replaced = on_.world.successor_of(e) != nullptr && !is(defect::group_waits_for_the_replaced);
            const bool is_done =
                e.state == vouch::state::succeeded ||
                (e.state == vouch::state::dead && (is_replaced || is(defect::group_completes_with_its_dead)));
            const bool is_here = e.queue == of.queue || !is(defect::group_ends_at_the_queue);
            const bool is_told = e.sequence <= of.sequence || !is(defect::group_forgets_later_members);
            n += !is_done && is_here && is_told ? 1U : 0U;
        }
        return n;
    }

    void open_lane(const entry& e, bool was_head, bool gives_way, time_point now) {
        if ((is(defect::lane_stays_shut_after_death) && e.state == vouch::state::dead) ||
            (is(defect::lane_stays_shut_after_success) && e.state == vouch::state::succeeded) ||
            (is(defect::lane_stays_shut_after_cancel) && e.state == vouch::state::dead && !e.last_attempt_at)) {
            return;
        }
        auto next = on_.world.next_in_lane(e.queue, e.lane, gives_way ? e.sequence : 0);
        if (is(defect::lane_waits_for_the_cancelled) && next) {
            for (const auto& r : on_.world.in_queue(e.queue)) {
                const bool is_between = r->entry.sequence > e.sequence && r->entry.sequence < next->entry.sequence;
                if (is_between && r->entry.lane == e.lane) {
                    return;
                }
            }
        }
        if (is(defect::lane_opens_behind_any_end) && !was_head) {
            next = on_.world.next_in_lane(e.queue, e.lane, e.sequence);
        }
        if (is(defect::lane_goes_by_due)) {
            for (auto r = next; r; r = on_.world.next_in_lane(e.queue, e.lane, r->entry.sequence)) {
                next = r->entry.due_at < next->entry.due_at ? r : next;
            }
        }
        for (; next && !next->gate; next = on_.world.next_in_lane(e.queue, e.lane, next->entry.sequence)) {
            auto opened = *next;
            if (is(defect::lane_makes_the_next_due)) {
                opened.entry.due_at = now;
            }
            if (is(defect::lane_touches_the_next)) {
                opened.entry.updated_at = now;
            }
            opened.gate = gate_of(opened.entry);
            on_.put(std::move(opened));
            if (!is(defect::lane_opens_for_all)) {
                return;
            }
        }
    }

    [[nodiscard]] bool wakes_parent(const entry& e) const {
        if (!vouch::is_terminal(e.state)) {
            return is(defect::parent_wakes_on_any_settle);
        }
        const bool is_cancelled = e.state == vouch::state::dead && !e.last_attempt_at;
        return !(is(defect::parent_sleeps) || (is(defect::parent_sleeps_on_cancel) && is_cancelled) ||
                 (is(defect::parent_sleeps_on_death) && e.state == vouch::state::dead) ||
                 (is(defect::parent_sleeps_on_success) && e.state == vouch::state::succeeded));
    }

    void wake(const entry& ended, time_point now) {
        const auto& parent = ended.parent;
        const auto p = on_.world.find(parent);
        if (p && is(defect::parent_sleeps_in_another_queue) && p->entry.queue != ended.queue) {
            return;
        }
        if (p && is(defect::parent_is_not_marked) && p->entry.state == vouch::state::claimed) {
            return;
        }
        if (p && is(defect::parent_waits_for_all_children)) {
            for (const auto& child : on_.world.children_of(parent)) {
                if (vouch::is_live(child->entry.state)) {
                    return;
                }
            }
        }
        std::ignore = nudge(parent, now); // absent or terminal: no effect
    }

    desk& on_;
    const world* before_ = nullptr;
};

} // namespace mutants
