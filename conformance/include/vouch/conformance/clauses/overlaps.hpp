// SPDX-License-Identifier: MIT
// Transactions that overlap: what remains of one that ends in a conflict, that one of two gets through, and the order
// in which they end. A store may let one wait for the other; then they run one after the other.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include <vouch/conformance/clause.hpp>
#include <vouch/conformance/clauses/lifecycle.hpp>
#include <vouch/conformance/detail/schedule/party.hpp>
#include <vouch/conformance/detail/steps.hpp>
#include <vouch/conformance/detail/trial.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace overlap_checks {

using namespace lifecycle_checks;

/// A transaction on a thread of its own.
class rival {
  public:
    rival(trial& t, any_store store, std::uint64_t number) : trial_(t), store_(std::move(store)), number_(number) {}

    [[nodiscard]] std::uint64_t number() const noexcept { return number_; }
    [[nodiscard]] bool has_committed() const noexcept { return has_committed_; }

    void begin() {
        step([this] { tx_.emplace(store_.begin()); });
    }
    /// Writes in the transaction, unless it has ended in a conflict.
    void write(std::function<void(any_transaction&)> work) {
        step([this, work = std::move(work)] {
            if (tx_) {
                work(*tx_);
            }
        });
    }
    void commit() {
        step([this] {
            if (tx_) {
                tx_->commit();
                has_committed_ = true;
                tx_.reset();
            }
        });
    }
    void roll_back() {
        step([this] { tx_.reset(); });
    }
    void finish() { thread_.finish(); }

  private:
    /// After a conflict the transaction must be closed.
    void step(std::function<void()> work) {
        thread_.start([this, work = std::move(work)] {
            try {
                work();
            } catch (const error& e) {
                if (e.kind() != error_kind::conflict) {
                    throw;
                }
                trial_.expect(!e.is_in_doubt(), "a conflict is not in doubt");
                if (tx_) {
                    all_misuse(trial_, *tx_);
                }
                tx_.reset();
            }
        });
    }

    trial& trial_;
    any_store store_;
    std::uint64_t number_;
    bool has_committed_ = false;
    std::optional<any_transaction> tx_{};
    party thread_{}; // last: it uses the other members
};

/// A store with 10 and 13, which both rivals cancel, and 11 and 12, of which each claims one.
[[nodiscard]] inline any_store contested(trial& t) {
    auto store = t.context().open(t.fresh_location());
    for (const std::uint64_t n : {10U, 11U, 12U, 13U}) {
        put(store, draft_of(n));
    }
    return store;
}

/// Enqueues a draft with a key of its own, claims an entry of its own, and cancels one of the two that both name.
inline void contend(rival& r) {
    const auto n = r.number();
    r.write([n](any_transaction& tx) { put_in(tx, draft_of(n, {.key = "key " + std::to_string(n)})); });
    r.write([n](any_transaction& tx) { std::ignore = tx.claim(request(at(1), {.only = id_of(10 + n)})); });
    r.write([n](any_transaction& tx) { std::ignore = tx.cancel(id_of(n == 1 ? 10 : 13), "e", at(1)); });
}

/// Cancels the other one, so that each rival may wait for what the other one has changed.
inline void cross(rival& r) {
    const auto n = r.number();
    r.write([n](any_transaction& tx) { std::ignore = tx.cancel(id_of(n == 1 ? 13 : 10), "e", at(1)); });
}

/// Requires that all or nothing of a rival is stored, and that nothing stands in the way of another transaction.
inline void all_or_nothing(trial& t, any_store& store, const rival& r) {
    const auto n = r.number();
    t.equal(store.find(id_of(n)).has_value(), r.has_committed(), "stored, if and only if it was committed");
    t.equal(get(store, 10 + n).state == state::claimed, r.has_committed(), "claimed, if and only if it was committed");
    if (!r.has_committed()) {
        t.equal(take_one(store, at(1), {.only = id_of(10 + n)}), ticket{id_of(10 + n), 1},
                "the claim after a claim that ended in a conflict");
        t.equal(put(store, draft_of(n + 4, {.key = "key " + std::to_string(n)})), inserted(n + 4),
                "the key of a draft that ended in a conflict");
        t.equal(put(store, draft_of(n)), inserted(n), "the id of a draft that ended in a conflict");
    }
}

inline void closed_by_conflict(trial& t) {
    for (const bool in_order : {true, false}) {
        auto store = contested(t);
        rival a(t, store, 1);
        rival b(t, store, 2);
        a.begin();
        b.begin();
        contend(a);
        contend(b);
        cross(a);
        cross(b);
        (in_order ? a : b).commit();
        (in_order ? b : a).commit();
        a.finish();
        b.finish();
        for (const std::uint64_t n : {10U, 13U}) {
            t.equal(get(store, n).state == state::dead, a.has_committed() || b.has_committed(),
                    "cancelled, if one of them was committed");
        }
        all_or_nothing(t, store, a);
        all_or_nothing(t, store, b);
        t.equal(put(store, draft_of(9)), inserted(9), "a transaction after that");
    }
}

/// Each loser repeats its transaction at the same time as the other one.
inline void one_gets_through(trial& t) {
    constexpr int rounds = 300; // some stores have conflicts in nine of ten commits
    auto store = contested(t);
    rival a(t, store, 1);
    rival b(t, store, 2);
    const std::array both{&a, &b};
    const auto each = [&](auto&& what) {
        for (auto* r : both) {
            if (!r->has_committed()) {
                what(*r);
            }
        }
    };
    for (int round = 0; round < rounds && !(a.has_committed() && b.has_committed()); ++round) {
        each([](rival& r) { r.begin(); });
        each([](rival& r) { contend(r); });
        each([](rival& r) { cross(r); });
        for (auto* r : both) { // not by `each`, which would look at it while it runs
            r->commit();
        }
        a.finish();
        b.finish();
    }
    t.expect(a.has_committed() || b.has_committed(), "one of two conflicting transactions succeeds, if repeated");
    t.expect(a.has_committed() && b.has_committed(), "so does the other one, when the first has ended");
    t.equal(get(store, 10).state, state::dead, "what both have cancelled");
    t.expect(store.find(id_of(1)).has_value() && store.find(id_of(2)).has_value(), "what they have enqueued");
}

/// One of two open transactions is rolled back while the other one goes on.
inline void ended_in_any_order(trial& t) {
    for (const bool first_ends : {true, false}) {
        auto store = t.context().open(t.fresh_location());
        bool is_done = false;
        constexpr int tries = 50; // a store may let the second one conflict with the first, every time
        for (int left = tries; !is_done && left > 0; --left) {
            rival a(t, store, 1);
            rival b(t, store, 2);
            a.begin();
            a.write([](any_transaction& tx) { put_in(tx, draft_of(1, {.key = "m"})); });
            b.begin();
            b.write([](any_transaction& tx) { put_in(tx, draft_of(2, {.queue = "r"})); });
            auto& gone = first_ends ? a : b;
            auto& kept = first_ends ? b : a;
            if (!first_ends) {
                a.write([](any_transaction& tx) { put_in(tx, draft_of(3)); });
                a.commit(); // b may wait for it
            }
            gone.roll_back();
            if (first_ends) {
                b.write([](any_transaction& tx) { put_in(tx, draft_of(3)); });
                b.commit();
            }
            a.finish();
            b.finish();
            is_done = kept.has_committed();
            t.expect(!store.find(id_of(gone.number())), "nothing is left of the transaction that was rolled back");
            t.equal(store.find(id_of(kept.number())).has_value(), is_done, "what the other one wrote before that");
            t.equal(store.find(id_of(3)).has_value(), is_done, "what the other one wrote after that");
        }
        t.equal(put(store, draft_of(4)), inserted(4), "a transaction after that");
    }
}

} // namespace overlap_checks

inline constexpr std::array overlaps{
    clause{"LIFE-08", layer::interleavings, level::must, needs::nothing,
           "After a conflict a transaction is closed: using it is misuse, nothing of it is stored, and its keys, ids "
           "and claims are free.",
           overlap_checks::closed_by_conflict},
    clause{"LIFE-09", layer::interleavings, level::must, needs::nothing,
           "Of two conflicting transactions that are repeated at the same time, one gets through, and then the other.",
           overlap_checks::one_gets_through},
    clause{"LIFE-10", layer::interleavings, level::must, needs::nothing,
           "A transaction that is rolled back does not affect another one that is open, begun earlier or later.",
           overlap_checks::ended_in_any_order},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch
