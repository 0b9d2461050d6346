// SPDX-License-Identifier: MIT
// Faults: the n-th call fails, for every n up to the number of calls, before or after its effect, once or repeatedly. A
// transaction must be stored as a whole or not at all, and repeating it must store it once.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <vouch/conformance/any_store.hpp>
#include <vouch/conformance/call_log.hpp>
#include <vouch/conformance/clause.hpp>
#include <vouch/conformance/detail/fault_scenario.hpp>
#include <vouch/conformance/detail/steps.hpp>
#include <vouch/conformance/detail/trial.hpp>
#include <vouch/conformance/faulty.hpp>
#include <vouch/conformance/recording.hpp>
#include <vouch/contract/error.hpp>
#include <vouch/contract/requeue.hpp>
#include <vouch/contract/transact.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace fault_checks {

using moment = fault_moment;

/// A store whose calls fail as planned, and the same store without faults.
struct faulty_pair {
    explicit faulty_pair(trial& t)
        : plain(t.open(t.fresh_location())),
          shaky(erase([&] { return faulty<recording<any_store>>(recording<any_store>(plain, calls), plan); })) {}

    /// Runs `play`. Adds the fault and the calls that reached the store to a failure.
    template <class Play>
    void with_transcript(const fault& f, const Play& play) const {
        try {
            play();
        } catch (failure& found) {
            found.transcript = std::string(f.persistent ? "every call from " : "call ") + std::to_string(f.call) +
                               (f.persistent ? " on" : "") + " throws " + show(f.kind) +
                               (f.moment == moment::before ? " before its effect" : " after its effect") +
                               (f.in_doubt ? ", a commit in doubt" : "") + "; what reached the store:\n" +
                               calls->text();
            throw;
        }
    }

    std::shared_ptr<fault_plan> plan = std::make_shared<fault_plan>();
    std::shared_ptr<call_log> calls = std::make_shared<call_log>();
    any_store plain;
    any_store shaky;
};

/// Runs the scenario with the fault at the first call of every step, then at the second, and so on until no step has
/// that many calls. A persistent fault lasts for `tries_failing` tries.
inline void fail_every_call(trial& t, fault f, std::size_t tries_failing = 1) {
    const auto snapshots = scenario_snapshots(t);
    for (f.call = 1;; ++f.call) {
        faulty_pair s(t);
        std::size_t failed = 0;
        const auto begin = [&] {
            failed = 0;
            s.plan->arm(f);
        };
        const auto fired = [&] {
            const bool due = s.plan->has_fired() && f.kind != error_kind::conflict;
            if (++failed >= tries_failing) {
                s.plan->disarm();
            }
            return due;
        };
        s.with_transcript(f, [&] { play_scenario(t, snapshots, s.plain, s.shaky, {begin, fired}); });
        t.tally().faults += s.plan->faults();
        if (s.plan->faults() == 0) {
            return;
        }
    }
}

inline void before(trial& t) {
    fail_every_call(t, {});
    fail_every_call(t, {.kind = error_kind::full});
}

inline void after(trial& t) {
    fail_every_call(t, {.moment = moment::after});
    fail_every_call(t, {.in_doubt = true});
}

inline void persistently(trial& t) {
    fail_every_call(t, {.persistent = true}, 4);
    fail_every_call(t, {.moment = moment::after, .persistent = true}, 4);
}

/// No step of the scenario fails, because `transact` repeats it.
inline void conflicts(trial& t) {
    fail_every_call(t, {.kind = error_kind::conflict});
    faulty_pair s(t);
    s.plan->arm({.persistent = true, .kind = error_kind::conflict});
    t.throws(error_kind::conflict, "a conflict that never ends",
             [&] { vouch::transact(s.shaky, [](auto& tx) { tx.enqueue(std::array{draft_of(1)}, at(0)); }); });
    s.plan->disarm();
    t.tally().faults += s.plan->faults();
    t.expect(!s.plain.find(id_of(1)), "nothing is left of the abandoned transaction");
}

/// Throws in the middle of a transaction that uses every operation.
inline void throwing_work(trial& t) {
    struct enough {};
    auto store = t.open();
    const std::string group = t.can().groups ? "g" : "";
    const std::string lane = t.can().lanes ? "a" : "";
    for (const auto& d :
         {draft_of(1, {.key = "k", .group = group}), draft_of(2, {.lane = lane}), draft_of(3, {.lane = lane}),
          draft_of(4, {.parent = id_of(5)}), draft_of(5, {.due_at = at(900)}), draft_of(6, {.due_at = at(900)})}) {
        put(store, d);
    }
    put_dead(store, draft_of(7));
    put(store, draft_of(8, {.result = "born done"}));
    std::ignore = take(store, at(1), {.limit = 3}); // 1, 2 and 4
    const auto before = snapshot_of(store);
    constexpr std::size_t operations = 9;
    for (std::size_t last = 1; last <= operations; ++last) {
        std::size_t done = 0;
        const auto step = [&] {
            if (++done > last) {
                throw enough{};
            }
        };
        try {
            transact(store, [&](auto& tx) {
                step();
                const std::array drafts{draft_of(9, {.key = "l", .group = group, .lane = lane})};
                tx.enqueue(drafts, at(2));
                step();
                std::ignore = settle_in(tx, {id_of(2), 1}, succeed{}, at(2));
                step();
                std::ignore = settle_in(tx, {id_of(4), 1}, bury{"e", {}}, at(2));
                step();
                std::ignore = tx.claim(request(at(2)));
                step();
                const std::array tickets{ticket{id_of(1), 1}};
                std::ignore = tx.extend(tickets, at(2), duration{900});
                step();
                std::ignore = tx.nudge(id_of(1), at(2));
                step();
                std::ignore = tx.cancel(id_of(6), "e", at(2));
                step();
                std::ignore = vouch::requeue(tx, {.dead = id_of(7), .successor = id_of(10), .now = at(2)});
                step();
                tx.purge({.queue = "q", .before = at(1), .limit = 10});
                throw enough{};
            });
        } catch (const enough&) {
            t.tally().faults += 1;
        }
        unchanged(store, before, "after an exception behind " + std::to_string(last) + " operations");
    }
    t.equal(settle(store, {id_of(1), 1}, succeed{}, at(3)).verdict, verdict::applied, "the store still works");
    t.equal(put(store, draft_of(9, {.key = "l"})).what == receipt::kind::inserted, true, "its keys are free");
}

inline void enqueue_in_doubt(trial& t) {
    for (const bool lands : {true, false}) {
        faulty_pair s(t);
        const std::array drafts{draft_of(1, {.key = "k"}), draft_of(2), draft_of(3, {.result = "done"})};
        s.plan->arm({.call = 3, .moment = lands ? moment::after : moment::before, .in_doubt = true}); // the commit
        const auto receipts = enqueue(s.shaky, drafts, at(0));
        t.tally().faults += s.plan->faults();
        t.expect(s.plan->has_fired(), "the commit was in doubt");
        for (std::size_t i = 0; i < drafts.size(); ++i) {
            t.equal(receipts[i], receipt{receipt::kind::inserted, drafts[i].id}, "the receipt after a commit in doubt");
        }
        t.equal(numbers(s.plain.list(query::all("q"))), list_of{1, 2, 3}, "each is stored once");
        const auto before = snapshot_of(s.plain);
        t.equal(put(s.plain, drafts[0], at(7)), receipt{receipt::kind::duplicate, id_of(1)}, "once more");
        unchanged(s.plain, before, "after the same was enqueued again");
    }
}

inline void settle_in_doubt(trial& t) {
    const std::array<outcome, 5> outcomes{succeed{"r"}, retry{"e", at(50)}, bury{"b", "reply"}, release{at(60)},
                                          advance{"p", at(70)}};
    for (const auto& o : outcomes) {
        for (const bool lands : {true, false}) {
            faulty_pair s(t);
            put(s.plain, draft_of(1));
            const auto mine = take_one(s.plain, at(0));
            s.plan->arm({.call = 3, .moment = lands ? moment::after : moment::before, .in_doubt = true});
            const auto e = t.throws(error_kind::io, "a commit in doubt", [&] { settle(s.shaky, mine, o, at(1)); });
            t.tally().faults += s.plan->faults();
            t.expect(e.is_in_doubt(), "the error is in doubt");
            t.equal(get(s.plain, 1).state == state::claimed, !lands, "the entry is still claimed");
            t.equal(settle(s.plain, mine, o, at(2)).verdict, lands ? verdict::repeated : verdict::applied,
                    "the settle once more, under the same ticket");
            t.equal(get(s.plain, 1).updated_at, at(lands ? 1 : 2), "it has landed once");
            const auto before = snapshot_of(s.plain);
            t.equal(settle(s.plain, mine, o, at(3)).verdict, verdict::repeated, "and again");
            unchanged(s.plain, before, "after a used ticket");
        }
    }
    faulty_pair s(t);
    put(s.plain, draft_of(1));
    const auto mine = take_one(s.plain, at(0));
    s.plan->arm({.call = 3, .in_doubt = true});
    t.throws(error_kind::io, "a commit in doubt", [&] { settle(s.shaky, mine, succeed{}, at(1)); });
    t.tally().faults += s.plan->faults();
    std::ignore = take_one(s.plain, at(100));
    t.equal(settle(s.plain, mine, succeed{}, at(101)).verdict, verdict::stale, "a repeated settle after another claim");
    t.equal(get(s.plain, 1).state, state::claimed, "the entry is the other's");
}

inline void claim_in_doubt(trial& t) {
    for (const bool lands : {true, false}) {
        faulty_pair s(t);
        put(s.plain, draft_of(1));
        put(s.plain, draft_of(2));
        s.plan->arm({.call = 3, .moment = lands ? moment::after : moment::before, .in_doubt = true});
        t.throws(error_kind::io, "a commit in doubt", [&] { std::ignore = take(s.shaky, at(0)); });
        t.tally().faults += s.plan->faults();
        t.equal(take(s.plain, at(99)).size(), lands ? 0U : 2U, "claimed before the lease in doubt would be over");
        if (lands) {
            const auto healed = take(s.plain, at(100));
            t.equal(numbers(healed), list_of{1, 2}, "claimed when the lease is over");
            t.equal(healed.front().epoch, 2U, "the epoch of the claim after the claim in doubt");
            const auto before = snapshot_of(s.plain);
            t.equal(settle(s.plain, {id_of(1), 1}, succeed{}, at(101)).verdict, verdict::stale, "the lost ticket");
            unchanged(s.plain, before, "after a stale ticket");
        }
    }
}

/// The scenario with faults inside the store.
inline void inside(trial& t) {
    const auto& fail_at = t.hooks().fail_at;
    if (!fail_at) {
        throw untested{"the fixture has no fail_at"};
    }
    const auto snapshots = scenario_snapshots(t);
    struct off {
        const std::function<bool(std::size_t)>& hook;
        ~off() { hook(0); }
    } const at_the_end{fail_at};
    for (std::size_t n = 1;; ++n) { // every one: a store may check all its steps but one
        auto store = t.open(t.fresh_location());
        bool has_fired = false;
        fail_at(n);
        const auto fired = [&] {
            const bool due = fail_at(0);
            has_fired = has_fired || due;
            return due;
        };
        play_scenario(t, snapshots, store, store, {[] {}, fired});
        t.tally().faults += has_fired ? 1U : 0U;
        if (!has_fired) {
            return;
        }
    }
}

/// Every operation of a transaction.
inline constexpr std::array<void (*)(any_transaction&), 12> uses{
    [](any_transaction& tx) { std::ignore = tx.find(id_of(1)); },
    [](any_transaction& tx) { std::ignore = tx.list(query::all("q")); },
    [](any_transaction& tx) { std::ignore = tx.counts("q"); },
    [](any_transaction& tx) { std::ignore = tx.next_due("q"); },
    [](any_transaction& tx) { tx.enqueue(std::array{draft_of(9)}, at(1)); },
    [](any_transaction& tx) { std::ignore = tx.claim(request(at(1))); },
    [](any_transaction& tx) {
        std::ignore = settle_in(tx, {id_of(1), 1}, succeed{}, at(1));
    },
    [](any_transaction& tx) {
        std::ignore = tx.extend(std::array{ticket{id_of(1), 1}}, at(1), duration{1});
    },
    [](any_transaction& tx) { std::ignore = tx.nudge(id_of(2), at(1)); },
    [](any_transaction& tx) { std::ignore = tx.cancel(id_of(2), "e", at(1)); },
    [](any_transaction& tx) { tx.purge({.queue = "q", .before = at(1)}); },
    [](any_transaction& tx) { tx.commit(); },
};

/// Fails an operation inside the store, in a transaction that has written before. Returns false if the operation has no
/// such step.
inline bool fails_and_closes(trial& t, const std::function<bool(std::size_t)>& fail_at, void (*use)(any_transaction&),
                             std::size_t step) {
    auto store = t.open(t.fresh_location());
    put(store, draft_of(1));
    put(store, draft_of(2, {.due_at = at(50)}));
    std::ignore = take(store, at(0));
    const auto before = snapshot_of(store);
    auto tx = store.begin();
    tx.enqueue(std::array{draft_of(8)}, at(1));
    bool has_thrown = false;
    fail_at(step);
    try {
        use(tx);
    } catch (const error& e) {
        has_thrown = e.kind() != error_kind::invalid_argument && !e.is_in_doubt();
    }
    const bool has_fired = fail_at(0);
    t.tally().faults += has_fired ? 1U : 0U;
    if (has_fired && has_thrown) {
        for (const auto other : uses) {
            t.throws(error_kind::misuse, "the use of a transaction after an error", [&] { other(tx); });
        }
        unchanged(store, before, "after an error and the use of a closed transaction");
    }
    return has_fired;
}

inline void closed_after_errors(trial& t) {
    const auto& fail_at = t.hooks().fail_at;
    if (!fail_at) {
        throw untested{"the fixture has no fail_at"};
    }
    for (const auto use : uses) {
        for (std::size_t step = 1; fails_and_closes(t, fail_at, use, step); ++step) {
        }
    }
}

} // namespace fault_checks

inline constexpr std::array faults{
    clause{"FAULT-01", layer::faults, level::must, needs::nothing,
           "If any call fails before its effect, nothing of its transaction is stored; repeating the transaction does "
           "all of it.",
           fault_checks::before},
    clause{"FAULT-02", layer::faults, level::must, needs::nothing,
           "If any call fails after its effect, nothing of its transaction is stored, or all of it if a commit was in "
           "doubt; repeating the transaction does nothing twice.",
           fault_checks::after},
    clause{"FAULT-03", layer::faults, level::must, needs::nothing,
           "A store that fails for a while, from any call on, keeps what was committed and works again afterwards.",
           fault_checks::persistently},
    clause{"FAULT-04", layer::faults, level::must, needs::nothing,
           "A conflict at any call leaves nothing, and the transaction succeeds when it is repeated from begin.",
           fault_checks::conflicts},
    clause{"FAULT-05", layer::faults, level::must, needs::nothing,
           "An exception thrown in the middle of a transaction leaves nothing of it, dedup keys included.",
           fault_checks::throwing_work},
    clause{"FAULT-06", layer::faults, level::must, needs::nothing,
           "Enqueues whose commit was in doubt are stored once if they are repeated with the same ids.",
           fault_checks::enqueue_in_doubt},
    clause{"FAULT-07", layer::faults, level::must, needs::nothing,
           "Settles whose commit was in doubt take effect once if they are repeated under the same tickets.",
           fault_checks::settle_in_doubt},
    clause{"FAULT-08", layer::faults, level::must, needs::nothing,
           "Claims whose commit was in doubt can be taken over when their lease is over, and not before.",
           fault_checks::claim_in_doubt},
    clause{"FAULT-09", layer::faults, level::may, needs::nothing,
           "If any step inside the store fails, a transaction is stored as a whole or not at all.",
           fault_checks::inside},
    clause{"FAULT-10", layer::faults, level::may, needs::nothing,
           "After any error except invalid_argument a transaction is closed: using it is misuse, and nothing of it is "
           "stored.",
           fault_checks::closed_after_errors},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch
