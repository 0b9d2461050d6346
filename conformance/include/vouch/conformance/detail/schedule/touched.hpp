// SPDX-License-Identifier: MIT
// What an open transaction has touched. A claim may pass over these entries, and a purge may leave them: the entries that
// the transaction named, and those that its verbs reach, which are the parent of an entry that it ended, the entries
// behind it in its lane, and the owner of a duplicate. A claim or purge that ended in `conflict` may have touched
// anything in its queue.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include <vouch/conformance/detail/model/model.hpp>
#include <vouch/conformance/detail/schedule/history.hpp>
#include <vouch/conformance/detail/schedule/operation.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

class touched_entries {
  public:
    touched_entries(const model& before, const std::vector<transaction_run>& runs) : runs_(runs) {
        for (const auto& r : before.records) {
            const auto& e = r.entry;
            relations_.emplace(e.id, relation{e.queue, e.lane, e.group, e.parent, e.sequence});
            last_sequence_ = e.sequence;
        }
        for (const auto& run : runs) {
            for (const auto& o : run.operations) {
                for (const auto& d : o.drafts) {
                    add(d);
                }
            }
        }
    }

    /// Whether a claim that `by` makes during `span` may pass over `e`.
    [[nodiscard]] bool may_pass_over(const entry& e, const transaction_run& by, const call_span& span) const {
        return any_beside(by, span, [&](const operation& o, const answer* a) { return touches(o, a, e); });
    }

    /// Whether a purge that `by` makes during `span` may leave `e`. A purge counts the members of the entry's group, and
    /// so touches what other transactions do to them.
    [[nodiscard]] bool may_leave(const entry& e, const transaction_run& by, const call_span& span) const {
        return any_beside(by, span, [&](const operation& o, const answer* a) {
            return touches(o, a, e) || changes_group(o, a, e.group) ||
                   (o.what == operation::kind::purge && o.purge.queue == e.queue && a != nullptr && a->purged > 0);
        });
    }

  private:
    /// What never changes in an entry.
    struct relation {
        std::string queue{};
        std::string lane{};
        std::string group{};
        id parent{};
        std::uint64_t sequence = 0; ///< a new entry comes after all earlier ones; more is not known
    };

    /// A successor takes over lane and group; its predecessor may itself be a draft, which stands before it.
    void add(const draft& d) {
        relation mine{d.queue, d.lane, d.group, d.parent, last_sequence_};
        const auto [first, last] = relations_.equal_range(d.predecessor);
        std::vector<relation> inherited;
        for (auto old = first; old != last && !d.predecessor.is_nil(); ++old) {
            inherited.push_back({d.queue, old->second.lane, old->second.group, d.parent, last_sequence_});
        }
        relations_.emplace(d.id, std::move(mine));
        for (auto& one : inherited) {
            relations_.emplace(d.id, std::move(one));
        }
    }

    /// Whether `matches(operation, answer or null)` holds for a call of another transaction that is open during `span`.
    template <class Matches>
    [[nodiscard]] bool any_beside(const transaction_run& by, const call_span& span, const Matches& matches) const {
        for (const auto& other : runs_) {
            if (&other == &by || other.is_outside || other.ended_at <= span.begun_at) {
                continue;
            }
            for (std::size_t i = 0; i < other.calls.size() && other.calls[i].begun_at < span.ended_at; ++i) {
                if (matches(other.operations[i], i < other.answers.size() ? &other.answers[i] : nullptr)) {
                    return true;
                }
            }
        }
        return false;
    }

    /// Whether the operation touches `e`. Without an answer it has thrown, and may have done all that it could.
    [[nodiscard]] bool touches(const operation& o, const answer* a, const entry& e) const {
        const auto is_one = [&](const auto& all, const auto& id_of_one) {
            return std::any_of(all.begin(), all.end(), [&](const auto& one) { return id_of_one(one) == e.id; });
        };
        if (is_one(o.settles, [](const auto& s) { return s.ticket.id; }) ||
            is_one(o.tickets, [](const auto& t) { return t.id; }) || (!o.wanted.is_nil() && o.wanted == e.id)) {
            return true;
        }
        for (const auto& d : o.drafts) {
            const bool same_key = !d.key.empty() && d.key == e.key && d.queue == e.queue;
            const bool same_predecessor = !d.predecessor.is_nil() && d.predecessor == e.predecessor;
            if (d.id == e.id || d.predecessor == e.id || d.parent == e.id ||
                (a == nullptr && (same_key || same_predecessor))) {
                return true;
            }
        }
        if (a == nullptr && ((o.what == operation::kind::claim && o.claim.queue == e.queue) ||
                             (o.what == operation::kind::purge && o.purge.queue == e.queue))) {
            return true;
        }
        if (a != nullptr && (is_one(a->claimed, [](const auto& one) { return one.id; }) ||
                             is_one(a->receipts, [](const auto& one) { return one.id; }))) {
            return true;
        }
        return any_ended(o, a, [&](const relation& r) {
            const bool is_behind = e.sequence > r.sequence;
            return r.parent == e.id || (!r.lane.empty() && r.lane == e.lane && r.queue == e.queue && is_behind);
        });
    }

    [[nodiscard]] bool changes_group(const operation& o, const answer* a, const std::string& group) const {
        if (group.empty()) {
            return false;
        }
        const auto in_group = [&](const relation& r) { return r.group == group; };
        return any_ended(o, a, in_group) || std::any_of(o.drafts.begin(), o.drafts.end(),
                                                        [&](const draft& d) { return any_relation(d.id, in_group); });
    }

    /// Whether `matches(relation)` holds for an entry that the operation ends.
    template <class Matches>
    [[nodiscard]] bool any_ended(const operation& o, const answer* a, const Matches& matches) const {
        if (o.what == operation::kind::cancel) {
            return (a == nullptr || a->verdicts.front() == verdict::applied) && any_relation(o.wanted, matches);
        }
        for (std::size_t i = 0; i < o.settles.size(); ++i) {
            const auto& s = o.settles[i];
            const bool is_end = std::holds_alternative<succeed>(s.outcome) || std::holds_alternative<bury>(s.outcome);
            if (is_end && (a == nullptr || a->settlements[i].verdict == verdict::applied) &&
                any_relation(s.ticket.id, matches)) {
                return true;
            }
        }
        return false;
    }

    template <class Matches>
    [[nodiscard]] bool any_relation(const id& of, const Matches& matches) const {
        const auto [first, last] = relations_.equal_range(of);
        return std::any_of(first, last, [&](const auto& one) { return matches(one.second); });
    }

    const std::vector<transaction_run>& runs_;
    std::multimap<id, relation> relations_{};
    std::uint64_t last_sequence_ = 0; ///< of the entries that were there before
};

} // namespace conformance::detail
} // namespace v0
} // namespace vouch
