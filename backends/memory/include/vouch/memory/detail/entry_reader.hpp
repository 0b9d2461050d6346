// SPDX-License-Identifier: MIT
// The operations of `reader` on one view of the ledger. Requires valid arguments and the store's lock.
#pragma once

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <vouch/contract/entry.hpp>
#include <vouch/contract/query.hpp>
#include <vouch/contract/state.hpp>
#include <vouch/memory/detail/layout.hpp>
#include <vouch/memory/detail/ledger.hpp>

namespace vouch {
inline namespace v0 {
namespace memory::detail {

template <class Seam>
class entry_reader {
  public:
    using row = typename layout<Seam>::row;

    entry_reader(ledger<Seam>& in, view as) noexcept : ledger_(in), view_(as) {}

    [[nodiscard]] std::optional<entry> find(const id& wanted) const {
        const auto* const r = ledger_.find(wanted, view_);
        return r == nullptr ? std::nullopt : std::optional{copy(*r, true)};
    }

    [[nodiscard]] std::vector<entry> list(const query& q) const {
        std::vector<entry> found;
        const auto take = [&](const row& r) {
            if (found.size() == q.limit) {
                return false;
            }
            if (matches(r, q)) {
                found.push_back(copy(r, q.payloads));
            }
            return true;
        };
        if (q.by == query::path::key) {
            generations(q, take);
        } else if (const auto* const rows = path(q)) {
            rows->for_each_after(q.after, take);
        }
        return found;
    }

    [[nodiscard]] state_counts counts(std::string_view queue) const {
        const auto* const q = ledger_.find_queue(queue);
        if (q == nullptr) {
            return {};
        }
        return view_ == view::committed && q->committed ? q->committed->counts : q->counts;
    }

    [[nodiscard]] std::optional<time_point> next_due(std::string_view queue) const {
        const auto* const q = ledger_.find_queue(queue);
        if (q == nullptr) {
            return std::nullopt;
        }
        return view_ == view::committed && q->committed ? q->committed->next_due : q->next_due();
    }

  private:
    [[nodiscard]] entry copy(const row& r, bool with_payload) const {
        entry out;
        for_each_field(
            [&](std::string_view name, auto& to, const auto& from) {
                if (with_payload || name != "payload") {
                    to = from;
                }
            },
            out, std::as_const(r.entry));
        if (const auto* const l = ledger_.seen(r, view_); l != &r.entry) {
            static_cast<life&>(out) = *l;
        }
        return out;
    }

    [[nodiscard]] bool matches(const row& r, const query& q) const {
        const auto* const l = ledger_.seen(r, view_);
        if (l == nullptr || r.entry.sequence <= q.after) {
            return false;
        }
        const bool on_path =
            (q.by != query::path::dead || l->state == state::dead) && (q.by != query::path::live || is_live(l->state));
        return on_path && (!q.state || l->state == *q.state) && (q.topic.empty() || r.entry.topic == q.topic);
    }

    /// The rows of any path but `key`, in the order of their sequences.
    [[nodiscard]] const sequence_list<row>* path(const query& q) const {
        if (q.by == query::path::group) {
            const auto* const group = ledger_.find_group(q.group);
            return group == nullptr ? nullptr : &group->members;
        }
        if (q.by == query::path::parent) {
            const auto* const family = ledger_.find_family(q.parent);
            return family == nullptr ? nullptr : &family->children;
        }
        const auto* const queue = ledger_.find_queue(q.queue);
        return queue == nullptr ? nullptr : &queue->all;
    }

    /// Every stored generation of (queue, key), oldest first.
    template <class Take>
    void generations(const query& q, const Take& take) const {
        const auto* const queue = ledger_.find_queue(q.queue);
        std::vector<const row*> rows;
        for (const auto* r = queue == nullptr ? nullptr : ledger_.find(*queue, q.key, view_); r != nullptr;
             r = ledger_.predecessor_of(*r, view_)) {
            rows.push_back(r);
        }
        std::reverse(rows.begin(), rows.end());
        for (const auto* const r : rows) {
            if (!take(*r)) {
                return;
            }
        }
    }

    ledger<Seam>& ledger_;
    view view_;
};

} // namespace memory::detail
} // namespace v0
} // namespace vouch
