// SPDX-License-Identifier: MIT
// Transactions: what closes a transaction, and what one transaction can combine.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <vouch/conformance/clause.hpp>
#include <vouch/conformance/clauses/reads.hpp>
#include <vouch/conformance/clauses/transaction.hpp>
#include <vouch/conformance/detail/steps.hpp>
#include <vouch/conformance/detail/trial.hpp>
#include <vouch/contract/transact.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace transaction_checks {

/// Every operation of a transaction.
inline constexpr std::array uses{
    deed{"find", [](any_transaction& tx) { std::ignore = tx.find(id_of(1)); }},
    deed{"list", [](any_transaction& tx) { std::ignore = tx.list(query::all("q")); }},
    deed{"counts", [](any_transaction& tx) { std::ignore = tx.counts("q"); }},
    deed{"next_due", [](any_transaction& tx) { std::ignore = tx.next_due("q"); }},
    deed{"enqueue", [](any_transaction& tx) { put_in(tx, draft_of(15)); }},
    deed{"claim", [](any_transaction& tx) { std::ignore = tx.claim(request(at(200))); }},
    deed{"settle",
         [](any_transaction& tx) {
             settle_in(tx, {id_of(3), 1}, succeed{}, at(0));
         }},
    deed{"extend",
         [](any_transaction& tx) {
             std::ignore = tx.extend(std::array{ticket{id_of(3), 1}}, at(0), duration{900});
         }},
    deed{"nudge", [](any_transaction& tx) { std::ignore = tx.nudge(id_of(1), at(0)); }},
    deed{"cancel", [](any_transaction& tx) { std::ignore = tx.cancel(id_of(1), "e", at(0)); }},
    deed{"purge", [](any_transaction& tx) { tx.purge({.queue = "q", .before = at(100)}); }},
    deed{"commit", [](any_transaction& tx) { tx.commit(); }},
};

inline void all_misuse(trial& t, any_transaction& closed) {
    for (const auto& [what, in] : uses) {
        t.throws(error_kind::misuse, std::string(what) + " on a closed transaction", [&, &use = in] { use(closed); });
    }
}

inline void closed_by_commit(trial& t) {
    auto store = furnished(t);
    auto tx = store.begin();
    put_in(tx, draft_of(7));
    tx.commit();
    const auto before = snapshot_of(store);
    all_misuse(t, tx);
    unchanged(store, before, "using a transaction after its commit changes nothing");
    t.equal(put(store, draft_of(8)), inserted(8), "a transaction after that");
}

inline void closed_when_moved_from(trial& t) {
    auto store = furnished(t);
    const auto before = snapshot_of(store);
    auto tx = store.begin();
    put_in(tx, draft_of(7));
    auto other = tx.move_out();
    all_misuse(t, tx);
    unchanged(store, before, "using a transaction that was moved from changes nothing");
    t.expect(other.find(id_of(7)).has_value(), "the transaction moved to has the earlier writes");
    put_in(other, draft_of(8));
    other.commit();
    t.equal(store.find(id_of(7)).has_value() && store.find(id_of(8)).has_value(), true, "all of it is committed");
}

inline void moved_rolls_back(trial& t) {
    auto store = furnished(t);
    const auto before = snapshot_of(store);
    {
        auto tx = store.begin();
        put_in(tx, draft_of(7));
        const auto other = tx.move_out();
    }
    unchanged(store, before, "nothing is left of a transaction that was moved and not committed");
    t.equal(put(store, draft_of(7)), inserted(7), "a transaction after that");
}

/// Invalid calls, one for every operation that validates its arguments.
inline constexpr std::array invalid_uses{
    deed{"list", [](any_transaction& tx) { std::ignore = tx.list(query::all("")); }},
    deed{"counts", [](any_transaction& tx) { std::ignore = tx.counts(""); }},
    deed{"next_due", [](any_transaction& tx) { std::ignore = tx.next_due(""); }},
    deed{"enqueue", [](any_transaction& tx) { put_in(tx, draft{}); }},
    deed{"claim", [](any_transaction& tx) { std::ignore = tx.claim(request(at(0), {.queue = ""})); }},
    deed{"settle",
         [](any_transaction& tx) {
             settle_third(tx, retry{std::string(101, 'e'), at(0)});
         }},
    deed{"extend",
         [](any_transaction& tx) {
             std::ignore = tx.extend(std::array{ticket{id_of(3), 1}}, at(0), duration{0});
         }},
    deed{"cancel", [](any_transaction& tx) { std::ignore = tx.cancel(id_of(1), std::string(101, 'e'), at(0)); }},
    deed{"purge", [](any_transaction& tx) { tx.purge({.queue = "", .before = at(100)}); }},
};

inline void open_after_invalid_argument(trial& t) {
    for (const auto& [name, call] : invalid_uses) {
        const auto& what = name; // a lambda cannot capture a structured binding
        const auto& use = call;
        auto store = furnished(t);
        const auto before = snapshot_of(store);
        from_begin(store, [&](auto& tx) {
            put_in(tx, draft_of(7));
            const auto own = snapshot_of(tx);
            t.throws(error_kind::invalid_argument, std::string(what) + " with an invalid argument", [&] { use(tx); });
            unchanged(tx, own, std::string(what) + " with an invalid argument changes nothing");
            unchanged(store, before, std::string(what) + " with an invalid argument commits nothing");
            put_in(tx, draft_of(8));
            const auto whole = snapshot_of(tx);
            tx.commit();
            unchanged(store, whole, "what was written before and after an invalid argument is committed");
        });
    }
}

inline void several_in_one(trial& t) {
    auto store = furnished(t);
    from_begin(store, [&](auto& tx) {
        put_in(tx, draft_of(7, {.due_at = at(20)}));
        const auto claimed = tx.claim(request(at(20)));
        t.equal(numbers(claimed), list_of{2, 7}, "claimed with what was enqueued in the same transaction");
        const std::array settles{vouch::settle{ticket_of(claimed[1]), succeed{"7"}},
                                 vouch::settle{ticket_of(claimed[0]), bury{"e", {}}}};
        std::ignore = tx.settle(settles, at(21));
        put_in(tx, draft_of(8, {.predecessor = id_of(2)}), at(21));
        t.equal(tx.cancel(id_of(6), "e", at(21)), verdict::applied, "cancelled in the same transaction");
        const auto own = snapshot_of(tx);
        tx.commit();
        unchanged(store, own, "all of it after one commit");
        t.equal(get(store, 7).result, "7", "the result of the entry that was enqueued and settled in one transaction");
    });
}

inline void settle_then_claim(trial& t) {
    auto store = t.open();
    put(store, draft_of(1));
    const auto held = take_one(store, at(0));
    auto tx = store.begin();
    settle_in(tx, held, retry{"e", at(9)}, at(8));
    t.equal(tx.claim(request(at(8))).size(), 0, "claimed before the retry is due");
    const auto claimed = tx.claim(request(at(9)));
    t.equal(numbers(claimed), list_of{1}, "claimed in the transaction that settled it");
    t.equal(ticket_of(claimed.front()), ticket{id_of(1), 2}, "the new ticket");
    tx.commit();
    t.equal(settle(store, held, succeed{}).verdict, verdict::stale, "the old ticket after the commit");
    t.equal(settle(store, ticket_of(claimed.front()), succeed{}).verdict, verdict::applied, "the new ticket");
}

inline void nothing_written(trial& t) {
    auto store = furnished(t);
    const auto before = snapshot_of(store);
    from_begin(store, [&](auto& tx) {
        unchanged(tx, before, "a transaction that has written nothing sees what is committed");
        unchanged(store, before, "reading changes nothing");
        tx.commit();
        unchanged(store, before, "a transaction that only read changes nothing");
    });
}

} // namespace transaction_checks

inline constexpr std::array transaction_use{
    clause{"TX-14", layer::examples, level::must, needs::nothing,
           "Any use of a transaction after its commit is misuse and changes nothing.",
           transaction_checks::closed_by_commit},
    clause{"TX-15", layer::examples, level::must, needs::nothing,
           "Any use of a transaction that was moved from is misuse; the transaction moved to can be used.",
           transaction_checks::closed_when_moved_from},
    clause{"TX-16", layer::examples, level::must, needs::nothing,
           "A transaction that was moved and not committed leaves nothing.", transaction_checks::moved_rolls_back},
    clause{"TX-17", layer::examples, level::must, needs::nothing,
           "After an invalid argument a transaction is still open and keeps its earlier writes.",
           transaction_checks::open_after_invalid_argument},
    clause{"TX-18", layer::examples, level::must, needs::nothing,
           "Any number of operations are one commit, even if they use each other's results.",
           transaction_checks::several_in_one},
    clause{"TX-19", layer::examples, level::must, needs::nothing,
           "A transaction can settle and claim; the claim sees the effects of the settle.",
           transaction_checks::settle_then_claim},
    clause{"TX-20", layer::examples, level::must, needs::nothing,
           "A transaction without writes reads what the store reads, and its commit changes nothing.",
           transaction_checks::nothing_written},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch
