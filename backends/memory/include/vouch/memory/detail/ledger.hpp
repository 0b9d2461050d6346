// SPDX-License-Identifier: MIT
// All rows of a memory store and the journal of the open transaction. Three functions change rows: `insert`, `change`
// and `remove`. `commit` forgets the journal, `roll_back` undoes it. The ledger knows nothing of verbs and takes no
// lock.
//
// Rows change in place. While a transaction is open, readers of the committed state see the journal's copy of every row
// that the transaction has touched.
//
// Invariants: 1. Whatever may throw happens before the first index changes, or leaves what `roll_back` can undo.
//             2. `commit` and `roll_back` neither throw nor allocate.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <vouch/contract/entry.hpp>
#include <vouch/contract/lifecycle.hpp>
#include <vouch/memory/detail/indexes.hpp>
#include <vouch/memory/detail/layout.hpp>
#include <vouch/memory/detail/row_pool.hpp>
#include <vouch/memory/seam.hpp>

namespace vouch {
inline namespace v0 {
namespace memory::detail {

/// Whose view of the rows.
enum class view : bool {
    committed, ///< without the changes of the open transaction
    own,       ///< with them
};

template <class Seam>
class ledger {
  public:
    using row = typename layout<Seam>::row;
    using queue_index = typename layout<Seam>::queue_index;
    using group_index = typename layout<Seam>::group_index;
    using family_index = typename layout<Seam>::family_index;

    explicit ledger(Seam seam = {}) : seam_(std::move(seam)) {}

    // Reading.

    /// The life of a row in this view; null if the row does not exist in it.
    [[nodiscard]] const life* seen(const row& r, view v) const noexcept {
        if (v == view::own) {
            return r.purged ? nullptr : &r.entry;
        }
        if (r.fresh) {
            return nullptr;
        }
        const auto before = r.record == nowhere ? nowhere : journal_[r.record].before;
        return before == nowhere ? &r.entry : &lives_[before];
    }

    [[nodiscard]] row* find(const id& wanted, view v) const {
        return indexes_.find(wanted, [&](const row& r) { return seen(r, v) != nullptr; });
    }

    /// The newest generation of (queue, key).
    [[nodiscard]] row* find(const queue_index& queue, std::string_view key, view v) const {
        return indexes_.find(queue, key, [&](const row& r) { return seen(r, v) != nullptr && !has_successor(r, v); });
    }

    [[nodiscard]] bool has_successor(const row& r, view v) const noexcept {
        return r.successor != nullptr && seen(*r.successor, v) != nullptr;
    }

    /// The dead row that this one replaced. Null if there was none, if it is purged, or if its id belongs to another
    /// row now.
    [[nodiscard]] row* predecessor_of(const row& r, view v) const {
        auto* const found = r.entry.predecessor.is_nil() ? nullptr : find(r.entry.predecessor, v);
        return found != nullptr && found->successor == &r ? found : nullptr;
    }

    [[nodiscard]] queue_index* find_queue(std::string_view name) { return indexes_.find_queue(name); }
    [[nodiscard]] group_index* find_group(std::string_view name) { return indexes_.find_group(name); }
    [[nodiscard]] family_index* find_family(const id& parent) { return indexes_.find_family(parent); }
    [[nodiscard]] queue_index& queue(std::string_view name) { return indexes_.queue(name); }
    [[nodiscard]] std::vector<std::string> queue_names() const { return indexes_.queue_names(); }

    [[nodiscard]] std::uint64_t wakes(std::string_view queue) {
        const auto* const found = find_queue(queue);
        return found == nullptr ? 0 : found->wakes;
    }

    // Changing.

    /// Stores the entry that `make()` returns, an entry of this queue, with the next sequence. `predecessor` is the
    /// dead row that it replaces, or null.
    template <class Make>
    void insert(std::string_view queue_name, const Make& make, row* predecessor) {
        auto& in = queue(queue_name);
        touch(in);
        row& r = rows_.allocate(make);
        try {
            remember(r);
        } catch (...) {
            rows_.free(r);
            throw;
        }
        r.fresh = true;
        r.queue = &in;
        r.entry.sequence = ++last_sequence_;
        indexes_.link(r);
        indexes_.enter(r);
        if (predecessor != nullptr) {
            remember(*predecessor);
            indexes_.set_successor(*predecessor, &r);
        }
        seam_("inserted");
    }

    /// Lets `verb(life&) -> verdict` change a row and updates the indexes. If the verb throws, the transaction must be
    /// rolled back.
    template <class Verb>
    verdict change(row& r, Verb&& verb) {
        touch(*r.queue);
        auto& remembered = remember(r);
        if (!r.fresh && remembered.before == nowhere) {
            lives_.push_back(r.entry);
            remembered.before = lives_.size() - 1;
        }
        indexes_.leave(r);
        const verdict answer = verb(static_cast<life&>(r.entry));
        indexes_.enter(r);
        seam_("changed");
        return answer;
    }

    /// Requires that the row is terminal.
    void remove(row& r) {
        touch(*r.queue);
        remember(r);
        indexes_.leave(r);
        r.purged = true;
        seam_("removed");
    }

    /// Notes that a purge has looked at these terminal rows of this queue and state, and kept them.
    void pass(queue_index& in, state as, const std::vector<row*>& looked_at) {
        auto& to = in.ended(as).passed();
        to.make_room(in.all.size());
        for (auto* const r : looked_at) {
            r->ended_in->erase(*r);
            r->ended_in = &to;
            to.push(*r, r->place.when);
        }
    }

    /// Starts the next round: the next purge begins with the oldest row again.
    void begin_round(queue_index& in, state as) {
        in.ended(as).passed().make_room(in.all.size());
        in.ended(as).round = 1 - in.ended(as).round;
    }

    /// For tests that count the rows a purge looks at.
    void looked_at(const row&) {
        if constexpr (requires { seam_.looked(); }) {
            seam_.looked();
        }
    }

    // Ending the transaction.

    void commit() noexcept {
        for (auto& remembered : journal_) {
            auto& r = *remembered.target;
            r.record = nowhere;
            r.fresh = false;
            if (r.purged) {
                indexes_.unlink(r);
                rows_.free(r);
            } else if (is_terminal(r.entry.state)) {
                indexes_.leave_lane(r);
            }
        }
        for (auto* q : touched_queues_) {
            q->wakes += q->is_woken ? 1U : 0U;
            q->all.tidy();
        }
        forget();
    }

    void roll_back() noexcept {
        for (auto at = journal_.rbegin(); at != journal_.rend(); ++at) {
            restore(*at);
        }
        for (auto& remembered : journal_) {
            auto& r = *remembered.target;
            r.record = nowhere;
            if (r.fresh) {
                indexes_.unlink(r);
                rows_.free(r);
            }
        }
        for (auto* q : touched_queues_) {
            q->all.tidy();
        }
        forget();
    }

    /// Whether the open transaction may have made work due sooner in any queue.
    [[nodiscard]] bool has_wakes() const noexcept {
        for (const auto* q : touched_queues_) {
            if (q->is_woken) {
                return true;
            }
        }
        return false;
    }

  private:
    struct record {
        row* target = nullptr;
        std::size_t before = nowhere; ///< in `lives_`: the committed life, if the transaction may have changed it
    };

    void touch(queue_index& queue) {
        if (!queue.committed) {
            touched_queues_.push_back(&queue);
            queue.committed = {queue.counts, queue.next_due()};
        }
    }

    record& remember(row& r) {
        if (r.record == nowhere) {
            journal_.push_back({.target = &r});
            r.record = journal_.size() - 1;
        }
        return journal_[r.record];
    }

    void restore(record& what) noexcept {
        auto& r = *what.target;
        if (r.entered) {
            indexes_.leave(r);
        }
        if (r.fresh) {
            if (auto* const predecessor = predecessor_of(r, view::committed)) {
                indexes_.set_successor(*predecessor, nullptr);
            }
            return; // unlinked after every other row is restored
        }
        r.purged = false;
        if (what.before != nowhere) {
            std::swap(static_cast<life&>(r.entry), lives_[what.before]);
        }
        indexes_.enter(r);
    }

    void forget() noexcept {
        for (auto* q : touched_queues_) {
            q->committed.reset();
            q->is_woken = false;
        }
        touched_queues_.clear();
        journal_.clear();
        lives_.clear();
    }

    row_pool<row> rows_;
    indexes<Seam> indexes_;
    std::uint64_t last_sequence_ = 0;

    std::vector<record> journal_;
    std::vector<life> lives_;
    std::vector<queue_index*> touched_queues_;
    Seam seam_;
};

} // namespace memory::detail
} // namespace v0
} // namespace vouch
