// SPDX-License-Identifier: MIT
// The purge of a plain store, with the defects it may have.
#pragma once

#include <algorithm>
#include <cstddef>
#include <tuple>
#include <vector>

#include <vouch/contract/entry.hpp>
#include <vouch/contract/request.hpp>
#include <vouch/contract/state.hpp>

#include "workspace.hpp"

namespace mutants {

class purger {
  public:
    explicit purger(workspace& on) : workspace_(on) {}

    [[nodiscard]] std::size_t purge(const vouch::purge_request& request) {
        std::size_t limit = request.limit;
        if (is(defect::purge_ignores_limit) || (is(defect::purge_of_zero_takes_all) && limit == 0)) {
            limit = 1'000'000;
        }
        if (is(defect::purge_takes_at_most_100)) {
            limit = std::min<std::size_t>(limit, 100);
        }
        if (is(defect::purge_takes_at_most_1000) || is(defect::purge_takes_at_most_4096)) {
            limit = std::min<std::size_t>(limit, is(defect::purge_takes_at_most_1000) ? 1000 : 4096);
        }
        std::vector<row_ptr> purged;
        for (const auto& r : purgeable(request)) {
            if (purged.size() < limit) {
                add_generations(*r, purged);
            }
        }
        purged.resize(std::min(purged.size(), limit)); // older generations come first
        workspace_.between_steps("purge", false);
        for (const auto& r : purged) {
            workspace_.remove(r->entry.id);
        }
        return is(defect::purge_does_not_count) ? 0 : purged.size();
    }

  private:
    [[nodiscard]] bool is(defect d) const noexcept { return workspace_.is(d); }

    /// The newest generations that are old enough, oldest first. `is_needed` is not checked yet.
    [[nodiscard]] std::vector<row_ptr> purgeable(const vouch::purge_request& request) const {
        std::vector<row_ptr> found;
        for (const auto& r : is(defect::purge_ignores_queue) ? workspace_.snapshot.all_rows()
                                                             : workspace_.snapshot.in_queue(request.queue)) {
            const auto& e = r->entry;
            const auto ended = is(defect::purge_compares_creation_time) ? e.created_at : e.updated_at;
            const bool is_old =
                is(defect::purge_includes_the_boundary) ? ended <= request.before : is_before(ended, request.before);
            const bool fits = !request.state || e.state == *request.state || is(defect::purge_ignores_state);
            const bool is_over = is_terminal(e.state) ||
                                 (is(defect::purge_takes_pending) && e.state == vouch::state::pending) ||
                                 (is(defect::purge_takes_claimed) && e.state == vouch::state::claimed);
            const bool is_last = !workspace_.snapshot.successor_of(e) || is(defect::purge_takes_predecessors_alone);
            if (is_old && fits && is_over && is_last) {
                found.push_back(r);
            }
        }
        std::sort(found.begin(), found.end(), [&](const row_ptr& x, const row_ptr& y) {
            const auto& a = is(defect::purge_takes_newest_first) ? y->entry : x->entry;
            const auto& b = is(defect::purge_takes_newest_first) ? x->entry : y->entry;
            if (is(defect::purge_orders_unsigned)) {
                return std::tuple(as_unsigned(a.updated_at), a.sequence) <
                       std::tuple(as_unsigned(b.updated_at), b.sequence);
            }
            return std::tie(a.updated_at, a.sequence) < std::tie(b.updated_at, b.sequence);
        });
        return found;
    }

    [[nodiscard]] bool is_before(time_point ended, time_point before) const {
        switch (workspace_.variant.defect) {
        case defect::purge_before_zero_takes_all: return before == time_point{} || ended < before;
        case defect::purge_compares_unsigned: return as_unsigned(ended) < as_unsigned(before);
        case defect::purge_compares_doubles: return as_double(ended) < as_double(before);
        case defect::purge_skips_what_ended_before_1970: return ended >= time_point{} && ended < before;
        default: return ended < before;
        }
    }

    void add_generations(const row& newest, std::vector<row_ptr>& purged) const {
        std::vector<row_ptr> chain;
        for (auto r = workspace_.snapshot.find(newest.entry.id); r; r = workspace_.snapshot.predecessor_of(*r)) {
            if (is_needed(*r)) {
                return;
            }
            chain.push_back(r);
            if (is(defect::purge_leaves_predecessors) || is(defect::purge_takes_predecessors_alone)) {
                break;
            }
            if (is(defect::purge_follows_eight_generations) && chain.size() == 8) {
                break;
            }
        }
        purged.insert(purged.end(), chain.rbegin(), chain.rend());
    }

    [[nodiscard]] bool is_needed(const row& r) const {
        const auto has_live = [&](const std::vector<row_ptr>& some) {
            const auto is_live = [](const auto& x) { return vouch::is_live(x->entry.state); };
            const auto live = std::count_if(some.begin(), some.end(), is_live);
            return is(defect::purge_counts_needs_in_eight_bits) ? live % 256 != 0 : live != 0;
        };
        const auto& e = r.entry;
        return (!e.group.empty() && !is(defect::purge_ignores_groups) &&
                has_live(workspace_.snapshot.members(e.group))) ||
               (!is(defect::purge_ignores_children) && has_live(workspace_.snapshot.children_of(e.id)));
    }

    workspace& workspace_;
};

} // namespace mutants
