// SPDX-License-Identifier: MIT
// Transactions: all or nothing, seen by whom and when, and what closes one.
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

/// Every way to change a furnished store.
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
        const auto& what = name; // a lambda takes no structured binding
        const auto& in = change;
        auto store = furnished(t);
        const auto before = look(store);
        from_begin(store, [&](auto& tx) {
            in(tx);
            unchanged(store, before, std::string(what) + " is not seen before the commit");
            const auto own = look(tx);
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
    const auto before = look(second);
    from_begin(first, [&](auto& tx) {
        everything(tx);
        unchanged(second, before, "an open transaction through a second handle");
        const auto own = look(tx);
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
        const auto before = look(store);
        from_begin(store, in);
        unchanged(store, before, std::string(what) + " leaves nothing when the transaction ends without commit");
    }
}

inline void rollback_of_everything(trial& t) {
    auto store = furnished(t);
    const auto before = look(store);
    for (int i = 0; i < 3; ++i) {
        from_begin(store, [&](auto& tx) { everything(tx); });
    }
    unchanged(store, before, "nothing is left of three transactions that did everything there is to do");
    from_begin(store, [&](auto& tx) {
        everything(tx);
        const auto own = look(tx);
        tx.commit();
        unchanged(store, own, "the same done once more and committed");
    });
}

inline void rollback_does_not_return(trial& t) {
    std::optional<sight> before;
    {
        auto store = t.open();
        furnish(store, t.can());
        before = look(store);
        auto tx = store.begin();
        everything(tx);
    }
    unchanged(t.open(), *before, "after a reopen nothing is there of a transaction that was not committed");
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
    t.equal(put(store, draft_of(3, {.predecessor = id_of(1)})), inserted(3), "a successor after a rolled-back one");
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

/// Every way to use a transaction.
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
    const auto before = look(store);
    all_misuse(t, tx);
    unchanged(store, before, "using a transaction after its commit changes nothing");
    t.equal(put(store, draft_of(8)), inserted(8), "a transaction after that");
}

inline void closed_when_moved_from(trial& t) {
    auto store = furnished(t);
    const auto before = look(store);
    auto tx = store.begin();
    put_in(tx, draft_of(7));
    auto other = tx.move_out();
    all_misuse(t, tx);
    unchanged(store, before, "using a transaction that was moved from changes nothing");
    t.expect(other.find(id_of(7)).has_value(), "the one moved to goes on with what was written");
    put_in(other, draft_of(8));
    other.commit();
    t.equal(store.find(id_of(7)).has_value() && store.find(id_of(8)).has_value(), true, "all of it is committed");
}

inline void moved_rolls_back(trial& t) {
    auto store = furnished(t);
    const auto before = look(store);
    {
        auto tx = store.begin();
        put_in(tx, draft_of(7));
        const auto other = tx.move_out();
    }
    unchanged(store, before, "nothing is left of a transaction that was moved and not committed");
    t.equal(put(store, draft_of(7)), inserted(7), "a transaction after that");
}

/// Calls no store accepts, one for every operation that looks at its arguments.
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
    auto store = furnished(t);
    from_begin(store, [&](auto& tx) {
        put_in(tx, draft_of(7));
        const auto own = look(tx);
        for (const auto& [what, in] : invalid_uses) {
            t.throws(error_kind::invalid_argument, std::string(what) + " with an invalid argument",
                     [&, &use = in] { use(tx); });
            unchanged(tx, own, std::string(what) + " with an invalid argument changes nothing");
        }
        put_in(tx, draft_of(8));
        const auto whole = look(tx);
        tx.commit();
        unchanged(store, whole, "what was written before and after invalid arguments is committed");
    });
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
        const auto own = look(tx);
        tx.commit();
        unchanged(store, own, "all of it after one commit");
        t.equal(get(store, 7).result, "7", "the result of the one that came and went in one transaction");
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
    const auto before = look(store);
    from_begin(store, [&](auto& tx) {
        unchanged(tx, before, "a transaction that has written nothing sees what is committed");
        unchanged(store, before, "reading changes nothing");
        tx.commit();
        unchanged(store, before, "a transaction that only read changes nothing");
    });
}

} // namespace transaction_checks

inline constexpr std::array transactions{
    clause{"TX-01", layer::examples, level::must, needs::nothing,
           "Reads on the store see what is committed and wait for no open transaction; after the commit they see all "
           "of it.",
           transaction_checks::unseen_before_commit},
    clause{"TX-02", layer::examples, level::may, needs::shared,
           "A second handle sees nothing of a transaction before its commit and all of it after.",
           transaction_checks::unseen_by_second_handle},
    clause{"TX-03", layer::examples, level::must, needs::nothing, "The reads of a transaction see its own writes.",
           transaction_checks::own_writes_seen},
    clause{"TX-04", layer::examples, level::must, needs::nothing,
           "A transaction that ends without commit leaves nothing, whatever it did.",
           transaction_checks::rollback_leaves_nothing},
    clause{"TX-05", layer::examples, level::must, needs::nothing,
           "Transactions that did everything and were not committed leave no trace in those that come after.",
           transaction_checks::rollback_of_everything},
    clause{"TX-06", layer::examples, level::may, needs::durable,
           "What was rolled back does not come back with a reopen.", transaction_checks::rollback_does_not_return},
    clause{"TX-07", layer::examples, level::must, needs::nothing, "The id and the key of a rolled-back draft are free.",
           transaction_checks::rollback_frees_keys},
    clause{"TX-08", layer::examples, level::must, needs::nothing,
           "A rolled-back claim never happened: no attempt, no epoch, and its ticket entitles to nothing.",
           transaction_checks::rollback_of_claim},
    clause{"TX-09", layer::examples, level::must, needs::nothing,
           "After a rolled-back settle the claim still stands and its ticket is still good.",
           transaction_checks::rollback_of_settle},
    clause{"TX-10", layer::examples, level::must, needs::nothing,
           "After a rolled-back purge the entry is there, with its id and key taken.",
           transaction_checks::rollback_of_purge},
    clause{"TX-11", layer::examples, level::must, needs::nothing,
           "After a rolled-back requeue the dead entry has no successor.", transaction_checks::rollback_of_requeue},
    clause{"TX-12", layer::examples, level::may, needs::lanes, "After a rollback a lane has the head it had.",
           transaction_checks::rollback_in_lane},
    clause{"TX-13", layer::examples, level::may, needs::groups,
           "After a rollback a group counts the members it counted.", transaction_checks::rollback_in_group},
    clause{"TX-14", layer::examples, level::must, needs::nothing,
           "After its commit any use of a transaction is misuse and changes nothing.",
           transaction_checks::closed_by_commit},
    clause{"TX-15", layer::examples, level::must, needs::nothing,
           "Any use of a transaction that was moved from is misuse; the one moved to goes on.",
           transaction_checks::closed_when_moved_from},
    clause{"TX-16", layer::examples, level::must, needs::nothing,
           "A transaction that was moved and not committed leaves nothing.", transaction_checks::moved_rolls_back},
    clause{"TX-17", layer::examples, level::must, needs::nothing,
           "After an invalid argument a transaction is open, with all that was written before.",
           transaction_checks::open_after_invalid_argument},
    clause{"TX-18", layer::examples, level::must, needs::nothing,
           "Any number of operations, on each other's results too, are one commit.",
           transaction_checks::several_in_one},
    clause{"TX-19", layer::examples, level::must, needs::nothing,
           "A settle and the next claim go in one transaction; the claim sees what the settle did.",
           transaction_checks::settle_then_claim},
    clause{"TX-20", layer::examples, level::must, needs::nothing,
           "A transaction that has written nothing reads what the store reads, and its commit changes nothing.",
           transaction_checks::nothing_written},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch
