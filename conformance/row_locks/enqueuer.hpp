// SPDX-License-Identifier: MIT
// The enqueue of one draft. It locks, each before it is read: the id, the predecessor, the key, the set of the parent's
// children, the group and the lane. A draft whose id or key another open transaction has stored waits for the end of
// that transaction.
#pragma once

#include <optional>
#include <utility>

#include <vouch/contract/draft.hpp>
#include <vouch/contract/entry.hpp>
#include <vouch/contract/lifecycle.hpp>
#include <vouch/contract/verdict.hpp>

#include "related_rows.hpp"
#include "session.hpp"

namespace row_locks {

class enqueuer {
  public:
    using receipt = vouch::receipt;

    explicit enqueuer(session& in) : session_(in) {}

    [[nodiscard]] receipt enqueue(const vouch::draft& d, time_point now) {
        const auto early_sequence = session_.is(defect::sequence_is_drawn_before_the_lane_lock) ? draw() : 0;
        if (related_rows(session_).locked(d.id, defect::id_is_unlocked, defect::id_is_read_before_its_lock)) {
            return {receipt::kind::duplicate, d.id};
        }
        row fresh{.entry = born(d, now)};
        auto& e = fresh.entry;
        if (!d.predecessor.is_nil()) {
            if (const auto answer = inherit(d, fresh); answer.what != receipt::kind::inserted) {
                return answer;
            }
        }
        if (const auto owner = key_owner(e); owner && d.predecessor.is_nil()) {
            return {receipt::kind::duplicate, owner->entry.id};
        }
        if (!e.parent.is_nil() && session_.locks_absence()) {
            session_.lock(children_of(e.parent)); // against a purge of the parent
        }
        if (!e.group.empty()) {
            session_.lock(group_of(e.group));
        }
        const bool is_blocked = !e.lane.empty() && lane_is_taken(e);
        e.sequence = early_sequence != 0 ? early_sequence : draw(); // under the lane's lock: lanes are in this order
        fresh.gate = is_blocked ? std::nullopt : gate_of(e);
        session_.put(std::move(fresh));
        return {receipt::kind::inserted, d.id};
    }

  private:
    [[nodiscard]] std::uint64_t draw() { return session_.next_sequence(); }

    /// Makes `to` the successor of the draft's predecessor. Any receipt but `inserted` says why it cannot.
    [[nodiscard]] receipt inherit(const vouch::draft& d, row& to) {
        if (related_rows(session_).is_absent_for_now(d.predecessor)) {
            return {};
        }
        const auto successor_at = [&](const row_ptr& of) {
            return of ? session_.seen().first(successor_of(of->entry.sequence)) : nullptr;
        };
        const auto early = successor_at(session_.seen().row_with(d.predecessor));
        const auto dead = related_rows(session_).locked(d.predecessor, defect::predecessor_is_unlocked,
                                                        defect::predecessor_is_read_before_its_lock);
        if (!dead || dead->entry.state != vouch::state::dead || dead->entry.queue != d.queue) {
            return {};
        }
        const bool is_early = session_.is(defect::successor_is_looked_up_before_the_lock);
        if (const auto has = is_early ? early : successor_at(dead)) {
            return {receipt::kind::duplicate, has->entry.id};
        }
        to.replaces = dead->entry.sequence;
        to.entry.key = dead->entry.key;
        to.entry.group = dead->entry.group;
        to.entry.lane = dead->entry.lane;
        to.entry.generation = dead->entry.generation + 1;
        return {receipt::kind::inserted, d.id};
    }

    /// The newest entry with the same key. Locks the key.
    [[nodiscard]] row_ptr key_owner(const entry& e) {
        if (e.key.empty()) {
            return nullptr;
        }
        const auto early = session_.seen().last(key_of(e));
        if (session_.is(defect::duplicate_is_unlocked) && early) {
            return early;
        }
        if (!session_.is(defect::key_is_unlocked)) {
            session_.lock(key_of(e));
        }
        return session_.is(defect::key_is_read_before_its_lock) ? early : session_.seen().last(key_of(e));
    }

    [[nodiscard]] bool lane_is_taken(const entry& e) {
        const bool early = session_.seen().first(lane_of(e)) != nullptr;
        if (!session_.is(defect::lane_is_unlocked_in_enqueue)) {
            session_.lock(lane_of(e));
        }
        const bool is_early = session_.is(defect::lane_is_read_before_its_lock);
        return is_early ? early : session_.seen().first(lane_of(e)) != nullptr;
    }

    session& session_;
};

} // namespace row_locks
