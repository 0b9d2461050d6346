// SPDX-License-Identifier: MIT
// Whether a history can be explained by some order of its transactions. In that order the model must give the answers of
// the history, as far as `explanation` requires it, and the store's final state, and no transaction comes before one that
// had ended when it began. A read outside of transactions must see a state between two commits that lies within its
// call.
//
// Transactions that ended in `conflict` are ignored. A transaction that was rolled back changes nothing, but its answers
// must be right.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <utility>
#include <vector>

#include <vouch/conformance/detail/model/model.hpp>
#include <vouch/conformance/detail/schedule/explanation.hpp>
#include <vouch/conformance/detail/schedule/history.hpp>
#include <vouch/conformance/detail/schedule/operation.hpp>
#include <vouch/conformance/detail/schedule/touched.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

class linearization {
  public:
    /// `final` has all entries that are stored at the end.
    linearization(const model& before, const std::vector<transaction_run>& runs, std::vector<entry> final)
        : final_(std::move(final)), touched_(before, runs) {
        for (const auto& d : runs) {
            if (d.has_answers()) {
                runs_.push_back(&d);
            }
        }
        // Most stores commit in the order that explains the history, so it is tried first.
        std::stable_sort(runs_.begin(), runs_.end(),
                         [](const auto* a, const auto* b) { return a->ended_at < b->ended_at; });
        for (const auto& e : final_) {
            sequences_[e.id] = e.sequence;
        }
        for (const auto* const d : runs_) {
            learn_sequences(*d);
        }
        std::sort(final_.begin(), final_.end(), [](const entry& a, const entry& b) { return a.sequence < b.sequence; });
        path_.states.push_back(before);
        is_decidable_ = has_all_sequences();
        exists_ = !is_decidable_ || search(0);
    }

    [[nodiscard]] bool exists() const noexcept { return exists_; }
    /// Whether the history could be judged. If not, it counts as explained.
    [[nodiscard]] bool is_decidable() const noexcept { return is_decidable_; }
    /// The state at the end of the order that was found.
    [[nodiscard]] const model& after() const noexcept { return path_.states.back(); }

  private:
    /// The sequence of an entry that is gone may be known from what other transactions saw of it.
    void learn_sequences(const transaction_run& d) {
        std::set<id> own;
        for (const auto& a : d.answers) {
            for (const auto& r : a.receipts) {
                own.insert(r.id);
            }
            for (const auto* const seen : {&a.claimed, &a.found}) {
                for (const auto& e : *seen) {
                    if (own.count(e.id) == 0) {
                        sequences_.emplace(e.id, e.sequence);
                    }
                }
            }
        }
    }

    /// The sequence of an entry that was inserted and purged may be unknown, and so may that of an id that was inserted
    /// again after a purge. Such a rare history is not judged.
    [[nodiscard]] bool has_all_sequences() const {
        bool is_purged = false;
        bool is_complete = true;
        std::set<id> inserted;
        for (const auto* const d : runs_) {
            for (const auto& a : d->answers) {
                is_purged = is_purged || a.purged > 0;
                for (const auto& r : a.receipts) {
                    if (d->has_effect() && r.what == receipt::kind::inserted) {
                        is_complete = is_complete && sequences_.count(r.id) > 0 && inserted.insert(r.id).second;
                    }
                }
            }
        }
        return is_complete || !is_purged;
    }

    [[nodiscard]] bool search(std::uint64_t done) {
        done = place_those_without_effect(done);
        if (done == (std::uint64_t{1} << runs_.size()) - 1) {
            return looks_like_final(path_.states.back());
        }
        for (std::size_t i = 0; i < runs_.size(); ++i) {
            if ((done >> i & 1U) == 0 && runs_[i]->has_effect() && may_be_next(i, done) &&
                search_after(i, done | std::uint64_t{1} << i)) {
                return true;
            }
        }
        return false;
    }

    /// Places all that change nothing and are explained here. That never spoils an order, so no other place is tried.
    [[nodiscard]] std::uint64_t place_those_without_effect(std::uint64_t done) const {
        for (std::size_t i = 0; i < runs_.size(); ++i) {
            if ((done >> i & 1U) == 0 && !runs_[i]->has_effect() && may_be_next(i, done)) {
                if (is_explained_here(*runs_[i])) {
                    return place_those_without_effect(done | std::uint64_t{1} << i);
                }
            }
        }
        return done;
    }

    [[nodiscard]] bool is_explained_here(const transaction_run& d) const {
        const explanation here(path_, d, touched_, sequences_);
        return here.at_its_place() || (!d.is_outside && !here.at_moments().empty());
    }

    [[nodiscard]] bool search_after(std::size_t i, std::uint64_t done) {
        const explanation here(path_, *runs_[i], touched_, sequences_);
        const auto goes_on = [&](model after) {
            path_.states.push_back(std::move(after));
            path_.runs.push_back(runs_[i]);
            if (search(done)) {
                return true;
            }
            path_.states.pop_back();
            path_.runs.pop_back();
            return false;
        };
        if (auto after = here.at_its_place(); after && goes_on(std::move(*after))) {
            return true;
        }
        for (auto& after : here.at_moments()) {
            if (goes_on(std::move(after))) {
                return true;
            }
        }
        return false;
    }

    /// Whether all that ended before this one began are done, and all reads that ended before its commit began: they did
    /// not see it.
    [[nodiscard]] bool may_be_next(std::size_t i, std::uint64_t done) const {
        const auto& mine = *runs_[i];
        for (std::size_t j = 0; j < runs_.size(); ++j) {
            const auto& other = *runs_[j];
            const bool is_before = other.ended_at <= mine.begun_at ||
                                   (other.is_outside && mine.has_effect() && other.ended_at <= mine.commit_begun_at);
            if (j != i && (done >> j & 1U) == 0 && is_before) {
                return false;
            }
        }
        return true;
    }

    [[nodiscard]] bool looks_like_final(const model& now) const {
        return std::equal(now.records.begin(), now.records.end(), final_.begin(), final_.end(),
                          [](const auto& r, const entry& e) { return r.entry == e; });
    }

    std::vector<const transaction_run*> runs_{}; ///< those whose answers must be explained
    std::vector<entry> final_;
    touched_entries touched_;
    sequence_map sequences_{};
    committed_path path_{};
    bool is_decidable_ = false;
    bool exists_ = false;
};

} // namespace conformance::detail
} // namespace v0
} // namespace vouch
