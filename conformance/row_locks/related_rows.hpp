// SPDX-License-Identifier: MIT
// Writes a changed row. If that ends the entry, it also reaches the entries related to it: the next in its lane, its
// parent, and the members of its group. Each is locked before it is read.
#pragma once

#include <cstddef>
#include <utility>

#include <vouch/contract/entry.hpp>
#include <vouch/contract/lifecycle.hpp>
#include <vouch/contract/state.hpp>

#include "session.hpp"

namespace row_locks {

class related_rows {
  public:
    explicit related_rows(session& in) : session_(in) {}

    /// Locks an entry, then reads it; null if it is absent. The lock is held in that case, too.
    [[nodiscard]] row_ptr locked(const id& which, defect unlocked, defect early) {
        const auto before = session_.seen().row_with(which);
        if (session_.is(unlocked)) {
            session_.pause("unlocked");
            return before;
        }
        session_.lock(row_of(which));
        return session_.is(early) ? before : session_.seen().row_with(which);
    }

    /// Whether the answer is that there is no such entry, with no promise that it stays so.
    [[nodiscard]] bool is_absent_for_now(const id& which) const {
        return !session_.locks_absence() && !session_.seen().row_with(which);
    }

    /// Locks the lane of an entry that is about to end. Lanes come before rows, so that fewer waits are circles.
    void lock_lane(const id& which, defect unless) {
        const auto r = session_.seen().row_with(which);
        const bool is_late = session_.is(unless) || session_.is(defect::next_of_lane_is_chosen_before_the_lock);
        if (r && !r->entry.lane.empty() && !is_late) {
            session_.lock(lane_of(r->entry));
        }
    }

    /// Writes the row, with the gate that it has now. Returns whether that completes its group.
    [[nodiscard]] bool write(row r, bool is_blocked, defect lane_unlocked, time_point now) {
        const auto e = r.entry;
        r.gate = is_blocked ? std::nullopt : gate_of(e);
        const auto left_before = session_.is(defect::group_is_counted_before_its_lock) ? unfinished(e.group) : 0;
        session_.put(std::move(r));
        if (vouch::is_live(e.state)) {
            return false;
        }
        if (!e.lane.empty()) {
            open_lane(e, lane_unlocked);
        }
        if (!e.parent.is_nil()) {
            wake(e.parent, now);
        }
        return e.state == vouch::state::succeeded && !e.group.empty() && is_complete(e, left_before);
    }

  private:
    void open_lane(const entry& ended, defect unlocked) {
        auto next = session_.seen().first(lane_of(ended));
        if (!session_.is(unlocked)) {
            session_.lock(lane_of(ended));
        }
        if (!session_.is(defect::next_of_lane_is_chosen_before_the_lock)) {
            next = session_.seen().first(lane_of(ended));
        }
        if (!next || next->gate) {
            return;
        }
        next = locked(next->entry.id, defect::next_of_lane_is_unlocked, defect::next_of_lane_is_read_before_its_lock);
        if (next) {
            auto opened = *next;
            opened.gate = gate_of(opened.entry);
            session_.put(std::move(opened));
        }
    }

    void wake(const id& parent, time_point now) {
        if (session_.is(defect::parent_is_unlocked_when_repeated)) {
            const auto peeked = session_.seen().row_with(parent);
            if (auto copy = peeked ? *peeked : row{};
                apply(copy.entry, vouch::nudge{}, now) != vouch::verdict::applied) {
                return;
            }
        }
        if (is_absent_for_now(parent)) {
            return;
        }
        // Locked even if there is nothing to write: another transaction must not claim the parent before this one ends.
        const auto p = locked(parent, defect::parent_is_unlocked, defect::parent_is_read_before_its_lock);
        if (!p) {
            return;
        }
        auto woken = *p;
        if (apply(woken.entry, vouch::nudge{}, now) == vouch::verdict::applied) {
            woken.gate = p->is_blocked() ? std::nullopt : gate_of(woken.entry);
            session_.put(std::move(woken));
        }
    }

    [[nodiscard]] bool is_complete(const entry& e, std::size_t left_before) {
        if (session_.is(defect::group_is_unlocked) || session_.is(defect::group_counts_uncommitted)) {
            return unfinished(e.group) == 0;
        }
        session_.lock(group_of(e.group));
        if (session_.is(defect::group_is_counted_before_its_lock)) {
            return left_before == 1;
        }
        return unfinished(e.group) == 0;
    }

    /// The members that have not succeeded. A dead one that has a successor does not count; its successor does.
    [[nodiscard]] std::size_t unfinished(const std::string& group) {
        std::size_t count = 0;
        session_.seen().walk(group_of(group), [&](const row_ptr& r) {
            const bool is_over = r->entry.state == vouch::state::succeeded ||
                                 session_.seen().first(successor_of(r->entry.sequence)) != nullptr;
            count += is_over || is_over_elsewhere(r->entry.id) ? 0U : 1U;
            return true;
        });
        return count;
    }

    [[nodiscard]] bool is_over_elsewhere(const id& member) {
        for (const auto* const other : session_.shared().open_ones) {
            const auto r = other->rows.find(member);
            if (session_.is(defect::group_counts_uncommitted) && r && r->entry.state == vouch::state::succeeded) {
                return true;
            }
        }
        return false;
    }

    session& session_;
};

} // namespace row_locks
