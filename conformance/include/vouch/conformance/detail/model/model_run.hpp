// SPDX-License-Identifier: MIT
// Runs random commands on a store and on the model. After every command, all reads inside the transaction and outside are
// compared.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <vouch/conformance/any_store.hpp>
#include <vouch/conformance/detail/model/comparison.hpp>
#include <vouch/conformance/detail/model/generator.hpp>
#include <vouch/conformance/detail/model/model.hpp>
#include <vouch/conformance/detail/random_source.hpp>
#include <vouch/conformance/detail/show.hpp>
#include <vouch/conformance/detail/trial.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

class model_run {
  public:
    model_run(any_store store, const vouch::capabilities& can, tally& seen)
        : store_(std::move(store)), can_(can), tally_(seen) {}

    /// Runs one random command, which the word determines. A conflict rolls the transaction back.
    void step(std::uint64_t word) {
        try {
            do_step(word);
            conflicts_in_a_row_ = 0;
        } catch (const error& e) {
            tolerate(e);
        }
    }

    /// Ends the open transaction, if any.
    void end(bool commit) {
        try {
            do_end(commit);
        } catch (const error& e) {
            tolerate(e);
        }
    }

    /// From now on every commit is a call of its own. If the process dies in another call, its transaction must be lost.
    void commit_apart() noexcept { has_last_operations_ = false; }

    /// Drops the transaction and all handles, as the death of the process does.
    void close() {
        if (is_committing_) {
            maybe_ = own_; // it is unknown whether the commit took effect
            maybe_last_sequence_ = last_sequence_;
        }
        is_committing_ = false;
        own_ = committed_;
        last_sequence_ = last_committed_sequence_;
        tx_.reset();
        store_.reset();
    }

    /// Continues with a reopened store, which must have everything committed, and an unfinished commit as a whole or not
    /// at all.
    void reopen(any_store again) {
        store_.emplace(std::move(again));
        if (maybe_ && looks_like(*maybe_)) {
            committed_ = own_ = *maybe_;
            last_sequence_ = last_committed_sequence_ = maybe_last_sequence_;
        }
        maybe_.reset();
        random_source d(committed_.records.size());
        for (const std::string queue : {"q", "r"}) {
            compare_queue(*store_, committed_, queue);
        }
        compare_all(*store_, committed_, d);
    }
    [[nodiscard]] const model& committed() const noexcept { return committed_; }
    [[nodiscard]] time_point now() const noexcept { return now_; }
    [[nodiscard]] const std::vector<ticket>& tickets() const noexcept { return tickets_; }

  private:
    void do_step(std::uint64_t word) {
        random_source d(word);
        if (!tx_) {
            tx_.emplace(store_->begin());
        }
        command(d);
        tally_.commands += 1;
        compare_some(*tx_, own_, d);
        compare_some(*store_, committed_, d);
        if (d.chance(3)) {
            compare_all(*tx_, own_, d);
            compare_all(*store_, committed_, d);
        }
        if (d.chance(25)) {
            const bool commits = d.chance(70);
            if (commits && has_last_operations_ && store_->is_committing() && d.chance(50)) {
                end_with_last(d);
            } else {
                do_end(commits);
            }
            compare_some(*store_, committed_, d);
        }
    }

    void do_end(bool commit) {
        if (tx_ && commit) {
            is_committing_ = true;
            tx_->commit();
            note_commit();
        }
        own_ = committed_;
        last_sequence_ = last_committed_sequence_;
        tx_.reset();
    }

    void note_commit() {
        is_committing_ = false;
        committed_ = own_;
        last_committed_sequence_ = last_sequence_;
    }

    /// Commits with one more operation.
    void end_with_last(random_source& d) {
        switch (d.below(3)) {
        case 0: enqueue_last(d); break;
        case 1: claim_last(d); break;
        default: settle_last(d);
        }
        note_commit();
        tx_.reset();
    }

    /// Accepts a conflict, unless there were too many in a row. Rethrows other errors.
    void tolerate(const error& e) {
        constexpr int in_a_row_max = 16;
        if (e.kind() != error_kind::conflict || e.is_in_doubt() || ++conflicts_in_a_row_ > in_a_row_max) {
            throw;
        }
        is_committing_ = false;
        own_ = committed_;
        last_sequence_ = last_committed_sequence_;
        tx_.reset();
    }

    void count(std::string_view command, std::string_view answer) {
        tally_.answers[std::string(command) + ' ' + std::string(answer)] += 1;
    }

    [[nodiscard]] bool looks_like(const model& m) const {
        try {
            for (const std::string queue : {"q", "r"}) {
                compare_queue(*store_, m, queue);
            }
            return true;
        } catch (const failure&) {
            return false;
        }
    }

    [[nodiscard]] generator generate(random_source& d) { return {can_, own_, now_, tickets_, d}; }

    void command(random_source& d) {
        const auto roll = d.below(100);
        if (roll < 20) {
            enqueue(d);
        } else if (roll < 42) {
            claim(d);
        } else if (roll < 62) {
            settle(d);
        } else if (roll < 67) {
            extend(d);
        } else if (roll < 72) {
            nudge(d);
        } else if (roll < 80) {
            cancel(d);
        } else if (roll < 88) {
            purge(d);
        } else {
            now_ = generate(d).some_next_time();
        }
    }

    /// Drafts, and the receipts that the model gives.
    [[nodiscard]] std::pair<std::vector<draft>, std::vector<receipt>> some_drafts(random_source& d) {
        std::vector<draft> drafts(1 + d.below(3));
        std::vector<receipt> expected;
        for (auto& one : drafts) {
            one = generate(d).some_draft();
            expected.push_back(own_.enqueue(one, now_));
            count("enqueue", name_of(expected.back().what));
        }
        return {std::move(drafts), std::move(expected)};
    }

    void enqueue(random_source& d) {
        const auto [drafts, expected] = some_drafts(d);
        trial::equal(tx_->enqueue(drafts, now_), expected, "receipts of an enqueue");
        adopt_sequences(*tx_, expected);
    }

    void enqueue_last(random_source& d) {
        const auto [drafts, expected] = some_drafts(d);
        trial::equal(tx_->enqueue_last(drafts, now_), expected, "receipts of enqueue_and_commit");
        adopt_sequences(*store_, expected);
    }

    /// The store chooses the sequences, but they must increase.
    template <class Reader>
    void adopt_sequences(const Reader& reader, const std::vector<receipt>& receipts) {
        std::ptrdiff_t inserted = 0;
        for (const auto& one : receipts) {
            inserted += one.what == receipt::kind::inserted ? 1 : 0;
        }
        for (auto r = own_.records.end() - inserted; r != own_.records.end(); ++r) {
            const auto stored = reader.find(r->entry.id);
            if (!stored || stored->sequence <= last_sequence_) {
                trial::fail("the sequence of a new entry is greater than all earlier ones",
                            stored ? show(stored->sequence) : "absent", "more than " + show(last_sequence_));
            }
            r->entry.sequence = last_sequence_ = stored->sequence;
        }
    }

    void claim(random_source& d) {
        const auto request = generate(d).some_claim();
        const auto expected = own_.claim(request);
        for (const auto& e : expected) {
            tickets_.push_back(ticket_of(e));
        }
        count("claim", expected.empty() ? "nothing" : "something");
        trial::equal(tx_->claim(request), expected, "entries claimed");
    }

    void claim_last(random_source& d) {
        const auto request = generate(d).some_claim();
        compare_last_claim(request, tx_->claim_last(request), "claim_and_commit");
    }

    /// Compares the last claim of a transaction, which the store may leave to another one.
    void compare_last_claim(const claim_request& request, const std::optional<std::vector<entry>>& claimed,
                            const std::string& by) {
        auto after = own_;
        const auto expected = after.claim(request);
        const bool must_leave = own_.has_claimed(expected);
        count(by, !claimed ? "left" : claimed->empty() ? "nothing" : "something");
        trial::expect(!claimed || !must_leave, by + " leaves the claim of an expired lease");
        if (claimed) {
            trial::equal(*claimed, expected, "entries claimed by " + by);
            own_ = std::move(after);
            for (const auto& e : expected) {
                tickets_.push_back(ticket_of(e));
            }
        }
    }

    /// Settles, and the settlements that the model gives.
    [[nodiscard]] std::pair<std::vector<vouch::settle>, std::vector<settlement>> some_settles(random_source& d) {
        static constexpr std::array names{"succeed", "retry", "bury", "release", "advance"};
        std::vector<vouch::settle> settles(d.one_of<std::size_t>({1, 1, 2, 3}));
        std::vector<settlement> expected;
        for (auto& s : settles) {
            s = {generate(d).some_ticket(), generate(d).some_outcome()};
            expected.push_back(own_.settle(s, now_));
            count(names[s.outcome.index()], name_of(expected.back().verdict));
            if (expected.back().group_completed) {
                count("group", "completed");
            }
        }
        return {std::move(settles), std::move(expected)};
    }

    void settle(random_source& d) {
        const auto [settles, expected] = some_settles(d);
        trial::equal(tx_->settle(settles, now_), expected, "settlements");
    }

    void settle_last(random_source& d) {
        const std::string by = "settle_claim_and_commit";
        const auto request = generate(d).some_claim();
        const auto [settles, expected] = some_settles(d);
        const auto done = tx_->settle_last(settles, now_, request);
        trial::equal(done.settlements, expected, "settlements of " + by);
        if (all_applied(expected)) {
            compare_last_claim(request, done.claimed, by);
        } else {
            count(by, "refused");
            trial::expect(!done.claimed, by + " claims nothing if a settle is refused");
            own_ = committed_;
            last_sequence_ = last_committed_sequence_;
        }
    }

    void extend(random_source& d) {
        std::vector<ticket> tickets(1 + d.below(2));
        const auto lease = generate(d).some_lease();
        std::vector<verdict> expected;
        for (auto& t : tickets) {
            t = generate(d).some_ticket();
            expected.push_back(own_.extend(t, now_, lease));
            count("extend", name_of(expected.back()));
        }
        trial::equal(tx_->extend(tickets, now_, lease), expected, "verdicts on an extend");
    }

    void nudge(random_source& d) {
        const auto wanted = generate(d).some_id();
        const auto expected = own_.nudge(wanted, now_);
        count("nudge", name_of(expected));
        trial::equal(tx_->nudge(wanted, now_), expected, "the verdict on a nudge");
    }

    void cancel(random_source& d) {
        const auto wanted = generate(d).some_id();
        const auto expected = own_.cancel(wanted, "c", now_);
        count("cancel", name_of(expected));
        trial::equal(tx_->cancel(wanted, "c", now_), expected, "the verdict on a cancel");
    }

    void purge(random_source& d) {
        const auto request = generate(d).some_purge();
        const auto expected = own_.purge(request);
        count("purge", expected == 0 ? "nothing" : "something");
        trial::equal(tx_->purge(request), expected, "entries purged");
    }

    std::optional<any_store> store_;
    const vouch::capabilities& can_;
    tally& tally_;
    std::optional<any_transaction> tx_{};
    model committed_{};
    model own_{};
    std::uint64_t last_sequence_ = 0; // of all committed entries and those of the open transaction
    std::uint64_t last_committed_sequence_ = 0;
    bool is_committing_ = false;
    bool has_last_operations_ = true; // of a store that has them
    int conflicts_in_a_row_ = 0;
    std::optional<model> maybe_{}; // the state if an unfinished commit took effect
    std::uint64_t maybe_last_sequence_ = 0;
    time_point now_ = start;
    std::vector<ticket> tickets_{};
};

} // namespace conformance::detail
} // namespace v0
} // namespace vouch
