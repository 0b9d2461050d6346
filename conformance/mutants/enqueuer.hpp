// SPDX-License-Identifier: MIT
// The enqueue of a plain store, with the defects it may have. One object handles one batch.
#pragma once

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <vouch/contract/draft.hpp>
#include <vouch/contract/entry.hpp>
#include <vouch/contract/validate.hpp>
#include <vouch/contract/verdict.hpp>

#include "workspace.hpp"

namespace mutants {

class enqueuer {
  public:
    using receipt = vouch::receipt;

    explicit enqueuer(workspace& on) : workspace_(on), before_batch_(on.snapshot) {}

    [[nodiscard]] receipt enqueue(const vouch::draft& d, time_point now) {
        if (is(defect::enqueue_gives_up_after_100_duplicates) && duplicates_ > 100) {
            return {receipt::kind::inserted, d.id};
        }
        const auto answer = enqueue_one(d, now);
        duplicates_ += answer.what == receipt::kind::duplicate ? 1U : 0U;
        last_headers_ = d.headers;
        return answer;
    }

    [[nodiscard]] const snapshot& before_batch() const noexcept { return before_batch_; }

  private:
    [[nodiscard]] bool is(defect d) const noexcept { return workspace_.is(d); }
    [[nodiscard]] const snapshot& seen() const {
        return is(defect::batch_does_not_see_itself) ? before_batch_ : workspace_.snapshot;
    }

    [[nodiscard]] receipt enqueue_one(const vouch::draft& d, time_point now) {
        if (const auto stored = seen().find(stored_id_like(d.id)); stored && !is(defect::enqueue_overwrites)) {
            if (const auto same = holder(d); same && is(defect::key_is_checked_before_id)) {
                return {receipt::kind::duplicate, same->entry.id};
            }
            if (is(defect::same_id_is_refused)) {
                return {receipt::kind::refused, {}};
            }
            return {receipt::kind::duplicate, stored->entry.id};
        }
        row r{.entry = born(d, now)};
        auto& fresh = r.entry;
        if (is(defect::enqueue_ignores_due_at)) {
            fresh.due_at = now;
        }
        if (is(defect::due_of_zero_is_now) && d.due_at == time_point{}) {
            fresh.due_at = now;
        }
        if (is(defect::drafts_of_many_share_headers) && inserted_ > 64 && fresh.headers.empty()) {
            fresh.headers = last_headers_;
        }
        if (is(defect::default_due_is_never)) {
            fresh.due_at = d.due_at.value_or(time_point::max());
        }
        if (is(defect::result_leaves_pending)) {
            fresh.state = vouch::state::pending;
        }
        if (!d.predecessor.is_nil()) {
            if (const auto answer = inherit(d, r); answer.what != receipt::kind::inserted) {
                return answer;
            }
        } else if (const auto same = holder(d)) {
            return {receipt::kind::duplicate, is(defect::duplicate_names_the_draft) ? d.id : same->entry.id};
        }
        fresh.sequence = workspace_.next_sequence();
        if (is(defect::successor_takes_the_old_sequence) && !d.predecessor.is_nil()) {
            swap_sequences(d.predecessor, r);
        }
        inserted_ += 1;
        if ((is(defect::enqueue_keeps_1000_of_a_batch) && inserted_ > 1000) ||
            (is(defect::enqueue_keeps_8192_of_a_batch) && inserted_ > 8192)) {
            return {receipt::kind::inserted, d.id};
        }
        workspace_.between_steps("enqueue", is(defect::enqueue_checks_then_inserts));
        insert(std::move(r));
        return {receipt::kind::inserted, d.id};
    }

    /// The stored id that this store takes for the given one.
    [[nodiscard]] id stored_id_like(const id& given) const {
        if (is(defect::ids_keep_half_their_bits)) {
            for (const auto& r : workspace_.snapshot.all_rows()) {
                if (r->entry.id.low == given.low) {
                    return r->entry.id;
                }
            }
        }
        return given;
    }

    /// The row that holds the draft's key.
    [[nodiscard]] row_ptr holder(const vouch::draft& d) const {
        if (d.key.empty() || is(defect::key_is_ignored)) {
            return nullptr;
        }
        const auto loosely = [&](auto&& fits) {
            row_ptr found;
            for (const auto& r : seen().all_rows()) {
                found = fits(r->entry) ? r : found;
            }
            return found;
        };
        if (is(defect::key_ignores_queue)) {
            return loosely([&](const entry& e) { return e.key == d.key; });
        }
        if (is(defect::key_is_a_pattern)) {
            return loosely([&](const entry& e) { return e.queue == d.queue && is_like(e.key, d.key); });
        }
        if (is(defect::key_ignores_case)) {
            return loosely([&](const entry& e) {
                return e.queue == d.queue &&
                       std::equal(e.key.begin(), e.key.end(), d.key.begin(), d.key.end(),
                                  [](unsigned char a, unsigned char b) { return std::tolower(a) == std::tolower(b); });
            });
        }
        if (is(defect::key_is_compared_in_part)) {
            return loosely([&](const entry& e) {
                return e.queue == d.queue && !e.key.empty() && e.key.substr(0, 64) == d.key.substr(0, 64);
            });
        }
        const auto same = seen().find_by_key(d.queue, d.key, !is(defect::duplicate_names_the_oldest));
        if (same && is(defect::batch_forgets_its_first_drafts) && !before_batch_.find(same->entry.id) &&
            workspace_.snapshot.last_sequence > same->entry.sequence + 256) {
            return nullptr;
        }
        if (same && is(defect::key_is_unique_among_live_only) && is_terminal(same->entry.state)) {
            return nullptr;
        }
        if (same && is(defect::key_is_free_after_death) && same->entry.state == vouch::state::dead) {
            return nullptr;
        }
        return same;
    }

    /// Makes `to` the successor of the draft's predecessor. Any receipt but `inserted` says why it cannot.
    [[nodiscard]] receipt inherit(const vouch::draft& d, row& to) {
        auto& fresh = to.entry;
        const auto dead = seen().find(d.predecessor);
        if (!dead) {
            return is(defect::successor_of_absent) ? receipt{receipt::kind::inserted, d.id} : receipt{};
        }
        const bool may = dead->entry.state == vouch::state::dead ||
                         (is(defect::successor_of_live) && vouch::is_live(dead->entry.state)) ||
                         (is(defect::successor_of_succeeded) && dead->entry.state == vouch::state::succeeded);
        const bool is_like_it =
            is(defect::successor_in_a_queue_like_it) &&
            folded(dead->entry.queue, fold::case_of_letters) == folded(d.queue, fold::case_of_letters);
        if (!may || (dead->entry.queue != d.queue && !is(defect::successor_in_any_queue) && !is_like_it)) {
            return {};
        }
        if (const auto has = seen().successor_of(dead->entry); has && !is(defect::second_successor_is_inserted)) {
            if (is(defect::second_successor_is_refused)) {
                return {};
            }
            return {receipt::kind::duplicate,
                    is(defect::duplicate_names_the_predecessor) ? d.predecessor : has->entry.id};
        }
        to.replaces = dead->entry.sequence;
        fresh.key = is(defect::successor_loses_key) ? std::string{} : dead->entry.key;
        fresh.group = is(defect::successor_loses_group) ? std::string{} : dead->entry.group;
        fresh.lane = is(defect::successor_loses_lane) ? std::string{} : dead->entry.lane;
        if (is(defect::successor_names_are_lowered)) {
            fresh.key = folded(fresh.key, fold::case_of_letters);
            fresh.group = folded(fresh.group, fold::case_of_letters);
            fresh.lane = folded(fresh.lane, fold::case_of_letters);
        }
        fresh.generation = is(defect::successor_is_first_generation) ? 1 : dead->entry.generation + 1;
        fresh.attempts = is(defect::successor_inherits_attempts) ? dead->entry.attempts : 0;
        fresh.lapses = is(defect::successor_inherits_lapses) ? dead->entry.lapses : 0;
        fresh.due_at = is(defect::successor_keeps_due_at) ? dead->entry.due_at : fresh.due_at;
        if (is(defect::successor_changes_its_predecessor)) {
            auto changed = *dead;
            changed.entry.updated_at = fresh.created_at;
            workspace_.put(std::move(changed));
        }
        return {receipt::kind::inserted, d.id};
    }

    void swap_sequences(const id& dead, row& fresh) {
        auto moved = *workspace_.snapshot.find(dead);
        std::swap(moved.entry.sequence, fresh.entry.sequence);
        fresh.replaces = moved.entry.sequence;
        workspace_.remove(dead);
        workspace_.put(std::move(moved));
    }

    void insert(row r) {
        const auto& e = r.entry;
        bool is_blocked = !e.lane.empty() && workspace_.snapshot.next_in_lane(e.queue, e.lane) != nullptr;
        if (is(defect::lane_ignores_queue) && !e.lane.empty()) {
            for (const auto& other : workspace_.snapshot.all_rows()) {
                is_blocked = is_blocked || (vouch::is_live(other->entry.state) && other->entry.lane == e.lane);
            }
        }
        if (is(defect::lane_is_held_by_dead) && !e.lane.empty()) {
            for (const auto& other : workspace_.snapshot.in_queue(e.queue)) {
                is_blocked = is_blocked || (other->entry.state == vouch::state::dead && other->entry.lane == e.lane);
            }
        }
        if (const auto head = workspace_.snapshot.next_in_lane(e.queue, e.lane);
            head && is(defect::lane_passes_future) && head->entry.due_at > e.created_at) {
            is_blocked = false;
        }
        if (is(defect::lane_is_a_pattern) && !e.lane.empty()) {
            for (const auto& other : workspace_.snapshot.in_queue(e.queue)) {
                is_blocked = is_blocked || (vouch::is_live(other->entry.state) && is_like(other->entry.lane, e.lane));
            }
        }
        if (is(defect::lane_counts_in_eight_bits) && is_blocked) {
            std::size_t before = 0;
            for (auto next = workspace_.snapshot.next_in_lane(e.queue, e.lane); next;
                 next = workspace_.snapshot.next_in_lane(e.queue, e.lane, next->entry.sequence)) {
                before += 1;
            }
            is_blocked = (before & 0xffU) != 0;
        }
        if (is(defect::lane_is_ignored)) {
            is_blocked = false;
        }
        if (!is_blocked) {
            r.gate = gate_of(e);
        }
        if (is(defect::blocked_loses_due_at) && is_blocked) {
            r.entry.due_at = e.created_at;
        }
        workspace_.put(std::move(r));
    }

    workspace& workspace_;
    snapshot before_batch_;
    std::size_t inserted_ = 0;
    std::size_t duplicates_ = 0;
    vouch::header_list last_headers_{};
};

} // namespace mutants
