// SPDX-License-Identifier: MIT
// Writes a changed row and, when the entry has ended, updates the entries related to it: the next in its lane, its
// parent and its group.
#pragma once

#include <algorithm>
#include <cstddef>
#include <tuple>
#include <utility>

#include <vouch/contract/entry.hpp>
#include <vouch/contract/lifecycle.hpp>
#include <vouch/contract/state.hpp>

#include "nudger.hpp"
#include "workspace.hpp"

namespace mutants {

class relation_updater {
  public:
    explicit relation_updater(workspace& on) : workspace_(on) {}

    /// Writes `r` over `before`. Returns whether that completes its group.
    bool write(const row& before, row r, time_point now) {
        const auto e = r.entry;
        const bool has_ended = vouch::is_terminal(e.state);
        const bool counts_now = is(defect::group_is_counted_too_early);
        const auto left_before = counts_now ? unfinished(e) : 0U;
        if (counts_now) {
            workspace_.between_steps("group", true);
        }
        const bool gives_way = (is(defect::lane_passes_retrying) && e.state == vouch::state::retrying) ||
                               (is(defect::lane_passes_released) && e.state == vouch::state::pending &&
                                e.progress == before.entry.progress) ||
                               (is(defect::lane_passes_between_steps) && e.progress != before.entry.progress) ||
                               (is(defect::lane_passes_future) && !has_ended && e.due_at > now);
        workspace_.put(std::move(r));
        if (!e.lane.empty() && (has_ended || gives_way)) {
            open_lane(e, before.gate.has_value(), gives_way, now);
        }
        if (!e.parent.is_nil() && wakes_parent(e)) {
            wake(e, now);
        }
        if (is(defect::group_is_counted_twice) && e.state == vouch::state::succeeded && !e.group.empty()) {
            workspace_.between_steps("group shown", true);
        }
        if (!has_ended || e.group.empty()) {
            return is(defect::group_completes_on_any_settle) && !e.group.empty() && unfinished(e) == 1;
        }
        if (e.state == vouch::state::dead && !is(defect::group_counts_dead_as_done)) {
            return is(defect::group_completes_on_bury) && unfinished(e) == 1;
        }
        if (is(defect::group_completes_each_time)) {
            return true;
        }
        return (counts_now ? left_before - 1 : unfinished(e)) == 0;
    }

  private:
    [[nodiscard]] bool is(defect d) const noexcept { return workspace_.is(d); }

    /// Members of the group that have not succeeded.
    [[nodiscard]] std::size_t unfinished(const entry& of) const {
        std::size_t n = 0;
        auto members = workspace_.snapshot.members(of.group);
        if (is(defect::group_forgets_after_64)) {
            members.resize(std::min<std::size_t>(members.size(), 64));
        }
        for (const auto& r : members) {
            const auto& e = r->entry;
            const bool is_replaced =
                workspace_.snapshot.successor_of(e) != nullptr && !is(defect::group_waits_for_replaced);
            const bool is_done =
                e.state == vouch::state::succeeded ||
                (e.state == vouch::state::dead && (is_replaced || is(defect::group_counts_dead_as_done)));
            const bool is_here = e.queue == of.queue || !is(defect::group_is_limited_to_the_queue);
            const bool is_counted = e.sequence <= of.sequence || !is(defect::group_forgets_later_members);
            n += !is_done && is_here && is_counted ? 1U : 0U;
        }
        return is(defect::group_counts_in_eight_bits) ? n & 0xffU : n;
    }

    void open_lane(const entry& e, bool was_head, bool gives_way, time_point now) {
        if ((is(defect::lane_stays_shut_after_death) && e.state == vouch::state::dead) ||
            (is(defect::lane_stays_shut_after_success) && e.state == vouch::state::succeeded) ||
            (is(defect::lane_stays_shut_after_cancel) && e.state == vouch::state::dead && !e.last_attempt_at)) {
            return;
        }
        auto next = workspace_.snapshot.next_in_lane(e.queue, e.lane, gives_way ? e.sequence : 0);
        if (is(defect::lane_waits_for_cancelled) && next) {
            for (const auto& r : workspace_.snapshot.in_queue(e.queue)) {
                const bool is_between = r->entry.sequence > e.sequence && r->entry.sequence < next->entry.sequence;
                if (is_between && r->entry.lane == e.lane) {
                    return;
                }
            }
        }
        if (is(defect::lane_opens_after_any_end) && !was_head) {
            next = workspace_.snapshot.next_in_lane(e.queue, e.lane, e.sequence);
        }
        if (is(defect::lane_looks_64_ahead) && next && next->entry.sequence > e.sequence + 64) {
            return;
        }
        if (is(defect::lane_orders_by_due)) {
            for (auto r = next; r; r = workspace_.snapshot.next_in_lane(e.queue, e.lane, r->entry.sequence)) {
                next = r->entry.due_at < next->entry.due_at ? r : next;
            }
        }
        for (; next && !next->gate; next = workspace_.snapshot.next_in_lane(e.queue, e.lane, next->entry.sequence)) {
            auto opened = *next;
            if (is(defect::lane_makes_the_next_due)) {
                opened.entry.due_at = now;
            }
            if (is(defect::lane_touches_the_next)) {
                opened.entry.updated_at = now;
            }
            opened.gate = gate_of(opened.entry);
            if (is(defect::opened_lane_hides_zero) && opened.gate == time_point{}) {
                opened.gate.reset();
            }
            workspace_.put(std::move(opened));
            if (!is(defect::lane_opens_for_all)) {
                return;
            }
        }
    }

    [[nodiscard]] bool wakes_parent(const entry& e) const {
        if (!vouch::is_terminal(e.state)) {
            return is(defect::parent_is_nudged_by_any_settle);
        }
        const bool is_cancelled = e.state == vouch::state::dead && !e.last_attempt_at;
        return !(is(defect::parent_is_not_nudged) || (is(defect::parent_is_not_nudged_by_cancel) && is_cancelled) ||
                 (is(defect::parent_is_not_nudged_by_death) && e.state == vouch::state::dead) ||
                 (is(defect::parent_is_not_nudged_by_success) && e.state == vouch::state::succeeded));
    }

    void wake(const entry& ended, time_point now) {
        const auto& parent = ended.parent;
        const auto p = workspace_.snapshot.find(parent);
        if (p && is(defect::parent_is_not_nudged_in_another_queue) && p->entry.queue != ended.queue) {
            return;
        }
        if (is(defect::parent_is_not_nudged_before_1970) && now < time_point{}) {
            return;
        }
        if (p && is(defect::claimed_parent_is_not_marked) && p->entry.state == vouch::state::claimed) {
            return;
        }
        if (p && is(defect::parent_waits_for_all_children)) {
            for (const auto& child : workspace_.snapshot.children_of(parent)) {
                if (vouch::is_live(child->entry.state)) {
                    return;
                }
            }
        }
        std::ignore = nudger(workspace_).nudge(parent, now); // absent or terminal: no effect
    }

    workspace& workspace_;
};

} // namespace mutants
