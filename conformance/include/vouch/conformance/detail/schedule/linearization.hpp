// SPDX-License-Identifier: MIT
// Whether a history can be explained: is there an order of its deeds, one that never puts a deed before another that
// had ended when it began, in which the model gives every answer that was given and ends up looking like the store?
//
// Deeds that ended in `conflict` never happened. One that was rolled back changed nothing, but its answers were true. A
// claim may have passed over entries that a deed in progress at the same time had touched, and only those.
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
namespace conformance {

class explanation {
  public:
    /// `final` is what the store looks like in the end, all queues.
    explanation(const model& before, const std::vector<deed>& deeds, std::vector<entry> final)
        : final_(std::move(final)) {
        for (const auto& d : deeds) {
            all_.push_back(&d);
            if (d.counts()) {
                deeds_.push_back(&d);
            }
        }
        for (const auto& e : final_) {
            sequences_[e.id] = e.sequence;
        }
        std::sort(final_.begin(), final_.end(), by_sequence);
        exists_ = !is_tellable() || search(before, 0);
    }

    [[nodiscard]] bool exists() const noexcept { return exists_; }

  private:
    static bool by_sequence(const entry& a, const entry& b) { return a.sequence < b.sequence; }

    /// An entry that came and went again has a sequence we never saw, so its history is not judged. Rare.
    [[nodiscard]] bool is_tellable() const {
        std::set<id> inserted;
        for (const auto* const d : deeds_) {
            for (std::size_t i = 0; d->ended == deed::end::committed && i < d->answers.size(); ++i) {
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
        if (done == (std::uint64_t{1} << deeds_.size()) - 1) {
            return looks_like_final(now);
        }
        for (std::size_t i = 0; i < deeds_.size(); ++i) {
            if ((done >> i & 1U) == 0 && may_be_next(i, done)) {
                auto after = now;
                if (agrees(after, *deeds_[i]) &&
                    search(deeds_[i]->ended == deed::end::committed ? after : now, done | std::uint64_t{1} << i)) {
                    return true;
                }
            }
        }
        return false;
    }

    /// Not while another one that ended before it began is left.
    [[nodiscard]] bool may_be_next(std::size_t i, std::uint64_t done) const {
        for (std::size_t j = 0; j < deeds_.size(); ++j) {
            if (j != i && (done >> j & 1U) == 0 && deeds_[j]->ended_at < deeds_[i]->begun_at) {
                return false;
            }
        }
        return true;
    }

    [[nodiscard]] bool agrees(model& on, const deed& d) const {
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

    /// Sequences are the store's business; what was purged or rolled back is known by no other name than its place.
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

    [[nodiscard]] bool agrees_to_claim(model& on, const deed& d, const claim_request& request,
                                       const std::vector<entry>& claimed) const {
        auto straight = on;
        if (same_but_sequence(straight.claim(request), claimed)) {
            on = std::move(straight);
            return true;
        }
        // Perhaps it passed over some that were being touched: those it took, and nothing it had to take is missing.
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

    /// A purged entry's sequence is not known to us.
    [[nodiscard]] static bool same_but_sequence(const std::vector<entry>& a, std::vector<entry> b) {
        if (a.size() != b.size()) {
            return false;
        }
        for (std::size_t i = 0; i < a.size(); ++i) {
            b[i].sequence = a[i].sequence;
        }
        return a == b;
    }

    [[nodiscard]] std::set<std::string> touched_beside(const deed& d) const {
        std::set<std::string> names;
        for (const auto* const other : all_) { // one that ended in conflict was open for a while, too
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

    std::vector<const deed*> all_{};
    std::vector<const deed*> deeds_{}; ///< those that count
    std::vector<entry> final_;
    std::map<id, std::uint64_t> sequences_{};
    bool exists_ = false;
};

} // namespace conformance
} // namespace v0
} // namespace vouch
