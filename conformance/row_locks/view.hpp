// SPDX-License-Identifier: MIT
// What a reader sees: the committed rows and, within a transaction, its own rows in place of those it has changed. The
// operations of `reader` on that. Requires valid arguments and the store's mutex.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <vouch/contract/entry.hpp>
#include <vouch/contract/matches.hpp>
#include <vouch/contract/query.hpp>
#include <vouch/contract/state.hpp>

#include "table.hpp"

namespace row_locks {

/// The uncommitted writes of a transaction.
struct own_rows {
    table rows{};
    std::set<id> hidden{}; ///< every entry it has written or removed; the committed row does not count any more

    void put(const row_ptr& r) {
        hidden.insert(r->entry.id);
        rows.put(r);
    }
    void remove(const id& gone) {
        hidden.insert(gone);
        rows.remove(gone);
    }
};

class view {
  public:
    explicit view(const table& committed) : committed_(committed) {}
    view(const table& committed, const own_rows& own) : committed_(committed), own_(&own) {}

    [[nodiscard]] row_ptr row_with(const id& wanted) const { return first(row_of(wanted)); }

    /// Calls `visit(row) -> bool` for the rows of a path in their order, until it returns false.
    template <class Visit>
    void walk(const name& along, const Visit& visit) const {
        static const table::path none{};
        const auto& theirs = committed_.along(along);
        const auto& mine = own_ == nullptr ? none : own_->rows.along(along);
        auto t = theirs.begin();
        auto m = mine.begin();
        while (t != theirs.end() || m != mine.end()) {
            const bool is_mine = t == theirs.end() || (m != mine.end() && m->first < t->first);
            const auto& r = is_mine ? (m++)->second : (t++)->second;
            const bool is_hidden = !is_mine && own_ != nullptr && own_->hidden.contains(r->entry.id);
            if (!is_hidden && !visit(r)) {
                return;
            }
        }
    }

    [[nodiscard]] row_ptr first(const name& along) const {
        row_ptr found;
        walk(along, [&](const row_ptr& r) {
            found = r;
            return false;
        });
        return found;
    }
    [[nodiscard]] row_ptr last(const name& along) const {
        row_ptr found;
        walk(along, [&](const row_ptr& r) {
            found = r;
            return true;
        });
        return found;
    }
    [[nodiscard]] bool has_live(const name& along) const {
        bool found = false;
        walk(along, [&](const row_ptr& r) {
            found = vouch::is_live(r->entry.state);
            return !found;
        });
        return found;
    }

    // The operations of `reader`.

    [[nodiscard]] std::optional<entry> find(const id& wanted) const {
        const auto r = row_with(wanted);
        return r ? std::optional(r->entry) : std::nullopt;
    }
    [[nodiscard]] std::vector<entry> list(const vouch::query& q) const {
        std::vector<entry> found;
        walk(path_of(q), [&](const row_ptr& r) {
            if (found.size() < q.limit && matches(r->entry, q)) {
                found.push_back(r->entry);
                found.back().payload = q.payloads ? r->entry.payload : std::string{};
            }
            return found.size() < q.limit;
        });
        return found;
    }
    [[nodiscard]] vouch::state_counts counts(std::string_view queue) const {
        vouch::state_counts out;
        walk(queue_of(std::string(queue)), [&](const row_ptr& r) {
            out[r->entry.state] += 1;
            return true;
        });
        return out;
    }
    [[nodiscard]] std::optional<time_point> next_due(std::string_view queue) const {
        const auto r = first(gates_of(std::string(queue)));
        return r ? r->gate : std::nullopt;
    }

  private:
    [[nodiscard]] static name path_of(const vouch::query& q) {
        switch (q.by) {
        case vouch::query::path::group: return group_of(q.group);
        case vouch::query::path::parent: return children_of(q.parent);
        case vouch::query::path::key: return {name::kind::key, q.queue, q.key};
        case vouch::query::path::dead:
        case vouch::query::path::live:
        case vouch::query::path::all: break;
        }
        return queue_of(q.queue);
    }

    const table& committed_;
    const own_rows* own_ = nullptr;
};

} // namespace row_locks
