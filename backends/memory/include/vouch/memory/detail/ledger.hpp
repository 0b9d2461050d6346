// SPDX-License-Identifier: MIT
// All rows, their indexes, and the journal of the one open transaction. Three primitives change it: `insert`, `change`
// and `remove`; `commit` forgets the journal and `roll_back` undoes it. It knows nothing of verbs and takes no lock.
//
// Rows change in place. Readers of the committed state meanwhile see each touched row as the journal remembers it.
//
// `Seam` is for tests (`seam.hpp`).
//
// Invariants: 1. A row is in `gates` exactly if it is live and not blocked, in one of `ended` exactly if it is
// terminal.
//             2. Whatever may throw comes before the first index is touched, or leaves what `roll_back` can undo.
//             3. `commit` and `roll_back` neither throw nor allocate.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <vouch/contract/entry.hpp>
#include <vouch/contract/lifecycle.hpp>
#include <vouch/memory/detail/hash_index.hpp>
#include <vouch/memory/detail/row.hpp>
#include <vouch/memory/seam.hpp>

namespace vouch {
inline namespace v0 {
namespace memory::detail {

enum class view : bool {
    committed, ///< of everybody outside the open transaction
    own,       ///< of the open transaction
};

template <class Seam>
class ledger {
  public:
    using row = typename shelf<Seam>::row;
    using queue_index = typename shelf<Seam>::queue_index;
    using lane_index = typename shelf<Seam>::lane_index;
    using group_index = typename shelf<Seam>::group_index;
    using family_index = typename shelf<Seam>::family_index;

    explicit ledger(Seam seam = {}) : seam_(std::move(seam)) {}

    // Looking.

    /// What the view sees of a row: its life, or null if the row does not exist for it.
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
        return by_id_.find(std::hash<id>{}(wanted),
                           [&](const row& r) { return r.entry.id == wanted && seen(r, v) != nullptr; });
    }

    /// The newest generation of (queue, key).
    [[nodiscard]] row* find(const queue_index& queue, std::string_view key, view v) const {
        return by_key_.find(key_hash(queue, key), [&](const row& r) {
            return r.queue == &queue && r.entry.key == key && seen(r, v) != nullptr && !has_successor(r, v);
        });
    }

    [[nodiscard]] bool has_successor(const row& r, view v) const noexcept {
        return r.successor != nullptr && seen(*r.successor, v) != nullptr;
    }

    /// The dead row this one replaced, or null: there was none, it is purged, or another row has its id now.
    [[nodiscard]] row* predecessor_of(const row& r, view v) const {
        auto* const found = r.entry.predecessor.is_nil() ? nullptr : find(r.entry.predecessor, v);
        return found != nullptr && found->successor == &r ? found : nullptr;
    }

    [[nodiscard]] queue_index* find_queue(std::string_view name) { return find_in(queues_, name); }
    [[nodiscard]] group_index* find_group(std::string_view name) { return find_in(groups_, name); }
    [[nodiscard]] family_index* find_family(const id& parent) { return find_in(families_, parent); }

    [[nodiscard]] std::uint64_t wakes(std::string_view queue) {
        const auto* const found = find_queue(queue);
        return found == nullptr ? 0 : found->wakes;
    }

    /// Names of queues that have held anything.
    [[nodiscard]] std::vector<std::string> queue_names() const {
        std::vector<std::string> names;
        for (const auto& [name, queue] : queues_) {
            names.push_back(name);
        }
        return names;
    }

    [[nodiscard]] queue_index& queue(std::string_view name) {
        if (last_queue_ == nullptr || last_queue_->first != name) {
            last_queue_ = &*queues_.try_emplace(std::string(name)).first;
        }
        return last_queue_->second;
    }

    // Changing.

    /// Stores what `make() -> entry` gives, an entry of this queue, with the next sequence. `predecessor` is the dead
    /// row it replaces, or null.
    template <class Make>
    void insert(std::string_view queue_name, const Make& make, row* predecessor) {
        auto& in = queue(queue_name);
        touch(in);
        row& r = allocate(make);
        try {
            remember(r);
        } catch (...) {
            free(r);
            throw;
        }
        r.fresh = true;
        r.queue = &in;
        r.entry.sequence = ++last_sequence_;
        link(r);
        enter(r);
        if (predecessor != nullptr) {
            remember(*predecessor);
            set_successor(*predecessor, &r);
        }
        seam_("inserted");
    }

    /// Lets `verb(life&) -> verdict` change a row and brings its places up to date. If the verb throws, only
    /// `roll_back` can follow.
    template <class Verb>
    verdict change(row& r, Verb&& verb) {
        touch(*r.queue);
        auto& remembered = remember(r);
        if (!r.fresh && remembered.before == nowhere) {
            lives_.push_back(r.entry);
            remembered.before = lives_.size() - 1;
        }
        leave(r);
        const verdict answer = verb(static_cast<life&>(r.entry));
        enter(r);
        seam_("changed");
        return answer;
    }

    /// Takes a terminal row out.
    void remove(row& r) {
        touch(*r.queue);
        remember(r);
        leave(r);
        r.purged = true;
        seam_("removed");
    }

    /// Notes that a purge has looked at these terminal rows, of this queue and state, and left them.
    void pass(queue_index& in, state as, const std::vector<row*>& looked_at) {
        auto& to = in.ended(as).passed();
        to.make_room(in.all.size());
        for (auto* const r : looked_at) {
            r->ended_in->erase(*r);
            r->ended_in = &to;
            to.push(*r, r->place.when);
        }
    }

    /// All have been looked at; the next purge begins again with the oldest.
    void begin_round(queue_index& in, state as) {
        in.ended(as).passed().make_room(in.all.size());
        in.ended(as).round = 1 - in.ended(as).round;
    }

    /// For tests that count what a purge looks at.
    void looked_at(const row&) {
        if constexpr (requires { seam_.looked(); }) {
            seam_.looked();
        }
    }

    // Ending.

    void commit() noexcept {
        for (auto& remembered : journal_) {
            auto& r = *remembered.target;
            r.record = nowhere;
            r.fresh = false;
            if (r.purged) {
                unlink(r);
                free(r);
            } else if (is_terminal(r.entry.state)) {
                leave_lane(r);
            }
        }
        for (auto* q : touched_queues_) {
            q->wakes += q->stirred ? 1U : 0U;
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
                unlink(r);
                free(r);
            }
        }
        for (auto* q : touched_queues_) {
            q->all.tidy();
        }
        forget();
    }

    /// Whether the open transaction may have brought work nearer in any queue.
    [[nodiscard]] bool is_stirred() const noexcept {
        for (const auto* q : touched_queues_) {
            if (q->stirred) {
                return true;
            }
        }
        return false;
    }

  private:
    struct record {
        row* target = nullptr;
        std::size_t before = nowhere; ///< in `lives_`: the committed life, if it may have changed
    };

    template <class Map, class Key>
    [[nodiscard]] static auto find_in(Map& map, const Key& key) -> typename Map::mapped_type* {
        const auto found = map.find(key);
        return found == map.end() ? nullptr : &found->second;
    }

    [[nodiscard]] static std::size_t key_hash(const queue_index& queue, std::string_view key) noexcept {
        return vouch::detail::mix(std::hash<std::string_view>{}(key) ^ std::hash<const void*>{}(&queue));
    }

    // The journal.

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
            leave(r);
        }
        if (r.fresh) {
            if (auto* const predecessor = predecessor_of(r, view::committed)) {
                set_successor(*predecessor, nullptr);
            }
            return; // unlinked once every other row is what it was
        }
        r.purged = false;
        if (what.before != nowhere) {
            std::swap(static_cast<life&>(r.entry), lives_[what.before]);
        }
        enter(r);
    }

    void forget() noexcept {
        for (auto* q : touched_queues_) {
            q->committed.reset();
            q->stirred = false;
        }
        touched_queues_.clear();
        journal_.clear();
        lives_.clear();
    }

    // Places that depend on what never changes.

    void link(row& r) {
        const auto& e = r.entry;
        by_id_.insert(std::hash<id>{}(e.id), r);
        if (!e.key.empty()) {
            by_key_.insert(key_hash(*r.queue, e.key), r);
        }
        r.queue->all.append(e.sequence, r);
        r.queue->gates.make_room(r.queue->all.size());
        r.queue->succeeded.waiting().make_room(r.queue->all.size());
        r.queue->dead.waiting().make_room(r.queue->all.size());
        if (!e.group.empty()) {
            r.group = &groups_[e.group];
            r.group->members.append(e.sequence, r);
        }
        if (!e.parent.is_nil()) {
            r.family = &families_[e.parent];
            r.family->children.append(e.sequence, r);
        }
        if (!e.lane.empty()) {
            r.lane = &r.queue->lanes[e.lane];
            r.lane->rows += 1;
            r.lane->live.append_gap(e.sequence);
        }
    }

    /// Not an error if `link` did not come to its end.
    void unlink(row& r) noexcept {
        const auto& e = r.entry;
        by_id_.erase(std::hash<id>{}(e.id), r);
        if (!e.key.empty()) {
            by_key_.erase(key_hash(*r.queue, e.key), r);
        }
        r.queue->all.erase(e.sequence);
        if (r.group != nullptr && take_out(r.group->members, e.sequence)) {
            groups_.erase(e.group);
        }
        if (r.family != nullptr && take_out(r.family->children, e.sequence)) {
            families_.erase(e.parent);
        }
        leave_lane(r);
    }

    void leave_lane(row& r) noexcept {
        if (auto* const lane = std::exchange(r.lane, nullptr)) {
            lane->rows -= 1;
            if (lane->rows == 0) {
                r.queue->lanes.erase(r.entry.lane);
            } else {
                lane->live.tidy();
            }
        }
    }

    /// Says whether the list is empty now.
    static bool take_out(sequence_list<row>& list, std::uint64_t sequence) noexcept {
        list.erase(sequence);
        list.tidy();
        return list.empty();
    }

    // Places and counts that depend on a row's life: `leave` takes back exactly what `enter` did.

    [[nodiscard]] static std::size_t unfinished(const row& r) noexcept {
        return r.entry.state == state::succeeded || (r.entry.state == state::dead && r.successor != nullptr) ? 0U : 1U;
    }

    void enter(row& r) noexcept {
        const bool live = is_live(r.entry.state);
        r.entered = true;
        r.queue->counts[r.entry.state] += 1;
        if (r.group != nullptr) {
            r.group->live += live ? 1U : 0U;
            r.group->unfinished += unfinished(r);
        }
        if (r.family != nullptr) {
            r.family->live += live ? 1U : 0U;
        }
        if (!live) {
            r.ended_in = &r.queue->ended(r.entry.state).waiting();
            r.ended_in->push(r, {r.entry.updated_at, r.entry.sequence});
        } else if (r.lane == nullptr) {
            open_gate(r);
        } else {
            r.lane->live.restore(r.entry.sequence, r);
            find_head(*r.lane);
        }
    }

    void leave(row& r) noexcept {
        const bool live = is_live(r.entry.state);
        r.entered = false;
        r.queue->counts[r.entry.state] -= 1;
        if (r.group != nullptr) {
            r.group->live -= live ? 1U : 0U;
            r.group->unfinished -= unfinished(r);
        }
        if (r.family != nullptr) {
            r.family->live -= live ? 1U : 0U;
        }
        if (!live) {
            r.ended_in->erase(r);
        } else if (r.lane == nullptr) {
            r.queue->gates.erase(r);
        } else {
            r.lane->live.erase(r.entry.sequence);
            find_head(*r.lane);
        }
    }

    void open_gate(row& r) noexcept {
        r.queue->gates.push(r, {*gate_of(r.entry), r.entry.sequence});
        r.queue->stirred |= r.entry.state != state::claimed;
    }

    /// Moves the lane's gate to its first live row.
    void find_head(lane_index& lane) noexcept {
        auto* const first = lane.live.first();
        if (first == lane.head) {
            return;
        }
        if (lane.head != nullptr) {
            lane.head->queue->gates.erase(*lane.head);
        }
        lane.head = first;
        if (first != nullptr) {
            open_gate(*first);
        }
    }

    void set_successor(row& predecessor, row* successor) noexcept {
        const bool entered = predecessor.entered;
        if (entered) {
            leave(predecessor);
        }
        predecessor.successor = successor;
        if (entered) {
            enter(predecessor);
        }
    }

    // Rows stay where they are; free ones are used again.

    template <class Make>
    row& allocate(const Make& make) {
        if (auto* const r = free_) {
            r->entry = make();
            free_ = std::exchange(r->next_free, nullptr);
            return *r;
        }
        if (blocks_.empty() || blocks_.back().size() == blocks_.back().capacity()) {
            blocks_.emplace_back().reserve(rows_per_block);
        }
        return blocks_.back().emplace_back(make);
    }

    void free(row& r) noexcept {
        r = row();
        r.next_free = free_;
        free_ = &r;
    }

    static constexpr std::size_t rows_per_block = 64;
    std::vector<std::vector<row>> blocks_; // full but the last; none ever grows beyond what it reserved
    row* free_ = nullptr;
    std::uint64_t last_sequence_ = 0;

    hash_index<row> by_id_;
    hash_index<row> by_key_;
    by_name<queue_index> queues_;                                     // none is ever removed
    typename by_name<queue_index>::value_type* last_queue_ = nullptr; // a batch is mostly for one queue
    by_name<group_index> groups_;
    std::unordered_map<id, family_index> families_;

    std::vector<record> journal_;
    std::vector<life> lives_;
    std::vector<queue_index*> touched_queues_;
    Seam seam_;
};

} // namespace memory::detail
} // namespace v0
} // namespace vouch
