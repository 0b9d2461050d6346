// SPDX-License-Identifier: MIT
// The lifecycle of transactions: moves, the use of closed ones, and handles that are closed while one is open.
#pragma once

#include <array>
#include <optional>
#include <string>

#include <vouch/conformance/clause.hpp>
#include <vouch/conformance/clauses/transaction_use.hpp>
#include <vouch/conformance/detail/steps.hpp>
#include <vouch/conformance/detail/trial.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace lifecycle_checks {

using namespace transaction_checks;

/// The transactions are of two stores, because a store may allow only one at a time.
inline void assigned_over_open(trial& t) {
    auto first = furnished(t);
    auto second = furnished(t);
    const auto before = snapshot_of(first);
    auto tx = first.begin();
    put_in(tx, draft_of(7, {.key = "m"}));
    auto source = second.begin();
    put_in(source, draft_of(8));
    tx.move_assign(source);
    unchanged(first, before, "nothing is left of an open transaction that was assigned over");
    t.equal(put(first, draft_of(9, {.key = "m"})), inserted(9), "a transaction after that, in the same store");
    t.expect(tx.find(id_of(8)).has_value(), "the transaction assigned to has the earlier writes of its source");
    put_in(tx, draft_of(10));
    all_misuse(t, source);
    tx.commit();
    t.expect(second.find(id_of(8)).has_value() && second.find(id_of(10)).has_value(), "all of it is committed");
    t.expect(!first.find(id_of(7)), "the commit has no effect on the other store");
}

inline void assigned_over_closed(trial& t) {
    auto store = furnished(t);
    auto tx = store.begin();
    put_in(tx, draft_of(7));
    tx.commit();
    {
        auto source = store.begin();
        put_in(source, draft_of(8));
        tx.move_assign(source);
        all_misuse(t, source);
    }
    t.expect(tx.find(id_of(8)).has_value(), "a transaction assigned to a committed one can be used");
    auto other = tx.move_out();
    tx.move_assign(other);
    put_in(tx, draft_of(9));
    tx.commit();
    t.equal(store.find(id_of(8)).has_value() && store.find(id_of(9)).has_value(), true, "all of it is committed");
    all_misuse(t, tx);
    t.equal(put(store, draft_of(10)), inserted(10), "a transaction after that");
}

inline void moved_from_destroyed(trial& t) {
    auto store = furnished(t);
    std::optional<any_transaction> source(store.begin());
    put_in(*source, draft_of(7));
    auto tx = source->move_out();
    source.reset();
    t.expect(tx.find(id_of(7)).has_value(), "the earlier writes when the transaction moved from is destroyed");
    put_in(tx, draft_of(8));
    tx.commit();
    t.equal(store.find(id_of(7)).has_value() && store.find(id_of(8)).has_value(), true, "all of it is committed");
}

inline void committed_again(trial& t) {
    auto store = furnished(t);
    auto tx = store.begin();
    put_in(tx, draft_of(7));
    tx.commit();
    put(store, draft_of(8));
    cancel(store, id_of(7));
    const auto before = snapshot_of(store);
    t.throws(error_kind::misuse, "a second commit", [&] { tx.commit(); });
    unchanged(store, before, "a second commit does not write again");
    t.equal(put(store, draft_of(9)), inserted(9), "a transaction after that");
}

inline void invalid_misuse(trial& t, any_transaction& closed, const std::string& how) {
    for (const auto& [what, in] : invalid_uses) {
        t.throws(error_kind::misuse, std::string(what) + " with an invalid argument on a transaction that was " + how,
                 [&, &use = in] { use(closed); });
    }
}

inline void closed_with_invalid_arguments(trial& t) {
    auto store = furnished(t);
    {
        auto tx = store.begin();
        put_in(tx, draft_of(7));
        tx.commit();
        const auto before = snapshot_of(store);
        invalid_misuse(t, tx, "committed");
        unchanged(store, before, "a closed transaction with invalid arguments changes nothing");
    }
    auto source = store.begin();
    put_in(source, draft_of(8));
    auto tx = source.move_out();
    invalid_misuse(t, source, "moved from");
    t.expect(tx.find(id_of(8)).has_value(), "the transaction moved to still has its writes");
    tx.commit();
    t.equal(get(store, 8).state, state::pending, "it can be committed");
}

inline void closed_beside_open(trial& t) {
    auto store = furnished(t);
    auto closed = store.begin();
    put_in(closed, draft_of(7));
    closed.commit();
    auto tx = store.begin();
    put_in(tx, draft_of(8, {.key = "m"}));
    all_misuse(t, closed);
    t.expect(tx.find(id_of(8)).has_value(), "an open transaction keeps its writes when a closed one is used");
    put_in(tx, draft_of(9));
    all_misuse(t, closed);
    tx.commit();
    t.expect(store.find(id_of(8)).has_value() && store.find(id_of(9)).has_value(),
             "the open transaction is committed as a whole");
}

inline void other_handle_closed(trial& t) {
    auto first = t.open();
    furnish(first, t.can());
    const auto before = snapshot_of(first);
    for (const bool commits : {false, true}) {
        std::optional<any_store> second(t.open());
        auto tx = first.begin();
        put_in(tx, draft_of(7, {.key = "m"}));
        second.reset();
        unchanged(first, before, "the end of another handle does not show an open transaction");
        t.expect(tx.find(id_of(7)).has_value(), "an open transaction keeps its writes when another handle is closed");
        if (commits) {
            put_in(tx, draft_of(8));
            tx.commit();
        }
        { const auto ended = tx.move_out(); }
        t.equal(first.find(id_of(7)).has_value(), commits, "stored, if and only if it was committed");
        t.equal(first.find(id_of(8)).has_value(), commits, "stored after the other handle was closed");
    }
}

} // namespace lifecycle_checks

inline constexpr std::array lifecycles{
    clause{
        "LIFE-01", layer::examples, level::must, needs::nothing,
        "An open transaction that is assigned over is rolled back; the one assigned to it can be used and committed.",
        lifecycle_checks::assigned_over_open},
    clause{"LIFE-02", layer::examples, level::must, needs::nothing,
           "A closed transaction that is assigned to can be used again.", lifecycle_checks::assigned_over_closed},
    clause{"LIFE-03", layer::examples, level::must, needs::nothing,
           "The end of a transaction that was moved from does not affect the one moved to.",
           lifecycle_checks::moved_from_destroyed},
    clause{"LIFE-04", layer::examples, level::must, needs::nothing,
           "A second commit of a transaction is misuse and writes nothing, even after other commits.",
           lifecycle_checks::committed_again},
    clause{"LIFE-05", layer::examples, level::must, needs::nothing,
           "The use of a closed transaction is misuse even if the arguments are invalid, and changes nothing.",
           lifecycle_checks::closed_with_invalid_arguments},
    clause{"LIFE-06", layer::examples, level::must, needs::nothing,
           "The use of a closed transaction does not affect an open one.", lifecycle_checks::closed_beside_open},
    clause{"LIFE-07", layer::examples, level::may, needs::shared,
           "Closing a handle does not affect the transactions of other handles.",
           lifecycle_checks::other_handle_closed},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch
