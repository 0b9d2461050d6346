// SPDX-License-Identifier: MIT
// One of several threads that do a bit of everything with the same entries: enqueue, claim, settle, extend, nudge,
// cancel, roll back and read. It requires of every answer what must hold whatever the other threads do, and remembers
// what its commits have acknowledged.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <vouch/conformance/any_store.hpp>
#include <vouch/conformance/detail/random_source.hpp>
#include <vouch/conformance/detail/steps.hpp>
#include <vouch/conformance/detail/threads/free_threads.hpp>
#include <vouch/conformance/detail/threads/numbered_work.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

/// A lane as the threads see it between their commits. A thread enters after the commit of its claim, and leaves before
/// it begins to settle.
class lane_gate {
  public:
    void enter(const entry& e) {
        trial::equal(holders_.fetch_add(1), 0, "other threads that hold an entry of the lane whose entry was claimed");
        trial::expect(e.sequence >= last_.exchange(e.sequence), "the entries of a lane are claimed in sequence");
    }
    void leave() { holders_ -= 1; }

  private:
    std::atomic<int> holders_ = 0;
    std::atomic<std::uint64_t> last_ = 0;
};

/// What all threads of one check share.
struct mixed_state {
    std::atomic<std::uint64_t> storing = 0; ///< entries that commits may have stored by now
    std::atomic<std::uint64_t> stored = 0;  ///< entries that commits have stored
    std::atomic<std::uint64_t> ending = 0;
    std::atomic<std::uint64_t> ended = 0;
    std::array<lane_gate, 2> lanes{};

    [[nodiscard]] lane_gate& lane(const std::string& name) { return lanes[name == "x" ? 0 : 1]; }
};

/// Entries below this number are enqueued before the threads start. They are members of groups, and all succeed.
inline constexpr std::uint64_t members_max = 100;

class mixed_worker {
  public:
    mixed_worker(any_store store, const vouch::capabilities& can, mixed_state& shared, std::size_t n,
                 std::uint64_t seed)
        : store_(std::move(store)), can_(can), shared_(shared), number_(n), random_(seed + n) {}

    /// One transaction, or some reads.
    void step() {
        const auto what = random_.below(100);
        if (what < 22) {
            enqueue_pair();
        } else if (what < 30) {
            enqueue_keyed();
        } else if (what < 50) {
            claim();
        } else if (what < 78) {
            settle(some_outcome());
        } else if (what < 84) {
            cancel();
        } else if (what < 90) {
            nudge();
        } else if (what < 94) {
            roll_back();
        } else {
            read();
        }
    }

    /// Ends all claims of this thread.
    void finish() {
        while (!held_.empty()) {
            settle(succeed{});
        }
    }

    /// Claims and ends everything that can be claimed.
    void drain() {
        std::size_t claimed = 0;
        do {
            claimed = acknowledged_.claims.size();
            claim();
            finish();
        } while (claimed != acknowledged_.claims.size());
    }

    void read() {
        switch (random_.below(4)) {
        case 0: read_counts(); break;
        case 1: read_list(); break;
        case 2: read_due(); break;
        default: read_one(some_id());
        }
    }

    [[nodiscard]] const acknowledged& acknowledgements() const noexcept { return acknowledged_; }

  private:
    static constexpr std::uint64_t numbers_per_thread = 1'000'000;

    [[nodiscard]] std::uint64_t next_number() { return (number_ + 1) * numbers_per_thread + 2 * ++made_; }

    void store_all(const std::vector<draft>& drafts) {
        std::vector<receipt> receipts;
        shared_.storing += drafts.size();
        commit_freely(store_, [&](auto& tx) { receipts = tx.enqueue(drafts, at(0)); });
        trial::equal(receipts.size(), drafts.size(), "one receipt for each draft");
        for (std::size_t i = 0; i < drafts.size(); ++i) {
            const auto& d = drafts[i];
            if (receipts[i].what == receipt::kind::duplicate && !d.key.empty()) {
                acknowledged_.duplicates.emplace_back(d.key, receipts[i].id);
                continue;
            }
            trial::equal(receipts[i], receipt{receipt::kind::inserted, d.id}, "the receipt for a new id");
            acknowledged_.stored.push_back(d);
            known_.push_back(d.id);
            shared_.stored += 1;
            trial::expect(store_.find(d.id).has_value(), "an entry is found once its commit has returned");
        }
    }

    void enqueue_pair() {
        const auto first = paired_bit + next_number();
        const std::string lane = can_.lanes && random_.chance(40) ? random_.one_of({"x", "y"}) : "";
        store_all({numbered_draft(first, {.lane = lane}), numbered_draft(first + 1, {.lane = lane})});
    }

    void enqueue_keyed() { // all threads use the same few keys
        store_all({numbered_draft(next_number(), {.key = "k" + std::to_string(random_.below(40))})});
    }

    void claim() {
        const auto number = next_number();
        std::vector<entry> claimed;
        commit_freely(store_, [&](auto& tx) {
            claimed = tx.claim(numbered_claim(number, 1 + number % 3));
            if (!claimed.empty()) {
                trial::equal(tx.find(claimed.front().id), std::optional(claimed.front()),
                             "an entry that its own transaction has claimed");
            }
        });
        for (const auto& e : claimed) {
            require_whole(e, true);
            trial::equal(e.state, state::claimed, "the state of a claimed entry");
            held_.push_back(acknowledged_.claims.size());
            acknowledged_.claims.push_back({.as = e, .number = number});
            known_.push_back(e.id);
            if (!e.lane.empty()) {
                shared_.lane(e.lane).enter(e);
            }
        }
    }

    [[nodiscard]] outcome some_outcome() {
        switch (random_.below(8)) {
        case 0: return retry{"failed", at(0)};
        case 1: return release{};
        case 2: return advance{};
        case 3: return bury{"buried", {}};
        default: return succeed{};
        }
    }

    void settle(outcome how) {
        if (held_.empty()) {
            return;
        }
        auto& c = acknowledged_.claims[held_.back()];
        const auto held = ticket_of(c.as);
        held_.pop_back();
        if (held.id.low < members_max && std::holds_alternative<bury>(how)) {
            how = succeed{};
        }
        if (auto* const s = std::get_if<succeed>(&how)) {
            s->result = mark_of(held);
        } else if (auto* const a = std::get_if<advance>(&how)) {
            a->progress = mark_of(held);
        }
        const bool ends = std::holds_alternative<succeed>(how) || std::holds_alternative<bury>(how);
        const bool extends = random_.chance(20);
        if (!c.as.lane.empty()) {
            shared_.lane(c.as.lane).leave();
        }
        shared_.ending += ends ? 1U : 0U;
        settlement said;
        auto extended = verdict::applied;
        commit_freely(store_, [&](auto& tx) {
            if (extends) {
                extended = tx.extend(std::span(&held, 1), at(0), numbered_lease).front();
            }
            said = settle_in(tx, held, how, at(0));
        });
        trial::equal(extended, verdict::applied, "the verdict on an extend of a held claim");
        trial::equal(said.verdict, verdict::applied, "the verdict on a settle of a held claim");
        c.end = how;
        if (said.group_completed) {
            acknowledged_.groups.push_back(c.as.group);
        }
        shared_.ended += ends ? 1U : 0U;
        read_one(held.id);
    }

    void cancel() {
        const auto which = some_id();
        if (which.low < members_max) {
            return;
        }
        shared_.ending += 1;
        auto said = verdict::unknown;
        commit_freely(store_, [&](auto& tx) { said = tx.cancel(which, "cancelled", at(0)); });
        trial::expect(said != verdict::unknown, "an entry whose commit has returned is known to a cancel");
        if (said == verdict::applied) {
            acknowledged_.cancelled.push_back(which);
            shared_.ended += 1;
        } else {
            shared_.ending -= 1;
        }
    }

    void nudge() {
        const auto which = some_id();
        auto said = verdict::unknown;
        commit_freely(store_, [&](auto& tx) { said = tx.nudge(which, at(0)); });
        trial::expect(said != verdict::unknown, "an entry whose commit has returned is known to a nudge");
    }

    void roll_back() {
        const auto d = numbered_draft(next_number(), {.key = "k" + std::to_string(random_.below(40))});
        try {
            auto tx = store_.begin();
            tx.enqueue(std::span(&d, 1), at(0));
            std::ignore = tx.claim(numbered_claim(next_number(), 2));
            yield_sometimes();
        } catch (const error& e) {
            if (e.kind() != error_kind::conflict && e.kind() != error_kind::busy) {
                throw;
            }
        }
        trial::expect(!store_.find(d.id), "a draft that was rolled back is not stored");
    }

    void read_counts() {
        const auto stored = shared_.stored.load();
        const auto ended = shared_.ended.load();
        const auto n = store_.counts("q");
        const auto ends = n[state::succeeded] + n[state::dead];
        trial::expect(n.total() >= stored, "counts include every entry whose commit had returned");
        trial::expect(ends >= ended, "counts include every end whose commit had returned");
        trial::expect(n.total() <= shared_.storing, "counts include only entries that a commit may have stored");
    }

    void read_list() {
        const auto stored = shared_.stored.load();
        const auto found = store_.list({.queue = "q", .limit = 10'000, .payloads = true});
        std::set<std::uint64_t> numbers;
        std::uint64_t last = 0;
        for (const auto& e : found) {
            require_whole(e, true);
            trial::expect(e.sequence > last, "a list is ordered by sequence");
            trial::expect(numbers.insert(e.id.low).second, "a list has no entry twice");
            last = e.sequence;
        }
        if (!found.empty()) {
            known_.push_back(found[random_.below(found.size())].id); // perhaps another thread's
        }
        trial::expect(found.size() >= stored, "a list has every entry whose commit had returned");
        for (const auto n : numbers) {
            trial::expect((n & paired_bit) == 0 || numbers.contains(n ^ 1U),
                          "a list has both entries of a transaction, or neither");
        }
    }

    void read_due() {
        const auto due = store_.next_due("q");
        trial::expect(!due || *due == at(0) || *due >= at(0) + numbered_lease, "next_due is the gate of some entry");
    }

    void read_one(const id& which) {
        const auto found = store_.find(which);
        trial::expect(found.has_value(), "an entry whose commit has returned is found");
        trial::equal(found->id, which, "the id of an entry that was found by its id");
        require_whole(*found, true);
    }

    [[nodiscard]] id some_id() {
        if (known_.empty() || random_.chance(20)) {
            return id_of(1 + random_.below(6)); // a member
        }
        return known_[random_.below(known_.size())];
    }

    any_store store_;
    vouch::capabilities can_;
    mixed_state& shared_;
    std::uint64_t number_;
    random_source random_;
    std::uint64_t made_ = 0;
    std::vector<id> known_{};
    std::vector<std::size_t> held_{}; ///< positions in `acknowledged_.claims`
    acknowledged acknowledged_{};
};

} // namespace conformance::detail
} // namespace v0
} // namespace vouch
