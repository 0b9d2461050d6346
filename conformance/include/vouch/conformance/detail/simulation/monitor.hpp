// SPDX-License-Identifier: MIT
// Checks the committed calls of a simulation against what must hold at any time. A violation throws a `failure`:
//  - A ticket is given out once, and only the current ticket settles.
//  - Terminal entries do not change, and only a purge removes them.
//  - Lanes run in order. A group completes once each time its number of unfinished members becomes zero.
//  - Emissions are stored exactly with the settle of their entry.
//  - A handler is called once per ticket and at most attempts_max times.
//  - An entry dies of lapses only if one of them was a claim of this entry alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <vouch/conformance/any_store.hpp>
#include <vouch/conformance/call_log.hpp>
#include <vouch/conformance/detail/show.hpp>
#include <vouch/conformance/detail/simulation/expected_entries.hpp>
#include <vouch/conformance/detail/trial.hpp>
#include <vouch/contract/outcome.hpp>
#include <vouch/contract/verdict.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

class simulation_monitor {
  public:
    using known = expected_entries::known;

    /// The topic of the entry that the completion of a group enqueues.
    static constexpr std::string_view completion_topic = "group.done";

    // Events.

    /// A call of a committed transaction.
    void see(const call& c) {
        switch (c.what) {
        case call::operation::begin: transaction_ = {}; break;
        case call::operation::enqueue: enqueued(c); break;
        case call::operation::claim: claimed(c); break;
        case call::operation::settle:
            for (std::size_t i = 0; i < c.settles.size(); ++i) {
                settled(c.settles[i], c.settlements[i], c.now);
            }
            break;
        case call::operation::extend: extended(c); break;
        case call::operation::nudge:
            trial::equal(c.verdicts[0], expected_.nudge(c.id, c.now), "nudge " + show(c.id));
            break;
        case call::operation::cancel: cancelled(c); break;
        case call::operation::purge: purge_ = c; break;
        case call::operation::commit: committed(); break;
        case call::operation::roll_back: break;
        }
    }

    /// A handler was called.
    void called(const ticket& t, std::uint32_t attempt, std::uint32_t attempts_max) {
        trial::expect(called_.insert(t).second, "a handler is called once per ticket, not again for " + show(t));
        trial::expect(attempt <= attempts_max, "a handler is called for attempt " + std::to_string(attempt) + " of " +
                                                   show(t.id) + ", which has " + std::to_string(attempts_max));
    }
    /// A handler emitted.
    void emitted(const ticket& by, const id& emission) {
        emitter_[emission] = by;
        emissions_[by].push_back(emission);
    }

    // Comparisons.

    [[nodiscard]] const std::map<id, known>& stored() const noexcept { return expected_.stored(); }
    [[nodiscard]] std::size_t live() const { return expected_.live(); }
    [[nodiscard]] bool is_applied(const ticket& t) const { return applied_.contains(t); }

    /// Compares the entries that the last calls changed with the store.
    void compare(const any_store& store) {
        if (purge_) {
            purged(store, *std::exchange(purge_, std::nullopt));
        }
        for (const auto& touched : expected_.take_touched()) {
            if (auto* const k = expected_.find(touched)) {
                compare(store, *k);
            }
        }
    }

    /// Compares all entries with the store.
    void compare_all(const any_store& store) {
        std::map<std::string, std::size_t> counts;
        for (auto& [i, k] : expected_.stored()) {
            compare(store, k);
            ++counts[k.entry.queue];
        }
        for (const auto& [queue, count] : counts) {
            trial::equal(store.counts(queue).total(), count, "entries of " + queue);
        }
    }

  private:
    /// What the current transaction has done so far.
    struct transaction_effects {
        std::set<id> enqueued{};
        std::set<id> inserted{};
        std::set<ticket> claimed{};   ///< and not settled
        std::set<ticket> succeeded{}; ///< settled with succeed or advance
        std::size_t completions = 0;
        std::size_t marks = 0; ///< entries enqueued for completed groups
    };

    void enqueued(const call& c) {
        for (std::size_t i = 0; i < c.drafts.size(); ++i) {
            const auto& d = c.drafts[i];
            trial::equal(c.receipts[i], expected_.receipt_of(d), "enqueue " + show(d.id));
            transaction_.enqueued.insert(d.id);
            if (c.receipts[i].what == receipt::kind::inserted) {
                expected_.insert(d, c.now);
                transaction_.inserted.insert(d.id);
                transaction_.marks += d.topic == completion_topic && d.predecessor.is_nil() ? 1U : 0U;
            }
        }
    }

    void claimed(const call& c) {
        const auto& r = c.wanted;
        trial::expect(c.claimed.size() <= r.limit, "a claim returns at most its limit");
        for (const auto& got : c.claimed) {
            const auto name = "the claim of " + show(ticket_of(got));
            auto* const k = expected_.find(got.id);
            trial::expect(k != nullptr && k->entry.queue == r.queue, name + " is of an entry in that queue");
            auto& e = k->entry;
            trial::expect(is_live(e.state), name + " is of a live entry");
            trial::equal(got.epoch, e.epoch + 1, name + " gives a new ticket");
            trial::expect(!expected_.is_blocked(e), name + " keeps the order of its lane");
            trial::expect(e.state != state::claimed || *e.lease_until <= r.now,
                          name + " takes no entry whose lease runs until " +
                              show_date(e.lease_until.value_or(time_point{})));
            trial::expect(expected_.is_due(e, r.now), name + " is of an entry that is due");
            if (e.state == state::claimed && alone_.contains(ticket_of(e))) {
                lapsed_alone_.insert(e.id);
            }
            expected_.claim(e, r);
            transaction_.claimed.insert(ticket_of(e));
        }
        for (const auto& [i, k] : expected_.stored()) {
            const bool passed_over = c.claimed.size() < r.limit && k.entry.queue == r.queue &&
                                     (r.only.is_nil() || r.only == i) && expected_.is_due(k.entry, r.now);
            if (passed_over) {
                trial::fail("a claim passes over " + show(i) + ", which is due", {}, show(k.entry));
            }
        }
    }

    void settled(const vouch::settle& s, const settlement& given, time_point now) {
        auto* const k = expected_.find(s.ticket.id);
        trial::equal(given.verdict, expected_.verdict_of(k, s.ticket),
                     "a settle under " + show(s.ticket) +
                         (k == nullptr ? ", whose entry is absent"
                                       : ", whose entry is " + show(k->entry.state) + " at epoch " +
                                             std::to_string(k->entry.epoch)));
        if (given.verdict != verdict::applied) {
            trial::expect(!given.group_completed, "a settle that is not applied completes no group");
            return;
        }
        trial::expect(applied_.insert(s.ticket).second, "a ticket is used once");
        transaction_.claimed.erase(s.ticket);
        ends_row(s);
        if (std::holds_alternative<succeed>(s.outcome) || std::holds_alternative<advance>(s.outcome)) {
            transaction_.succeeded.insert(s.ticket);
        }
        const bool completes = expected_.settle(k->entry, s.outcome, now);
        transaction_.completions += completes ? 1U : 0U;
        trial::equal(given.group_completed, completes,
                     "the settle of " + show(s.ticket) + " completes the group " + show(k->entry.group));
    }

    /// An entry may exhaust its attempts by lapses only if one of them was a claim of this entry alone.
    void ends_row(const vouch::settle& s) {
        const auto* const end = std::get_if<bury>(&s.outcome);
        trial::expect(end == nullptr || end->error != "attempts_exhausted" || lapsed_alone_.contains(s.ticket.id),
                      show(s.ticket.id) + " has exhausted its attempts, so a claim of this entry alone has lapsed");
        if (!std::holds_alternative<release>(s.outcome)) {
            lapsed_alone_.erase(s.ticket.id);
        }
    }

    void extended(const call& c) {
        for (std::size_t i = 0; i < c.tickets.size(); ++i) {
            auto* const k = expected_.find(c.tickets[i].id);
            trial::equal(c.verdicts[i], expected_.verdict_of(k, c.tickets[i]), "extend " + show(c.tickets[i]));
            if (c.verdicts[i] == verdict::applied) {
                expected_.extend(k->entry, c.now, c.lease);
            }
        }
    }

    void cancelled(const call& c) {
        auto* const k = expected_.find(c.id);
        trial::equal(c.verdicts[0], expected_.verdict_of_cancel(k, c.now), "cancel " + show(c.id));
        if (c.verdicts[0] == verdict::applied) {
            expected_.cancel(k->entry, c.now);
        }
    }

    void committed() {
        for (const auto& i : transaction_.inserted) {
            const auto by = emitter_.find(i);
            trial::expect(by == emitter_.end() || transaction_.succeeded.contains(by->second),
                          "the emission " + show(i) + " is stored only with the settle of its entry");
        }
        for (const auto& t : transaction_.succeeded) {
            const auto all = emissions_.find(t);
            for (const auto& i : all == emissions_.end() ? std::vector<id>{} : all->second) {
                trial::expect(transaction_.enqueued.contains(i),
                              "the settle under " + show(t) + " stores its emission " + show(i));
            }
        }
        trial::equal(transaction_.marks, transaction_.completions, "entries enqueued for completed groups");
        if (transaction_.claimed.size() == 1) { // runners settle all they hold before they claim
            alone_.insert(*transaction_.claimed.begin());
        }
    }

    void compare(const any_store& store, known& k) {
        const auto found = store.find(k.entry.id);
        if (!found) {
            trial::fail("an entry that was not purged is stored", "no " + show(k.entry.id), show(k.entry));
        }
        if (!k.frozen) { // until the entry is terminal, other clauses check these fields
            auto& e = k.entry;
            e.sequence = found->sequence;
            e.result = found->result;
            e.progress = found->progress;
            e.worker = found->worker;
            e.last_error = found->last_error;
            e.last_attempt_at = found->last_attempt_at;
            k.frozen = is_terminal(e.state);
        }
        trial::equal(*found, k.entry, "the entry " + show(k.entry.id) + " as it is stored");
    }

    void purged(const any_store& store, const call& c) {
        std::vector<known> gone;
        for (const auto& [i, k] : expected_.stored()) {
            if (k.entry.queue == c.purge.queue && is_terminal(k.entry.state) && !store.find(i)) {
                gone.push_back(k);
                trial::expect(k.entry.updated_at < c.purge.before, "purge keeps what ended later: " + show(i));
                trial::expect(!expected_.is_needed(k.entry), "purge keeps what a live entry needs: " + show(i));
            }
        }
        for (const auto& k : gone) {
            expected_.remove(k);
        }
        trial::equal(gone.size(), c.purged, "entries that a purge removed");
    }

    expected_entries expected_{};
    std::map<id, ticket> emitter_{};
    std::map<ticket, std::vector<id>> emissions_{};
    std::set<ticket> applied_{};
    std::set<ticket> called_{};
    std::set<ticket> alone_{};    ///< tickets of claims that took one entry
    std::set<id> lapsed_alone_{}; ///< entries with such a claim that has lapsed since their last outcome
    std::optional<call> purge_{}; ///< a purge that has not been compared yet
    transaction_effects transaction_{};
};

} // namespace conformance::detail
} // namespace v0
} // namespace vouch
