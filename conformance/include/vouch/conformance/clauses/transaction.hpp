// SPDX-License-Identifier: MIT
// Transactions: all or nothing, and when their writes become visible.
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
#include <vouch/conformance/detail/steps.hpp>
#include <vouch/conformance/detail/trial.hpp>
#include <vouch/contract/transact.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace transaction_checks {

using namespace reads_checks;

struct deed {
    std::string_view what;
    void (*in)(any_transaction&);
};

inline void put_in(any_transaction& tx, const draft& d, time_point now = at(0)) { tx.enqueue(std::span(&d, 1), now); }

template <class Outcome>
void settle_third(any_transaction& tx, Outcome o) {
    settle_in(tx, {id_of(3), 1}, std::move(o), at(20));
}

/// Every operation that changes a furnished store.
inline constexpr std::array deeds{
    deed{"enqueue", [](any_transaction& tx) { put_in(tx, draft_of(7)); }},
    deed{"enqueue with a key", [](any_transaction& tx) { put_in(tx, draft_of(7, {.queue = "r", .key = "k"})); }},
    deed{"enqueue with a result", [](any_transaction& tx) { put_in(tx, draft_of(7, {.result = ""})); }},
    deed{"requeue", [](any_transaction& tx) { put_in(tx, draft_of(7, {.predecessor = id_of(5)})); }},
    deed{"succeed", [](any_transaction& tx) { settle_third(tx, succeed{"done"}); }},
    deed{"retry",
         [](any_transaction& tx) {
             settle_third(tx, retry{"failed", at(30)});
         }},
    deed{"bury",
         [](any_transaction& tx) {
             settle_third(tx, bury{"failed", "reply"});
         }},
    deed{"release", [](any_transaction& tx) { settle_third(tx, release{}); }},
    deed{"advance",
         [](any_transaction& tx) {
             settle_third(tx, advance{"step", {}});
         }},
    deed{"extend",
         [](any_transaction& tx) {
             std::ignore = tx.extend(std::array{ticket{id_of(3), 1}}, at(50), duration{500});
         }},
    deed{"nudge", [](any_transaction& tx) { std::ignore = tx.nudge(id_of(1), at(5)); }},
    deed{"nudge of a claimed entry", [](any_transaction& tx) { std::ignore = tx.nudge(id_of(3), at(5)); }},
    deed{"cancel", [](any_transaction& tx) { std::ignore = tx.cancel(id_of(2), "cancelled", at(5)); }},
    deed{"the end of a child", [](any_transaction& tx) { std::ignore = tx.cancel(id_of(6), "cancelled", at(5)); }},
    deed{"purge", [](any_transaction& tx) { tx.purge({.queue = "q", .before = at(1)}); }},
    deed{"claim", [](any_transaction& tx) { std::ignore = tx.claim(request(at(200))); }},
};

inline void everything(any_transaction& tx) {
    for (const auto& d : deeds) {
        d.in(tx);
    }
}

inline void unseen_before_commit(trial& t) {
    for (const auto& [name, change] : deeds) {
        const auto& what = name; // a lambda cannot capture a structured binding
        const auto& in = change;
        auto store = furnished(t);
        const auto before = snapshot_of(store);
        from_begin(store, [&](auto& tx) {
            in(tx);
            unchanged(store, before, std::string(what) + " is not seen before the commit");
            const auto own = snapshot_of(tx);
            t.expect(!(own == before), std::string(what) + " is seen by its own transaction");
            tx.commit();
            unchanged(store, own, std::string(what) + " is seen after the commit as the transaction saw it");
        });
    }
}

inline void unseen_by_second_handle(trial& t) {
    auto first = t.open();
    const auto second = t.open();
    furnish(first, t.can());
    const auto before = snapshot_of(second);
    from_begin(first, [&](auto& tx) {
        everything(tx);
        unchanged(second, before, "an open transaction through a second handle");
        const auto own = snapshot_of(tx);
        tx.commit();
        unchanged(second, own, "a committed transaction through a second handle");
    });
}

inline void own_writes_seen(trial& t) {
    auto store = t.open();
    auto tx = store.begin();
    put_in(tx, draft_of(1, {.payload = "p", .key = "k", .due_at = at(5)}));
    t.equal(get(tx, 1).payload, "p", "found by the transaction that enqueued it");
    t.equal(numbers(tx.list(query::keyed("q", "k"))), list_of{1}, "listed by that transaction");
    t.equal(tx.next_due("q"), at(5), "next_due in that transaction");
    t.equal(tx.claim(request(at(5))).size(), 1, "claimed by that transaction");
    t.equal(tx.counts("q"), state_counts{{0, 0, 1, 0, 0}}, "the counts in that transaction, after the claim");
    t.equal(settle_in(tx, {id_of(1), 1}, bury{"e", {}}, at(6)).verdict, verdict::applied, "settled by it");
    t.equal(numbers(tx.list(query::dead("q"))), list_of{1}, "listed as dead by that transaction");
    t.equal(tx.purge({.queue = "q", .before = at(7)}), 1, "purged by that transaction");
    t.expect(!tx.find(id_of(1)), "not found by the transaction that purged it");
}

inline void rollback_leaves_nothing(trial& t) {
    for (const auto& [what, in] : deeds) {
        auto store = furnished(t);
        const auto before = snapshot_of(store);
        from_begin(store, in);
        unchanged(store, before, std::string(what) + " leaves nothing when the transaction ends without commit");
    }
}

inline void rollback_of_everything(trial& t) {
    auto store = furnished(t);
    const auto before = snapshot_of(store);
    for (int i = 0; i < 3; ++i) {
        from_begin(store, [&](auto& tx) { everything(tx); });
    }
    unchanged(store, before, "nothing is left of three transactions that used every operation");
    from_begin(store, [&](auto& tx) {
        everything(tx);
        const auto own = snapshot_of(tx);
        tx.commit();
        unchanged(store, own, "the same transaction repeated and committed");
    });
}

inline void rollback_does_not_return(trial& t) {
    std::optional<snapshot> before;
    {
        auto store = t.open();
        furnish(store, t.can());
        before = snapshot_of(store);
        auto tx = store.begin();
        everything(tx);
    }
    unchanged(t.open(), *before, "after a reopen nothing is stored of a transaction that was not committed");
}

inline void rollback_frees_keys(trial& t) {
    auto store = t.open();
    {
        auto tx = store.begin();
        put_in(tx, draft_of(1, {.key = "k"}));
    }
    t.equal(put(store, draft_of(2, {.key = "k"})), inserted(2), "the key of a rolled-back draft");
    t.equal(put(store, draft_of(1)), inserted(1), "the id of a rolled-back draft");
}

inline void rollback_of_claim(trial& t) {
    auto store = t.open();
    put(store, draft_of(1));
    {
        auto tx = store.begin();
        t.equal(tx.claim(request(at(0))).size(), 1, "claimed in a transaction that is not committed");
    }
    t.equal(settle(store, {id_of(1), 1}, succeed{}).verdict, verdict::stale, "settled with that claim's ticket");
    t.equal(take_one(store, at(0)), ticket{id_of(1), 1}, "the ticket of the claim after it");
    t.equal(get(store, 1).attempts, 1, "the attempts after one claim rolled back and one committed");
}

inline void rollback_of_settle(trial& t) {
    auto store = t.open();
    put(store, draft_of(1));
    const auto held = take_one(store, at(0));
    {
        auto tx = store.begin();
        t.equal(settle_in(tx, held, bury{"e", {}}, at(1)).verdict, verdict::applied, "settled, not committed");
    }
    t.equal(settle(store, held, succeed{"r"}, at(2)).verdict, verdict::applied, "settled again with the same ticket");
    t.equal(get(store, 1).failures, 0, "the failures after a rolled-back burial");
}

inline void rollback_of_purge(trial& t) {
    auto store = t.open();
    put_dead(store, draft_of(1, {.key = "k"}));
    {
        auto tx = store.begin();
        t.equal(tx.purge({.queue = "q", .before = at(1)}), 1, "purged, not committed");
    }
    t.equal(put(store, draft_of(2, {.key = "k"})), duplicate(1), "the key after a rolled-back purge");
    t.equal(put(store, draft_of(1)), duplicate(1), "the id after a rolled-back purge");
    t.equal(purge(store, {.queue = "q", .before = at(1)}), 1, "purged again");
}

inline void rollback_of_requeue(trial& t) {
    auto store = t.open();
    put_dead(store, draft_of(1, {.key = "k"}));
    {
        auto tx = store.begin();
        put_in(tx, draft_of(2, {.predecessor = id_of(1)}));
    }
    t.equal(put(store, draft_of(9, {.key = "k"})), duplicate(1), "the key after a rolled-back requeue");
    t.equal(put(store, draft_of(3, {.predecessor = id_of(1)})), inserted(3),
            "a successor after the rollback of another");
    t.equal(get(store, 3).generation, 2, "its generation");
}

inline void rollback_in_lane(trial& t) {
    auto store = t.open();
    put(store, draft_of(1, {.lane = "lane"}));
    put(store, draft_of(2, {.lane = "lane"}));
    const auto held = take_one(store, at(0));
    {
        auto tx = store.begin();
        settle_in(tx, held, succeed{}, at(0));
        put_in(tx, draft_of(3, {.lane = "other"}));
        t.equal(numbers(tx.claim(request(at(0)))), list_of{2, 3}, "claimed in the transaction that ended the head");
    }
    t.equal(take(store, at(50)).size(), 0, "claimed behind a head whose end was rolled back");
    put(store, draft_of(4, {.lane = "other"}));
    t.equal(numbers(take(store, at(50))), list_of{4}, "claimed from a lane whose head was rolled back");
    settle(store, held, succeed{}, at(50));
    t.equal(numbers(take(store, at(50))), list_of{2}, "claimed once the head has really ended");
}

inline void rollback_in_group(trial& t) {
    auto store = t.open();
    put(store, draft_of(1, {.group = "g"}));
    put(store, draft_of(2, {.group = "g"}));
    t.equal(take(store, at(0)).size(), 2, "claimed");
    {
        auto tx = store.begin();
        settle_in(tx, {id_of(1), 1}, succeed{}, at(0));
        t.equal(settle_in(tx, {id_of(2), 1}, succeed{}, at(0)), settlement{verdict::applied, true}, "the last success");
        put_in(tx, draft_of(3, {.group = "g"}));
    }
    t.equal(settle(store, {id_of(1), 1}, succeed{}), settlement{verdict::applied, false}, "the first of two, again");
    t.equal(settle(store, {id_of(2), 1}, succeed{}), settlement{verdict::applied, true}, "the second of two, again");
}

} // namespace transaction_checks

inline constexpr std::array transactions{
    clause{"TX-01", layer::examples, level::must, needs::nothing,
           "Reads on the store see what is committed and do not wait for open transactions; after a commit they see "
           "all of it.",
           transaction_checks::unseen_before_commit},
    clause{"TX-02", layer::examples, level::may, needs::shared,
           "A second handle sees nothing of a transaction before its commit and all of it after.",
           transaction_checks::unseen_by_second_handle},
    clause{"TX-03", layer::examples, level::must, needs::nothing, "The reads of a transaction see its own writes.",
           transaction_checks::own_writes_seen},
    clause{"TX-04", layer::examples, level::must, needs::nothing,
           "A transaction that ends without a commit leaves nothing, whatever it did.",
           transaction_checks::rollback_leaves_nothing},
    clause{"TX-05", layer::examples, level::must, needs::nothing,
           "Transactions that used every operation and were rolled back do not affect later transactions.",
           transaction_checks::rollback_of_everything},
    clause{"TX-06", layer::examples, level::may, needs::durable,
           "What was rolled back does not reappear after a reopen.", transaction_checks::rollback_does_not_return},
    clause{"TX-07", layer::examples, level::must, needs::nothing,
           "The id and the key of a draft that was rolled back are free.", transaction_checks::rollback_frees_keys},
    clause{"TX-08", layer::examples, level::must, needs::nothing,
           "A claim that was rolled back has no effect: no attempt, no epoch, and its ticket is not valid.",
           transaction_checks::rollback_of_claim},
    clause{"TX-09", layer::examples, level::must, needs::nothing,
           "After a settle was rolled back, the claim still holds and its ticket is still valid.",
           transaction_checks::rollback_of_settle},
    clause{"TX-10", layer::examples, level::must, needs::nothing,
           "After a purge was rolled back, the entry is stored, and its id and key are taken.",
           transaction_checks::rollback_of_purge},
    clause{"TX-11", layer::examples, level::must, needs::nothing,
           "After a requeue was rolled back, the dead entry has no successor.",
           transaction_checks::rollback_of_requeue},
    clause{"TX-12", layer::examples, level::may, needs::lanes, "After a rollback a lane has its earlier head.",
           transaction_checks::rollback_in_lane},
    clause{"TX-13", layer::examples, level::may, needs::groups, "After a rollback a group has its earlier members.",
           transaction_checks::rollback_in_group},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch
