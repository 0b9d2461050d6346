// SPDX-License-Identifier: MIT
// The purge. It locks what it wants to remove and what that decision rests on: the rows, their keys, their groups and the
// sets of their children. Then it looks again, until it finds only what it has locked.
#pragma once

#include <algorithm>
#include <cstddef>
#include <tuple>
#include <vector>

#include <vouch/contract/entry.hpp>
#include <vouch/contract/request.hpp>
#include <vouch/contract/state.hpp>

#include "session.hpp"

namespace row_locks {

class purger {
  public:
    explicit purger(session& in) : session_(in) {}

    [[nodiscard]] std::size_t purge(const vouch::purge_request& request) {
        auto going = select(request);
        if (!session_.is(defect::purge_locks_nothing)) {
            while (lock(going) && !session_.is(defect::purge_looks_before_it_locks)) {
                going = select(request);
            }
        }
        for (const auto& r : going) {
            session_.remove(r->entry.id);
        }
        return going.size();
    }

  private:
    /// The newest of each family, oldest first; then the families, eldest first, up to the limit.
    [[nodiscard]] std::vector<row_ptr> select(const vouch::purge_request& request) const {
        const auto seen = session_.seen();
        std::vector<row_ptr> tips;
        seen.walk(queue_of(request.queue), [&](const row_ptr& r) {
            const auto& e = r->entry;
            if (is_terminal(e.state) && e.updated_at < request.before && request.state.value_or(e.state) == e.state &&
                !seen.first(successor_of(e.sequence))) {
                tips.push_back(r);
            }
            return true;
        });
        std::sort(tips.begin(), tips.end(), [](const row_ptr& a, const row_ptr& b) {
            return std::tie(a->entry.updated_at, a->entry.sequence) < std::tie(b->entry.updated_at, b->entry.sequence);
        });
        std::vector<row_ptr> going;
        for (const auto& tip : tips) {
            if (going.size() >= request.limit) {
                break;
            }
            add_family(tip, going);
        }
        going.resize(std::min(going.size(), request.limit));
        return going;
    }

    void add_family(const row_ptr& tip, std::vector<row_ptr>& to) const {
        std::vector<row_ptr> family;
        for (auto r = tip; r; r = predecessor(*r)) {
            const auto& e = r->entry;
            if (session_.seen().has_live(children_of(e.id)) ||
                (!e.group.empty() && session_.seen().has_live(group_of(e.group)))) {
                return;
            }
            family.push_back(r);
        }
        to.insert(to.end(), family.rbegin(), family.rend());
    }

    /// Null if there was none, if it is purged, or if its id belongs to another entry now.
    [[nodiscard]] row_ptr predecessor(const row& r) const {
        const auto found = r.replaces == 0 ? nullptr : session_.seen().row_with(r.entry.predecessor);
        return found && found->entry.sequence == r.replaces ? found : nullptr;
    }

    /// Returns whether there was anything left to lock.
    [[nodiscard]] bool lock(const std::vector<row_ptr>& rows) {
        bool was_missing = false;
        const auto lock_one = [&](const name& what) {
            was_missing = was_missing || !session_.holds(what);
            session_.lock(what);
        };
        for (const auto& r : rows) {
            const auto& e = r->entry;
            if (!e.key.empty() && !session_.is(defect::purge_locks_no_keys)) {
                lock_one(key_of(e));
            }
            lock_one(row_of(e.id));
            if (session_.locks_absence()) {
                lock_one(children_of(e.id));
            }
            if (!e.group.empty() && session_.locks_absence()) {
                lock_one(group_of(e.group));
            }
        }
        return was_missing;
    }

    session& session_;
};

} // namespace row_locks
