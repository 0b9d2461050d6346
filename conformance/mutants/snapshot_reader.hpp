// SPDX-License-Identifier: MIT
// The reads of a plain store on a snapshot, with the defects they may have.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <vouch/contract/entry.hpp>
#include <vouch/contract/query.hpp>
#include <vouch/contract/state.hpp>

#include "snapshot.hpp"
#include "value_defects.hpp"
#include "variant.hpp"

namespace mutants {

class snapshot_reader {
  public:
    snapshot_reader(const snapshot& at, const variant& how) : snapshot_(at), variant_(how) {}

    [[nodiscard]] std::optional<entry> find(const id& wanted) const {
        const auto found = snapshot_.find(wanted);
        if (!found || (is(defect::find_hides_terminal) && is_terminal(found->entry.state))) {
            return std::nullopt;
        }
        auto copy = found->entry;
        if (is(defect::find_omits_payload)) {
            copy.payload.clear();
        }
        return copy;
    }

    [[nodiscard]] std::vector<entry> list(const vouch::query& q) const {
        std::size_t limit = q.limit;
        if (is(defect::list_ignores_limit) || (is(defect::list_of_zero_returns_all) && limit == 0)) {
            limit = 1'000'000;
        }
        if (is(defect::list_returns_at_most_100)) {
            limit = std::min<std::size_t>(limit, 100);
        }
        if (is(defect::list_returns_at_most_4096)) {
            limit = std::min<std::size_t>(limit, 4096);
        }
        if (is(defect::list_of_dead_has_1000) && q.by == vouch::query::path::dead) {
            limit = std::min<std::size_t>(limit, 1000);
        }
        std::vector<entry> found;
        std::size_t seen = 0;
        for (const auto& r : path(q)) {
            const auto& e = r->entry;
            const auto from = is(defect::list_skips_at_the_edge) && q.after > 0 ? q.after + 1 : q.after;
            const bool is_after = is(defect::list_repeats_the_edge) ? e.sequence >= q.after : e.sequence > from;
            if ((!is_after && !is(defect::list_ignores_after)) || found.size() >= limit) {
                continue;
            }
            seen += 1;
            const bool is_in_time = (!is(defect::list_limits_before_it_filters) || seen <= limit) &&
                                    (!is(defect::list_filters_1000_rows) || seen <= 1000);
            if (fits(e, q) && is_in_time) {
                found.push_back(e);
                if ((!q.payloads && !is(defect::list_always_has_payloads)) || is(defect::list_never_has_payloads)) {
                    found.back().payload.clear();
                }
                if (is(defect::list_omits_headers)) {
                    found.back().headers.clear();
                }
                if (is(defect::list_omits_lapses)) {
                    found.back().lapses = 0;
                }
            }
        }
        if (is(defect::full_page_loses_its_last) && found.size() == limit && limit >= 256) {
            found.pop_back();
        }
        if (is(defect::list_is_reversed)) {
            std::reverse(found.begin(), found.end());
        }
        if (is(defect::list_orders_by_due)) {
            std::stable_sort(found.begin(), found.end(),
                             [](const entry& a, const entry& b) { return a.due_at < b.due_at; });
        }
        return found;
    }

    [[nodiscard]] vouch::state_counts counts(std::string_view queue) const {
        vouch::state_counts n;
        for (const auto& r :
             is(defect::counts_ignore_queue) ? snapshot_.all_rows() : snapshot_.in_queue(std::string(queue))) {
            const auto& e = r->entry;
            const bool is_hidden = (is(defect::counts_omit_blocked) && !r->gate && vouch::is_live(e.state)) ||
                                   (is(defect::counts_omit_replaced) && snapshot_.successor_of(e));
            const auto as = is(defect::counts_show_retrying_as_pending) && e.state == vouch::state::retrying
                                ? vouch::state::pending
                                : e.state;
            n[as] += is_hidden ? 0U : 1U;
        }
        for (auto& count : n.by_state) {
            count = is(defect::counts_have_eight_bits) ? count & 0xffU : count;
            count = is(defect::counts_have_twelve_bits) ? count & 0xfffU : count;
            count = is(defect::counts_stop_at_1000) ? std::min<std::size_t>(count, 1000) : count;
        }
        return n;
    }

    [[nodiscard]] std::optional<time_point> next_due(std::string_view queue) const {
        std::optional<time_point> next;
        const auto name = snapshot_.as("queue", std::string(queue));
        if (is(defect::next_due_looks_at_1000)) {
            return next_due_of_1000(name);
        }
        if (is(defect::next_due_compares_unsigned)) {
            return next_due_unsigned(name);
        }
        const bool everywhere = is(defect::next_due_ignores_queue);
        const auto walk = [&](const auto& key, const row_ptr& r) {
            if (std::get<0>(key) != name && !everywhere) {
                return false;
            }
            if (is(defect::next_due_ignores_claimed) && r->entry.state == vouch::state::claimed) {
                return true;
            }
            if (is(defect::next_due_ignores_retrying) && r->entry.state == vouch::state::retrying) {
                return true;
            }
            if ((is(defect::next_due_hides_zero) && r->gate == time_point{}) ||
                (is(defect::next_due_hides_the_last_time) && r->gate == time_point::max()) ||
                (is(defect::next_due_hides_the_first_time) && r->gate == time_point::min())) {
                return true;
            }
            const auto gate = is(defect::next_due_is_due_at) ? r->entry.due_at : std::get<1>(key);
            next = next && !is(defect::next_due_is_the_last) ? std::min(*next, gate) : gate;
            return everywhere || is(defect::next_due_is_due_at) || is(defect::next_due_is_the_last);
        };
        snapshot_.gates.walk({everywhere ? std::string{} : name, time_point::min(), 0}, walk);
        if (is(defect::next_due_shows_blocked)) {
            for (const auto& r : snapshot_.in_queue(name)) {
                if (!r->gate && vouch::is_live(r->entry.state)) {
                    next = next ? std::min(*next, r->entry.due_at) : r->entry.due_at;
                }
            }
        }
        return next;
    }

  private:
    [[nodiscard]] bool is(defect d) const noexcept { return variant_.is(d); }

    [[nodiscard]] std::optional<time_point> next_due_of_1000(const std::string& queue) const {
        std::optional<time_point> next;
        std::size_t seen = 0;
        for (const auto& r : snapshot_.in_queue(queue)) {
            if (r->gate && ++seen <= 1000) {
                next = next ? std::min(*next, *r->gate) : *r->gate;
            }
        }
        return next;
    }

    [[nodiscard]] std::optional<time_point> next_due_unsigned(const std::string& queue) const {
        std::optional<time_point> next;
        for (const auto& r : snapshot_.in_queue(queue)) {
            if (r->gate && (!next || as_unsigned(*r->gate) < as_unsigned(*next))) {
                next = r->gate;
            }
        }
        return next;
    }

    [[nodiscard]] bool fits(const entry& e, const vouch::query& q) const {
        using path = vouch::query::path;
        const bool is_dead = e.state == vouch::state::dead || is(defect::list_of_dead_has_all_terminal);
        const bool is_live =
            vouch::is_live(e.state) && !(is(defect::list_of_live_omits_claimed) && e.state == vouch::state::claimed);
        const bool is_there = (q.by != path::dead || (is_dead && is_terminal(e.state))) &&
                              (q.by != path::live || is_live) &&
                              !(is(defect::list_of_all_omits_terminal) && q.by == path::all && is_terminal(e.state));
        const bool has_topic =
            q.topic.empty() || snapshot_.as("topic", e.topic) == snapshot_.as("topic", q.topic) ||
            (is(defect::topic_is_a_pattern) && is_like(e.topic, q.topic)) ||
            (is(defect::topic_of_dead_is_a_pattern) && q.by == path::dead && is_like(e.topic, q.topic)) ||
            (is(defect::topic_of_group_ignores_case) && q.by == path::group &&
             folded(e.topic, fold::case_of_letters) == folded(q.topic, fold::case_of_letters)) ||
            is(defect::list_ignores_topic) || (is(defect::list_matches_topic_prefixes) && e.topic.starts_with(q.topic));
        const bool has_state = !q.state || e.state == *q.state || is(defect::list_ignores_state);
        return is_there && has_topic && has_state;
    }

    [[nodiscard]] std::vector<row_ptr> path(const vouch::query& q) const {
        using path = vouch::query::path;
        auto found = [&] {
            switch (q.by) {
            case path::group: return is(defect::group_is_a_pattern) ? groups_like(q.group) : snapshot_.members(q.group);
            case path::parent: return snapshot_.children_of(q.parent);
            case path::key:
            case path::dead:
            case path::live:
            case path::all: break;
            }
            return snapshot_.in_queue(q.queue);
        }();
        if (q.by == path::key) {
            std::erase_if(found, [&](const row_ptr& r) {
                const bool is_it = snapshot_.as("key", r->entry.key) == snapshot_.as("key", q.key) ||
                                   (is(defect::key_is_a_pattern) && is_like(r->entry.key, q.key));
                return !is_it || (is(defect::list_of_key_has_newest_only) && snapshot_.successor_of(r->entry));
            });
        }
        if (q.by == path::group && is(defect::list_of_group_has_one_queue) && !found.empty()) {
            std::erase_if(found,
                          [queue = found.front()->entry.queue](const row_ptr& r) { return r->entry.queue != queue; });
        }
        if (q.by == path::parent && is(defect::list_of_children_has_live_only)) {
            std::erase_if(found, [](const row_ptr& r) { return is_terminal(r->entry.state); });
        }
        const auto cut = [&](defect d, path by, std::size_t most) {
            found.resize(is(d) && q.by == by ? std::min(found.size(), most) : found.size());
        };
        cut(defect::list_of_key_has_sixteen, path::key, 16);
        cut(defect::list_of_group_has_256, path::group, 256);
        cut(defect::list_of_children_has_256, path::parent, 256);
        return found;
    }

    [[nodiscard]] std::vector<row_ptr> groups_like(const std::string& pattern) const {
        auto found = snapshot_.all_rows();
        std::erase_if(found, [&](const row_ptr& r) { return !is_like(r->entry.group, pattern); });
        std::sort(found.begin(), found.end(),
                  [](const row_ptr& a, const row_ptr& b) { return a->entry.sequence < b->entry.sequence; });
        return found;
    }

    const snapshot& snapshot_;
    const variant& variant_;
};

} // namespace mutants
