// SPDX-License-Identifier: MIT
// Explains the answers of one transaction at its place in an order of transactions.
//
// What a transaction answers about stored entries that it names must be right at its place. The rest must be right at
// its place or at the moment of the call: `unknown`, `refused` and "no newer duplicate", what a claim passes over, what a
// purge takes and leaves, and reads. That moment is a state between two commits, with the transaction's own writes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include <vouch/conformance/detail/model/model.hpp>
#include <vouch/conformance/detail/schedule/batch_items.hpp>
#include <vouch/conformance/detail/schedule/history.hpp>
#include <vouch/conformance/detail/schedule/operation.hpp>
#include <vouch/conformance/detail/schedule/purge_sets.hpp>
#include <vouch/conformance/detail/schedule/touched.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

/// The sequences that the store has chosen.
using sequence_map = std::map<id, std::uint64_t>;

/// The committed transactions of an order so far: `states[n]` is the state after the first n.
struct committed_path {
    std::vector<model> states{};
    std::vector<const transaction_run*> runs{};
};

class explanation {
  public:
    explanation(const committed_path& path, const transaction_run& run, const touched_entries& touched,
                const sequence_map& sequences)
        : path_(path), run_(run), touched_(touched), sequences_(sequences) {
        for (const auto& a : run.answers) {
            for (const auto& r : a.receipts) {
                if (r.what == receipt::kind::inserted) {
                    inserted_.insert(r.id);
                }
            }
            for (const auto* const seen : {&a.claimed, &a.found}) {
                for (const auto& e : *seen) {
                    if (!run.has_effect() && inserted_.count(e.id) > 0) {
                        own_sequences_[e.id] = e.sequence;
                    }
                }
            }
        }
    }

    /// The state after the transaction if everything in it happens at its place.
    [[nodiscard]] std::optional<model> at_its_place() const {
        auto own = path_.states.back();
        for (std::size_t i = 0; i < run_.operations.size(); ++i) {
            const auto& o = run_.operations[i];
            const auto& given = run_.answers[i];
            const auto said = perform(own, o);
            const bool is_same = o.what == operation::kind::claim ? same_but_sequence(said.claimed, given.claimed)
                                 : o.is_read()                    ? same_read(said, given)
                                                                  : said == given;
            if (!is_same) {
                return std::nullopt;
            }
            adopt_sequences(own, o, given);
        }
        return own;
    }

    /// All states that the transaction may lead to if some calls see the state at their moment.
    [[nodiscard]] std::vector<model> at_moments() const {
        std::vector<model> out;
        moments states;
        for (const auto& s : path_.states) {
            states.emplace_back(s);
        }
        explain_from(0, std::move(states), out);
        return out;
    }

  private:
    /// For each state of the path: that state with the transaction's own writes so far. None if the store's answers to
    /// those writes are impossible in that state. The last one is at the transaction's place.
    using moments = std::vector<std::optional<model>>;

    void explain_from(std::size_t i, moments states, std::vector<model>& out) const {
        if (i == run_.operations.size()) {
            out.push_back(std::move(*states.back()));
            return;
        }
        const auto& o = run_.operations[i];
        if (o.what == operation::kind::purge) {
            for (const auto& gone : purged_sets(i, states)) {
                auto after = states;
                if (remove(after, gone)) {
                    explain_from(i + 1, std::move(after), out);
                }
            }
            return;
        }
        const bool holds = o.is_read()                        ? explain_read(i, states)
                           : o.what == operation::kind::claim ? explain_claim(i, states)
                                                              : explain_items(i, states);
        if (holds) {
            explain_from(i + 1, std::move(states), out);
        }
    }

    /// Whether `holds(model)` at the place or at the moment of call i. A read may see any state since the begin.
    template <class Holds>
    [[nodiscard]] bool at_some_moment(std::size_t i, const moments& states, const Holds& holds) const {
        if (holds(*states.back())) {
            return true;
        }
        const auto& span = run_.calls[i];
        const auto since = run_.operations[i].is_read() ? run_.begun_at : span.begun_at;
        std::size_t first = 0;
        for (std::size_t n = 0; n < path_.runs.size(); ++n) {
            first = path_.runs[n]->ended_at <= since ? n + 1 : first;
        }
        for (std::size_t n = 0; n + 1 < states.size(); ++n) {
            if (n > 0 && path_.runs[n - 1]->commit_begun_at >= span.ended_at) {
                return false; // it had not committed yet
            }
            if (n >= first && states[n] && holds(*states[n])) {
                return true;
            }
        }
        return false;
    }

    [[nodiscard]] bool explain_read(std::size_t i, const moments& states) const {
        const auto& o = run_.operations[i];
        return at_some_moment(i, states,
                              [&](const model& m) { return same_read(perform_read(m, o), run_.answers[i]); });
    }

    /// Item by item: an answer that rests on absence is right at some moment and changes nothing; any other is right at
    /// the place.
    [[nodiscard]] bool explain_items(std::size_t i, moments& states) const {
        const auto& o = run_.operations[i];
        const auto& given = run_.answers[i];
        const auto count = std::max({o.drafts.size(), o.settles.size(), o.tickets.size(), std::size_t{1}});
        for (std::size_t n = 0; n < count; ++n) {
            const auto one = item(o, n);
            const auto answered = item(given, n);
            if (rests_on_absence(answered)) {
                const bool is_right = at_some_moment(i, states, [&](model m) { return perform(m, one) == answered; });
                if (!is_right || !names_stored(one, answered, *states.back())) {
                    return false;
                }
                continue;
            }
            for (auto& m : states) {
                if (m && !(perform(*m, one) == answered)) {
                    m.reset();
                }
                if (m) {
                    adopt_sequences(*m, one, answered);
                }
            }
            if (!states.back()) {
                return false;
            }
        }
        return true;
    }

    [[nodiscard]] bool explain_claim(std::size_t i, moments& states) const {
        const auto& request = run_.operations[i].claim;
        const auto& claimed = run_.answers[i].claimed;
        if (claimed.size() > request.limit ||
            !at_some_moment(i, states, [&](const model& m) { return leaves_only_touched(i, m); })) {
            return false;
        }
        for (auto& m : states) {
            if (m && !take(*m, request, claimed)) {
                m.reset();
            }
        }
        return states.back().has_value();
    }

    /// Whether everything that the claim of call i should have taken from `m` was taken or may be passed over.
    [[nodiscard]] bool leaves_only_touched(std::size_t i, const model& m) const {
        const auto& request = run_.operations[i].claim;
        const auto& claimed = run_.answers[i].claimed;
        std::optional<std::pair<time_point, std::uint64_t>> last;
        for (const auto& e : claimed) {
            const auto* const known = m.find(e.id);
            const auto gate = known == nullptr ? std::nullopt : m.gate(*known);
            if (!gate) {
                return false;
            }
            last = std::max(last, std::optional{std::pair{*gate, known->sequence}});
        }
        for (const auto& r : m.records) {
            const auto gate = m.gate(r.entry);
            const bool eligible = r.entry.queue == request.queue && gate && *gate <= request.now &&
                                  (request.only.is_nil() || r.entry.id == request.only);
            const bool was_taken =
                std::any_of(claimed.begin(), claimed.end(), [&](const auto& e) { return e.id == r.entry.id; });
            if (!eligible || was_taken) {
                continue;
            }
            const bool had_to_be =
                claimed.size() < request.limit || (last && std::pair(*gate, r.entry.sequence) < *last);
            if (had_to_be && !touched_.may_pass_over(r.entry, run_, run_.calls[i])) {
                return false;
            }
        }
        return true;
    }

    /// Claims exactly these entries. False if the model would return other ones.
    [[nodiscard]] static bool take(model& m, const claim_request& request, const std::vector<entry>& claimed) {
        auto one = request;
        one.limit = 1;
        std::vector<entry> expected;
        for (const auto& e : claimed) {
            one.only = e.id;
            auto got = m.claim(one);
            expected.insert(expected.end(), got.begin(), got.end());
        }
        std::sort(expected.begin(), expected.end(), [](const entry& a, const entry& b) {
            return std::tie(a.due_at, a.sequence) < std::tie(b.due_at, b.sequence);
        });
        return same_but_sequence(expected, claimed);
    }

    /// The sets of entries that the purge of call i may have removed, judged by the state at some moment.
    [[nodiscard]] std::set<std::set<id>> purged_sets(std::size_t i, const moments& states) const {
        std::set<std::set<id>> all;
        std::ignore = at_some_moment(i, states, [&](const model& m) {
            all.merge(purge_sets(m, run_.operations[i].purge, run_.answers[i].purged).all([&](const entry& e) {
                return touched_.may_leave(e, run_, run_.calls[i]);
            }));
            return false; // look at all moments
        });
        return all;
    }

    /// Removes the entries, which must be stored at the place and terminal.
    [[nodiscard]] static bool remove(moments& states, const std::set<id>& gone) {
        for (auto& m : states) {
            const bool all_there = m && std::all_of(gone.begin(), gone.end(), [&](const id& one) {
                                       const auto* const e = m->find(one);
                                       return e != nullptr && !model::alive(*e);
                                   });
            if (!all_there) {
                m.reset();
                continue;
            }
            std::erase_if(m->records, [&](const auto& r) { return gone.count(r.entry.id) > 0; });
        }
        return states.back().has_value();
    }

    /// Takes over the sequences that the store has chosen, as far as they are known.
    void adopt_sequences(model& on, const operation& o, const answer& given) const {
        bool changes = false;
        for (std::size_t k = 0; k < o.drafts.size(); ++k) {
            const auto& one = o.drafts[k].id;
            const auto& known = run_.has_effect() ? sequences_ : own_sequences_;
            const auto chosen = known.find(one);
            if (given.receipts[k].what != receipt::kind::inserted || chosen == known.end()) {
                continue;
            }
            for (auto& r : on.records) {
                if (r.entry.id == one) {
                    r.entry.sequence = chosen->second;
                    changes = true;
                }
            }
        }
        if (changes) {
            std::sort(on.records.begin(), on.records.end(),
                      [](const auto& a, const auto& b) { return a.entry.sequence < b.entry.sequence; });
        }
    }

    /// Ignores sequences, because that of a purged entry may be unknown.
    [[nodiscard]] static bool same_but_sequence(const std::vector<entry>& a, std::vector<entry> b) {
        if (a.size() != b.size()) {
            return false;
        }
        for (std::size_t i = 0; i < a.size(); ++i) {
            b[i].sequence = a[i].sequence;
        }
        return a == b;
    }

    /// Ignores the sequences of the transaction's own entries, which a store may choose as late as at commit.
    [[nodiscard]] bool same_read(answer said, answer given) const {
        for (auto* const a : {&said, &given}) {
            for (auto& e : a->found) {
                e.sequence = inserted_.count(e.id) > 0 ? 0 : e.sequence;
            }
        }
        return said == given;
    }

    const committed_path& path_;
    const transaction_run& run_;
    const touched_entries& touched_;
    const sequence_map& sequences_;
    std::set<id> inserted_{};      ///< by this transaction
    sequence_map own_sequences_{}; ///< of these, if it was rolled back
};

} // namespace conformance::detail
} // namespace v0
} // namespace vouch
