// SPDX-License-Identifier: MIT
// Whether a history can be explained by some order of its transactions. In that order the model must give all answers of
// the history and the store's final state, and no transaction comes before one that had ended when it began.
//
// Transactions that ended in `conflict` are ignored. A transaction that was rolled back changes nothing, but its answers
// must be right. A claim may pass over entries that a concurrent transaction has touched, and only those.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <vouch/conformance/detail/model/model.hpp>
#include <vouch/conformance/detail/schedule/history.hpp>
#include <vouch/conformance/detail/schedule/operation.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

class linearization {
  public:
    /// `final` has all entries that are stored at the end.
    linearization(const model& before, const std::vector<transaction_run>& runs, std::vector<entry> final)
        : final_(std::move(final)) {
        for (const auto& d : runs) {
            all_.push_back(&d);
            if (d.has_answers()) {
                runs_.push_back(&d);
            }
        }
        for (const auto& e : final_) {
            sequences_[e.id] = e.sequence;
        }
        std::sort(final_.begin(), final_.end(), by_sequence);
        exists_ = !is_decidable() || search(before, 0);
    }

    [[nodiscard]] bool exists() const noexcept { return exists_; }

  private:
    static bool by_sequence(const entry& a, const entry& b) { return a.sequence < b.sequence; }

    /// The sequence of an entry that was inserted and purged is unknown, so such a rare history is not judged.
    [[nodiscard]] bool is_decidable() const {
        std::set<id> inserted;
        for (const auto* const d : runs_) {
            for (std::size_t i = 0; d->ended == transaction_run::end::committed && i < d->answers.size(); ++i) {
                for (const auto& r : d->answers[i].receipts) {
                    if (r.what == receipt::kind::inserted &&
                        (sequences_.count(r.id) == 0 || !inserted.insert(r.id).second)) {
                        return false;
                    }
                }
            }
        }
        return true;
    }

    [[nodiscard]] bool search(const model& now, std::uint64_t done) {
        if (done == (std::uint64_t{1} << runs_.size()) - 1) {
            return looks_like_final(now);
        }
        for (std::size_t i = 0; i < runs_.size(); ++i) {
            if ((done >> i & 1U) == 0 && may_be_next(i, done)) {
                auto after = now;
                if (agrees(after, *runs_[i]) && search(runs_[i]->ended == transaction_run::end::committed ? after : now,
                                                       done | std::uint64_t{1} << i)) {
                    return true;
                }
            }
        }
        return false;
    }

    /// Whether all transactions that ended before this one began are done.
    [[nodiscard]] bool may_be_next(std::size_t i, std::uint64_t done) const {
        for (std::size_t j = 0; j < runs_.size(); ++j) {
            if (j != i && (done >> j & 1U) == 0 && runs_[j]->ended_at < runs_[i]->begun_at) {
                return false;
            }
        }
        return true;
    }

    [[nodiscard]] bool agrees(model& on, const transaction_run& d) const {
        for (std::size_t i = 0; i < d.operations.size(); ++i) {
            const auto& o = d.operations[i];
            const auto& given = d.answers[i];
            if (o.what == operation::kind::claim) {
                if (!agrees_to_claim(on, d, o.claim, given.claimed)) {
                    return false;
                }
                continue;
            }
            if (!(perform(on, o) == given)) {
                return false;
            }
            adopt_sequences(on, o, given);
        }
        return true;
    }

    /// Takes over the sequences that the store has chosen. Those of purged or rolled-back entries are unknown.
    void adopt_sequences(model& on, const operation& o, const answer& given) const {
        for (std::size_t k = 0; k < o.drafts.size(); ++k) {
            if (given.receipts[k].what != receipt::kind::inserted) {
                continue;
            }
            const auto known = sequences_.find(o.drafts[k].id);
            for (auto& r : on.records) {
                if (r.entry.id == o.drafts[k].id && known != sequences_.end()) {
                    r.entry.sequence = known->second;
                }
            }
        }
        std::sort(on.records.begin(), on.records.end(),
                  [](const auto& a, const auto& b) { return by_sequence(a.entry, b.entry); });
    }

    [[nodiscard]] bool agrees_to_claim(model& on, const transaction_run& d, const claim_request& request,
                                       const std::vector<entry>& claimed) const {
        auto straight = on;
        if (same_but_sequence(straight.claim(request), claimed)) {
            on = std::move(straight);
            return true;
        }
        // It may have passed over entries that concurrent transactions touched. All others that are eligible must be taken.
        const auto busy = touched_beside(d);
        auto one = request;
        one.limit = 1;
        std::vector<std::pair<time_point, std::uint64_t>> taken;
        for (const auto& e : claimed) {
            const auto* const known = on.find(e.id);
            const auto gate = known == nullptr ? std::nullopt : on.gate(*known);
            if (!gate) {
                return false;
            }
            taken.emplace_back(*gate, known->sequence);
        }
        for (const auto& r : on.records) {
            const auto gate = on.gate(r.entry);
            const bool eligible = r.entry.queue == request.queue && gate && *gate <= request.now &&
                                  (request.only.is_nil() || r.entry.id == request.only);
            const bool was_taken =
                std::any_of(claimed.begin(), claimed.end(), [&](const auto& e) { return e.id == r.entry.id; });
            const bool had_to_be =
                claimed.size() < request.limit ||
                (!taken.empty() && std::pair(*gate, r.entry.sequence) < *std::max_element(taken.begin(), taken.end()));
            if (eligible && !was_taken && had_to_be && busy.count("entry " + std::to_string(r.entry.id.low)) == 0) {
                return false;
            }
        }
        std::vector<entry> expected;
        for (const auto& e : claimed) {
            one.only = e.id;
            auto got = on.claim(one);
            expected.insert(expected.end(), got.begin(), got.end());
        }
        std::sort(expected.begin(), expected.end(), [](const entry& a, const entry& b) {
            return std::tie(a.due_at, a.sequence) < std::tie(b.due_at, b.sequence);
        });
        return same_but_sequence(expected, claimed);
    }

    /// Ignores sequences, because that of a purged entry is unknown.
    [[nodiscard]] static bool same_but_sequence(const std::vector<entry>& a, std::vector<entry> b) {
        if (a.size() != b.size()) {
            return false;
        }
        for (std::size_t i = 0; i < a.size(); ++i) {
            b[i].sequence = a[i].sequence;
        }
        return a == b;
    }

    [[nodiscard]] std::set<std::string> touched_beside(const transaction_run& d) const {
        std::set<std::string> names;
        for (const auto* const other : all_) { // including those that ended in conflict
            if (other != &d && other->overlaps(d)) {
                names.merge(other->touched());
            }
        }
        return names;
    }

    [[nodiscard]] bool looks_like_final(const model& now) const {
        if (now.records.size() != final_.size()) {
            return false;
        }
        for (std::size_t i = 0; i < final_.size(); ++i) {
            if (!(now.records[i].entry == final_[i])) {
                return false;
            }
        }
        return true;
    }

    std::vector<const transaction_run*> all_{};
    std::vector<const transaction_run*> runs_{}; ///< those whose answers must be explained
    std::vector<entry> final_;
    std::map<id, std::uint64_t> sequences_{};
    bool exists_ = false;
};

} // namespace conformance::detail
} // namespace v0
} // namespace vouch
