// SPDX-License-Identifier: MIT
// Removes ended entries, oldest first. Generations of one entry go together: the newest decides, and none is removed if
// a live entry still needs one of them.
//
// A purge looks at a bounded number of rows: first the oldest, then those that no purge has looked at in this round. So
// its cost depends on its limit, however many rows are still needed, and every row is looked at eventually.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include <vouch/contract/detail/purge_looks.hpp>
#include <vouch/contract/request.hpp>
#include <vouch/contract/state.hpp>
#include <vouch/memory/detail/layout.hpp>
#include <vouch/memory/detail/ledger.hpp>
#include <vouch/memory/detail/timeline.hpp>

namespace vouch {
inline namespace v0 {
namespace memory::detail {

template <class Seam>
class purger {
  public:
    using row = typename layout<Seam>::row;
    using queue_index = typename layout<Seam>::queue_index;

    purger(ledger<Seam>& in, const purge_request& what) : ledger_(in), request_(what) {}

    [[nodiscard]] std::size_t purge() {
        auto* const queue = ledger_.find_queue(request_.queue);
        if (queue == nullptr || request_.limit == 0) {
            return 0;
        }
        std::vector<row*> front;
        for (const auto as : states()) {
            auto& ended = queue->ended(as);
            add_oldest(ended.waiting(), front);
            add_oldest(ended.passed(), front);
        }
        const bool is_all = front.size() <= looks_;
        cut(front);
        std::size_t gone = remove_of(front, request_.limit).gone;
        for (const auto as : states()) {
            if (!is_all && gone < request_.limit) {
                gone += continue_round(*queue, as, request_.limit - gone);
            }
        }
        return gone;
    }

  private:
    struct looked {
        std::size_t at = 0;
        std::size_t gone = 0;
    };

    [[nodiscard]] std::vector<state> states() const {
        return request_.state ? std::vector{*request_.state} : std::vector{state::succeeded, state::dead};
    }

    /// Looks at the next rows of this round. Marks those that are still needed as passed.
    std::size_t continue_round(queue_index& queue, state as, std::size_t limit) {
        std::vector<row*> rows;
        add_oldest(queue.ended(as).waiting(), rows);
        const bool is_rest = rows.size() <= looks_;
        cut(rows);
        const auto done = remove_of(rows, limit);
        rows.resize(done.at);
        std::erase_if(rows, [](const row* r) { return r->purged; });
        ledger_.pass(queue, as, rows);
        if (is_rest && done.gone < limit) {
            ledger_.begin_round(queue, as);
        }
        return done.gone;
    }

    /// Adds up to one row more than may be looked at, so that the caller knows whether these are all.
    void add_oldest(const timeline<row>& of, std::vector<row*>& to) const {
        std::size_t added = 0;
        of.walk([&](row& r) {
            if (r.entry.updated_at >= request_.before || added > looks_) {
                return false;
            }
            to.push_back(&r);
            ++added;
            return true;
        });
    }

    /// Keeps the oldest rows, in order, as many as may be looked at.
    void cut(std::vector<row*>& rows) const {
        std::sort(rows.begin(), rows.end(), [](const row* a, const row* b) { return a->place.when < b->place.when; });
        rows.resize(std::min(rows.size(), looks_));
    }

    /// Removes the newest generations among `rows` with their predecessors, at most `limit` rows.
    looked remove_of(const std::vector<row*>& rows, std::size_t limit) {
        std::vector<row*> going;
        std::size_t at = 0;
        for (; at < rows.size() && going.size() < limit; ++at) {
            ledger_.looked_at(*rows[at]);
            if (rows[at]->successor == nullptr) {
                add_generations(*rows[at], going);
            }
        }
        going.resize(std::min(going.size(), limit)); // older generations go first
        for (auto* const r : going) {
            ledger_.remove(*r);
        }
        return {at, going.size()};
    }

    /// Whether a live entry still needs this terminal one.
    [[nodiscard]] bool is_needed(const row& r) const {
        const auto* const children = ledger_.find_family(r.entry.id);
        return (r.group != nullptr && r.group->live > 0) || (children != nullptr && children->live > 0);
    }

    /// Adds the newest generation with its predecessors, oldest first; none of them if one is still needed.
    void add_generations(row& newest, std::vector<row*>& going) const {
        const auto first = going.size();
        for (auto* r = &newest; r != nullptr; r = ledger_.predecessor_of(*r, view::own)) {
            going.push_back(r);
            if (is_needed(*r)) {
                going.resize(first);
                return;
            }
        }
        std::reverse(going.begin() + static_cast<std::ptrdiff_t>(first), going.end());
    }

    ledger<Seam>& ledger_;
    const purge_request& request_;
    std::size_t looks_ = vouch::detail::purge_looks(request_.limit);
};

} // namespace memory::detail
} // namespace v0
} // namespace vouch
