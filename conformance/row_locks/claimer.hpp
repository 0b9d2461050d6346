// SPDX-License-Identifier: MIT
// The claim. It looks at the rows in the order of their gates, skips those that another transaction has locked, and locks
// the others in the same step, so that it never waits.
#pragma once

#include <algorithm>
#include <cstddef>
#include <tuple>
#include <vector>

#include <vouch/contract/entry.hpp>
#include <vouch/contract/lifecycle.hpp>
#include <vouch/contract/request.hpp>

#include "session.hpp"

namespace row_locks {

class claimer {
  public:
    explicit claimer(session& in) : session_(in) {}

    [[nodiscard]] std::vector<entry> claim(const vouch::claim_request& request) {
        if (session_.is(defect::claim_takes_turns)) {
            if (session_.is_locked_by_another(queue_of(request.queue))) {
                return {};
            }
            session_.lock(queue_of(request.queue));
        }
        auto chosen = select(request);
        if (session_.claims_wait()) {
            chosen = lock_and_select_again(request, chosen);
        } else if (session_.is(defect::claim_selects_then_locks)) {
            session_.pause("selected");
        }
        std::vector<entry> out;
        for (const auto& r : chosen) {
            out.push_back(take(*r, request));
        }
        std::sort(out.begin(), out.end(), [](const entry& a, const entry& b) {
            return std::tie(a.due_at, a.sequence) < std::tie(b.due_at, b.sequence);
        });
        return out;
    }

  private:
    [[nodiscard]] std::vector<row_ptr> select(const vouch::claim_request& request) const {
        std::vector<row_ptr> chosen;
        auto left = request.limit;
        session_.seen().walk(gates_of(request.queue), [&](const row_ptr& r) {
            if (left == 0 || *r->gate > request.now) {
                return false;
            }
            if (!request.only.is_nil() && request.only != r->entry.id) {
                return true;
            }
            if (!is_skipped(*r)) {
                chosen.push_back(r);
                left -= 1;
                return true;
            }
            left -= session_.is(defect::claim_counts_locked_rows) ? 1U : 0U;
            return !session_.is(defect::claim_stops_at_a_locked_row);
        });
        return chosen;
    }

    [[nodiscard]] bool is_skipped(const row& r) const {
        if (session_.claims_wait() || session_.is(defect::claim_takes_locked_rows)) {
            return false;
        }
        return session_.is_locked_by_another(row_of(r.entry.id)) || session_.shared().rolled_back.contains(r.entry.id);
    }

    /// Waits for the locks of all rows, and looks again until it has every lock that it needs.
    [[nodiscard]] std::vector<row_ptr> lock_and_select_again(const vouch::claim_request& request,
                                                             std::vector<row_ptr> chosen) {
        const auto is_held = [&](const row_ptr& r) { return session_.holds(row_of(r->entry.id)); };
        while (!std::all_of(chosen.begin(), chosen.end(), is_held)) {
            for (const auto& r : chosen) {
                session_.lock(row_of(r->entry.id));
            }
            chosen = select(request);
        }
        return chosen;
    }

    [[nodiscard]] entry take(row r, const vouch::claim_request& request) {
        if (session_.is(defect::claim_selects_then_locks)) {
            session_.lock(row_of(r.entry.id));
        } else if (!session_.is(defect::claim_locks_nothing) && !session_.is(defect::claim_takes_locked_rows)) {
            session_.lock_free(row_of(r.entry.id));
        }
        apply(r.entry, request);
        r.gate = gate_of(r.entry);
        const auto out = r.entry;
        session_.put(std::move(r));
        return out;
    }

    session& session_;
};

} // namespace row_locks
