// SPDX-License-Identifier: MIT
// A store and the model told the same story, a command at a time; after every command everything that can be seen is
// compared, from inside the transaction and from outside.
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
namespace conformance {

class story {
  public:
    story(any_store store, const vouch::capabilities& can, tally& seen)
        : store_(std::move(store)), can_(can), tally_(seen) {}

    /// One command, made up from one word. If the store has a conflict, its transaction never happened.
    void tell(std::uint64_t word) {
        try {
            tell_it(word);
            conflicts_in_a_row_ = 0;
        } catch (const error& e) {
            bear(e);
        }
    }

    /// Ends the open transaction, if there is one.
    void end(bool commit) {
        try {
            end_it(commit);
        } catch (const error& e) {
            bear(e);
        }
    }

    /// Drops the transaction and all handles, as the death of the process does.
    void close() {
        if (is_committing_) {
            maybe_ = own_; // nobody can know
            maybe_last_sequence_ = last_sequence_;
        }
        is_committing_ = false;
        own_ = committed_;
        last_sequence_ = last_committed_sequence_;
        tx_.reset();
        store_.reset();
    }

    /// Goes on with a store opened anew, which must look as it was committed: an unfinished commit wholly or not at
    /// all.
    void go_on(any_store again) {
        store_.emplace(std::move(again));
        if (maybe_ && looks_like(*maybe_)) {
            committed_ = own_ = *maybe_;
            last_sequence_ = last_committed_sequence_ = maybe_last_sequence_;
        }
        maybe_.reset();
        dice d(committed_.records.size());
        for (const std::string queue : {"q", "r"}) {
            compare_queue(*store_, committed_, queue);
        }
        compare_all(*store_, committed_, d);
    }
    [[nodiscard]] const model& committed() const noexcept { return committed_; }
    [[nodiscard]] time_point now() const noexcept { return now_; }
    [[nodiscard]] const std::vector<ticket>& tickets() const noexcept { return tickets_; }

  private:
    void tell_it(std::uint64_t word) {
        dice d(word);
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
            end_it(d.chance(70));
            compare_some(*store_, committed_, d);
        }
    }

    void end_it(bool commit) {
        if (tx_ && commit) {
            is_committing_ = true;
            tx_->commit();
            is_committing_ = false;
            committed_ = own_;
            last_committed_sequence_ = last_sequence_;
        }
        own_ = committed_;
        last_sequence_ = last_committed_sequence_;
        tx_.reset();
    }

    /// What is no conflict goes through; nor may there be nothing but conflicts.
    void bear(const error& e) {
        constexpr int in_a_row_max = 16;
        if (e.kind() != error_kind::conflict || e.is_in_doubt() || ++conflicts_in_a_row_ > in_a_row_max) {
            throw;
        }
        is_committing_ = false;
        own_ = committed_;
        last_sequence_ = last_committed_sequence_;
        tx_.reset();
    }

    void saw(std::string_view command, std::string_view answer) {
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

    [[nodiscard]] imagination imagine(dice& d) { return {can_, own_, now_, tickets_, d}; }

    void command(dice& d) {
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
            now_ = imagine(d).some_next_time();
        }
    }

    void enqueue(dice& d) {
        std::vector<draft> drafts(1 + d.below(3));
        std::vector<receipt> expected;
        for (auto& one : drafts) {
            one = imagine(d).some_draft();
            expected.push_back(own_.enqueue(one, now_));
            saw("enqueue", name_of(expected.back().what));
        }
        trial::equal(tx_->enqueue(drafts, now_), expected, "receipts of an enqueue");
        adopt_sequences(expected);
    }

    /// Which sequence is the store's business, as long as they only grow.
    void adopt_sequences(const std::vector<receipt>& receipts) {
        std::ptrdiff_t inserted = 0;
        for (const auto& one : receipts) {
            inserted += one.what == receipt::kind::inserted ? 1 : 0;
        }
        for (auto r = own_.records.end() - inserted; r != own_.records.end(); ++r) {
            const auto stored = tx_->find(r->entry.id);
            if (!stored || stored->sequence <= last_sequence_) {
                trial::fail("the sequence of a new entry is greater than any before",
                            stored ? show(stored->sequence) : "absent", "more than " + show(last_sequence_));
            }
            r->entry.sequence = last_sequence_ = stored->sequence;
        }
    }

    void claim(dice& d) {
        const auto request = imagine(d).some_claim();
        const auto expected = own_.claim(request);
        for (const auto& e : expected) {
            tickets_.push_back(ticket_of(e));
        }
        saw("claim", expected.empty() ? "nothing" : "something");
        trial::equal(tx_->claim(request), expected, "entries claimed");
    }

    void settle(dice& d) {
        static constexpr std::array names{"succeed", "retry", "bury", "release", "advance"};
        std::vector<vouch::settle> settles(d.one_of<std::size_t>({1, 1, 2, 3}));
        std::vector<settlement> expected;
        for (auto& s : settles) {
            s = {imagine(d).some_ticket(), imagine(d).some_outcome()};
            expected.push_back(own_.settle(s, now_));
            saw(names[s.outcome.index()], name_of(expected.back().verdict));
            if (expected.back().group_completed) {
                saw("group", "completed");
            }
        }
        trial::equal(tx_->settle(settles, now_), expected, "settlements");
    }

    void extend(dice& d) {
        std::vector<ticket> tickets(1 + d.below(2));
        const auto lease = imagine(d).some_lease();
        std::vector<verdict> expected;
        for (auto& t : tickets) {
            t = imagine(d).some_ticket();
            expected.push_back(own_.extend(t, now_, lease));
            saw("extend", name_of(expected.back()));
        }
        trial::equal(tx_->extend(tickets, now_, lease), expected, "verdicts on an extend");
    }

    void nudge(dice& d) {
        const auto wanted = imagine(d).some_id();
        const auto expected = own_.nudge(wanted, now_);
        saw("nudge", name_of(expected));
        trial::equal(tx_->nudge(wanted, now_), expected, "the verdict on a nudge");
    }

    void cancel(dice& d) {
        const auto wanted = imagine(d).some_id();
        const auto expected = own_.cancel(wanted, "c", now_);
        saw("cancel", name_of(expected));
        trial::equal(tx_->cancel(wanted, "c", now_), expected, "the verdict on a cancel");
    }

    void purge(dice& d) {
        const auto request = imagine(d).some_purge();
        const auto expected = own_.purge(request);
        saw("purge", expected == 0 ? "nothing" : "something");
        trial::equal(tx_->purge(request), expected, "entries purged");
    }

    std::optional<any_store> store_;
    const vouch::capabilities& can_;
    tally& tally_;
    std::optional<any_transaction> tx_{};
    model committed_{};
    model own_{};
    std::uint64_t last_sequence_ = 0; // of all that were ever committed, or belong to the open transaction
    std::uint64_t last_committed_sequence_ = 0;
    bool is_committing_ = false;
    int conflicts_in_a_row_ = 0;
    std::optional<model> maybe_{}; // what a commit that did not come back may have left
    std::uint64_t maybe_last_sequence_ = 0;
    time_point now_ = start;
    std::vector<ticket> tickets_{};
};

} // namespace conformance
} // namespace v0
} // namespace vouch
