// SPDX-License-Identifier: MIT
// The claim of a plain store, with the defects it may have.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <vouch/contract/entry.hpp>
#include <vouch/contract/lifecycle.hpp>
#include <vouch/contract/request.hpp>

#include "batch_defects.hpp"
#include "workspace.hpp"

namespace mutants {

class claimer {
  public:
    explicit claimer(workspace& on) : workspace_(on) {}

    [[nodiscard]] std::vector<entry> claim(vouch::claim_request r) {
        if (is(defect::claim_ignores_lease)) {
            r.lease = std::chrono::minutes{5};
        }
        if (is(defect::claim_ignores_worker)) {
            r.worker.clear();
        }
        if (is(defect::claim_ignores_only)) {
            r.only = {};
        }
        if (is(defect::claim_reads_a_clock)) {
            r.now = std::chrono::floor<vouch::duration>(std::chrono::system_clock::now());
        }
        if (is(defect::claim_takes_at_most_100)) {
            r.limit = std::min<std::size_t>(r.limit, 100);
        }
        if (is(defect::claim_takes_at_most_4096)) {
            r.limit = std::min<std::size_t>(r.limit, 4096);
        }
        if (is(defect::claim_limit_has_twelve_bits)) {
            r.limit &= 0xfffU;
        }
        if (is(defect::claim_before_1970_takes_nothing) && r.now < time_point{}) {
            r.limit = 0;
        }
        const bool is_unlimited = is(defect::claim_ignores_limit) || (is(defect::claim_of_zero_takes_all) && !r.limit);
        const auto wanted = is_unlimited ? std::size_t{1'000'000} : r.limit;
        std::vector<entry> taken;
        if (is(defect::claim_selects_row_by_row)) {
            while (taken.size() < wanted && take(select(r, 1), r, taken)) {
                workspace_.between_steps("claim row", true);
            }
        } else {
            auto chosen = select(r, wanted + (is(defect::claim_marks_one_more) ? 1 : 0));
            workspace_.between_steps("claim", is(defect::claim_selects_then_updates));
            take(chosen, r, taken);
            taken.resize(std::min(taken.size(), wanted));
        }
        return in_order(std::move(taken));
    }

  private:
    [[nodiscard]] bool is(defect d) const noexcept { return workspace_.is(d); }

    [[nodiscard]] bool may_take(const row& r, const vouch::claim_request& request) const {
        const auto& e = r.entry;
        if (workspace_.passed_over.contains(e.id)) {
            return false;
        }
        switch (workspace_.variant.defect) {
        case defect::claim_is_due_before_now: return *r.gate < request.now;
        case defect::claim_compares_unsigned: return as_unsigned(*r.gate) <= as_unsigned(request.now);
        case defect::claim_skips_the_first_time: return *r.gate != time_point::min();
        case defect::claim_skips_lapsed: return e.state != vouch::state::claimed;
        case defect::claim_skips_retrying: return e.state != vouch::state::retrying;
        case defect::claim_skips_exhausted: return e.attempts_max == 0 || e.attempts < e.attempts_max;
        case defect::claim_skips_expired: return !e.expires_at || *e.expires_at > request.now;
        case defect::claim_skips_its_own_worker: return e.worker.empty() || e.worker != request.worker;
        default: return true;
        }
    }

    [[nodiscard]] std::vector<row_ptr> select(const vouch::claim_request& r, std::size_t limit) const {
        std::vector<row_ptr> found;
        if (!r.only.is_nil()) {
            const auto e = workspace_.snapshot.find(r.only);
            const bool is_open = e && e->gate && *e->gate <= r.now && may_take(*e, r);
            const bool is_forced = e && vouch::is_live(e->entry.state) &&
                                   ((is(defect::claim_of_one_ignores_due) && e->gate) ||
                                    (is(defect::claim_of_one_ignores_lane) && !e->gate && e->entry.due_at <= r.now));
            const auto& names = workspace_.snapshot;
            const bool is_here = e && (names.as("queue", e->entry.queue) == names.as("queue", r.queue) ||
                                       is(defect::claim_of_one_ignores_queue));
            if ((is_open || is_forced) && is_here && (limit > 0 || is(defect::claim_of_one_ignores_limit))) {
                found.push_back(e);
            }
            return found;
        }
        const bool in_other_order = is(defect::claim_selects_by_sequence) || is(defect::claim_breaks_ties_backwards) ||
                                    is(defect::claim_prefers_retries) || is(defect::claim_orders_unsigned);
        const bool everywhere = is(defect::claim_ignores_queue);
        const auto queue = workspace_.snapshot.as("queue", r.queue);
        workspace_.snapshot.gates.walk({everywhere ? std::string{} : queue, time_point::min(), 0},
                                       [&](const auto& key, const row_ptr& e) {
                                           if (std::get<0>(key) != queue && !everywhere) {
                                               return false;
                                           }
                                           if (is_later(std::get<1>(key), r.now)) {
                                               return everywhere;
                                           }
                                           if (may_take(*e, r) && (found.size() < limit || in_other_order)) {
                                               found.push_back(e);
                                           }
                                           return found.size() < limit || in_other_order;
                                       });
        if (in_other_order) {
            std::stable_sort(found.begin(), found.end(),
                             [&](const row_ptr& a, const row_ptr& b) { return is_before(*a, *b); });
            found.resize(std::min(found.size(), limit));
        }
        return found;
    }

    [[nodiscard]] bool is_later(time_point gate, time_point now) const {
        return is(defect::claim_compares_doubles) ? as_double(gate) > as_double(now) : gate > now;
    }

    [[nodiscard]] bool is_before(const row& a, const row& b) const {
        if (is(defect::claim_orders_unsigned)) {
            return std::tuple(as_unsigned(*a.gate), a.entry.sequence) <
                   std::tuple(as_unsigned(*b.gate), b.entry.sequence);
        }
        if (is(defect::claim_selects_by_sequence)) {
            return a.entry.sequence < b.entry.sequence;
        }
        if (is(defect::claim_prefers_retries)) {
            return std::tuple(b.entry.attempts, a.gate, a.entry.sequence) <
                   std::tuple(a.entry.attempts, b.gate, b.entry.sequence);
        }
        return std::tuple(a.gate, b.entry.sequence) < std::tuple(b.gate, a.entry.sequence);
    }

    bool take(const std::vector<row_ptr>& chosen, const vouch::claim_request& r, std::vector<entry>& taken) {
        for (const auto& one : chosen) {
            const auto stored = workspace_.snapshot.find(one->entry.id); // another transaction may have removed it
            if (!stored) {
                continue;
            }
            auto changed = *stored;
            claim_one(changed, r);
            taken.push_back(is(defect::claim_returns_the_old_state) ? one->entry : changed.entry);
            if (is(defect::claim_omits_payloads)) {
                taken.back().payload.clear();
            }
            if (is(defect::claim_omits_trail_and_headers)) {
                taken.back().trail.clear();
                taken.back().headers.clear();
            }
            const auto e = changed.entry;
            if (is(defect::claim_deletes_often_lapsed) && e.lapses > 2) {
                workspace_.remove(e.id);
                taken.pop_back();
                continue;
            }
            if (is(defect::claim_marks_999) && taken.size() > 999) {
                continue;
            }
            workspace_.put(std::move(changed));
        }
        return !chosen.empty();
    }

    void claim_one(row& r, const vouch::claim_request& request) {
        auto& e = r.entry;
        const auto was = e;
        r.worker_before = e.worker;
        apply(e, request);
        const bool again = was.state == vouch::state::claimed;
        apply_lapse_defect(e, was);
        if (is(defect::claim_of_lapsed_keeps_epoch) && again) {
            e.epoch = was.epoch;
        }
        if (is(defect::claim_by_same_worker_keeps_epoch) && again && was.worker == e.worker) {
            e.epoch = was.epoch;
        }
        if (is(defect::claim_moves_due_at)) {
            e.due_at = request.now;
        }
        if (is(defect::claim_keeps_wake_mark)) {
            e.woken = was.woken;
        }
        if (is(defect::claim_counts_lapse_as_failure) && again) {
            e.failures += 1;
        }
        if (is(defect::claim_clears_error)) {
            e.last_error.clear();
        }
        if (is(defect::claim_leases_from_due)) {
            e.lease_until = e.due_at + request.lease;
        }
        if (is(defect::claim_leases_by_a_clock)) {
            e.lease_until = std::chrono::floor<vouch::duration>(std::chrono::system_clock::now()) + request.lease;
        }
        if (is(defect::claim_forgets_updated_at)) {
            e.updated_at = was.updated_at;
        }
        r.gate = e.lease_until;
        if ((is(defect::lease_to_zero_is_over) && r.gate == time_point{}) ||
            (is(defect::lease_to_the_last_time_is_over) && r.gate == time_point::max())) {
            r.gate = e.due_at;
        }
    }

    void apply_lapse_defect(entry& e, const entry& was) const {
        const bool again = was.state == vouch::state::claimed;
        switch (workspace_.variant.defect) {
        case defect::claim_counts_no_takeover: e.attempts = again ? was.attempts : e.attempts; break;
        case defect::claim_counts_the_first_lapse: e.attempts = was.attempts + 1; break;
        case defect::claim_forgives_the_second_lapse: e.attempts -= again && was.lapses == 1 ? 1U : 0U; break;
        case defect::claim_counts_no_lapse: e.lapses = was.lapses; break;
        case defect::claim_counts_all_as_lapsed: e.lapses = was.lapses + 1; break;
        case defect::claim_of_waiting_clears_lapses: e.lapses = again ? e.lapses : 0; break;
        default: break;
        }
    }

    [[nodiscard]] std::vector<entry> in_order(std::vector<entry> taken) const {
        std::sort(taken.begin(), taken.end(), [](const entry& a, const entry& b) {
            return std::tie(a.due_at, a.sequence) < std::tie(b.due_at, b.sequence);
        });
        if (is(defect::claim_returns_by_sequence)) {
            std::sort(taken.begin(), taken.end(),
                      [](const entry& a, const entry& b) { return a.sequence < b.sequence; });
        }
        if (is(defect::claim_returns_in_reverse)) {
            std::reverse(taken.begin(), taken.end());
        }
        apply_claim_defect(workspace_.variant, taken);
        return taken;
    }

    workspace& workspace_;
};

} // namespace mutants
