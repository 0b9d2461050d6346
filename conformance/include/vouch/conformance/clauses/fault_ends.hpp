// SPDX-License-Identifier: MIT
// What faults inside a store leave behind: which errors are in doubt, what is free again, and what a reopen finds.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>

#include <vouch/conformance/clause.hpp>
#include <vouch/conformance/clauses/faults.hpp>
#include <vouch/conformance/clauses/transaction_use.hpp>
#include <vouch/conformance/detail/steps.hpp>
#include <vouch/conformance/detail/trial.hpp>
#include <vouch/contract/error.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace fault_end_checks {

using namespace transaction_checks;

using fail_hook = std::function<bool(std::size_t)>;

[[nodiscard]] inline const fail_hook& hook_of(trial& t) {
    if (!t.hooks().fail_at) {
        throw untested{"the fixture has no fail_at"};
    }
    return t.hooks().fail_at;
}

/// Turns faults off at the end of a check.
struct faults_end {
    const fail_hook& hook;
    ~faults_end() { hook(0); }
};

/// A step of a transaction in which faults occur.
struct faulty_step {
    std::string_view what;
    bool is_commit;
    std::function<void()> run;
};

/// Runs the steps until one throws. Returns whether one did. Only a commit may throw an error in doubt; a conflict is
/// passed on.
inline bool run_steps(trial& t, const std::array<faulty_step, 6>& steps, bool& in_doubt) {
    for (const auto& step : steps) {
        try {
            step.run();
        } catch (const error& e) {
            if (e.kind() == error_kind::conflict) {
                throw;
            }
            in_doubt = e.is_in_doubt();
            t.expect(!in_doubt || step.is_commit, std::string(step.what) + " throws an error that is not in doubt");
            return true;
        }
    }
    return false;
}

/// A transaction that enqueues 7 and 8, claims 1 and cancels 2.
struct faulty_work {
    any_store& store;
    std::optional<any_transaction> tx{};

    [[nodiscard]] std::array<faulty_step, 6> steps() {
        return {{{"begin", false, [this] { tx.emplace(store.begin()); }},
                 {"enqueue", false,
                  [this] {
                      tx->enqueue(std::array{draft_of(7, {.key = "m"}), draft_of(8)}, at(1));
                  }},
                 {"claim", false, [this] { std::ignore = tx->claim(request(at(1), {.only = id_of(1)})); }},
                 {"cancel", false, [this] { std::ignore = tx->cancel(id_of(2), "e", at(1)); }},
                 {"find", false, [this] { std::ignore = tx->find(id_of(7)); }},
                 {"commit", true, [this] { tx->commit(); }}}};
    }
};

inline void prepare(any_store& store) {
    put(store, draft_of(1));
    put(store, draft_of(2));
}

/// Fails every step once. `judge(store, before, in_doubt)` looks at what is left after the transaction was destroyed.
template <class Judge>
void fail_each(trial& t, Judge&& judge) {
    const auto& fail_at = hook_of(t);
    const faults_end off{fail_at};
    for (std::size_t n = 1;; ++n) {
        const auto where = t.fresh_location();
        std::optional<any_store> store(t.open(where));
        prepare(*store);
        const auto before = snapshot_of(*store);
        bool in_doubt = false;
        bool has_thrown = false;
        {
            faulty_work work{*store};
            fail_at(n);
            has_thrown = run_steps(t, work.steps(), in_doubt);
        }
        const bool has_fired = fail_at(0);
        t.tally().faults += has_fired ? 1U : 0U;
        if (has_thrown) {
            judge(where, store, before, in_doubt);
        }
        if (!has_fired) {
            return;
        }
    }
}

inline void only_commits_are_in_doubt(trial& t) {
    fail_each(t, [&](const location&, std::optional<any_store>& store, const snapshot& before, bool in_doubt) {
        if (!in_doubt) {
            unchanged(*store, before, "after an error that is not in doubt nothing is stored");
        }
    });
}

inline void everything_is_free(trial& t) {
    fail_each(t, [&](const location&, std::optional<any_store>& store, const snapshot&, bool in_doubt) {
        if (in_doubt) {
            return;
        }
        t.equal(put(*store, draft_of(9, {.key = "m"})), inserted(9), "the key of a draft whose transaction failed");
        t.equal(put(*store, draft_of(7)), inserted(7), "the id of a draft whose transaction failed");
        t.equal(take_one(*store, at(1), {.only = id_of(1)}), ticket{id_of(1), 1}, "a claim after one that failed");
        t.equal(cancel(*store, id_of(2), at(1)), verdict::applied, "a cancel after one that failed");
    });
}

/// The handles are destroyed, and with the hook `crash` the process dies.
inline void reopen_agrees(trial& t) {
    fail_each(t, [&](const location& where, std::optional<any_store>& store, const snapshot& before, bool in_doubt) {
        const auto left = snapshot_of(*store);
        t.expect(in_doubt || left == before, "after an error that is not in doubt nothing is stored");
        store.reset();
        if (t.hooks().crash) {
            t.hooks().crash(where);
        }
        auto again = t.open(where);
        unchanged(again, left, "a reopen after a failed transaction finds what was stored before it");
        const bool has_landed = !(left == before);
        const auto receipts = transact(again, [](auto& tx) {
            return tx.enqueue(std::array{draft_of(7, {.key = "m"}), draft_of(8)}, at(2));
        });
        t.equal(receipts, has_landed ? std::vector{duplicate(7), duplicate(8)} : std::vector{inserted(7), inserted(8)},
                "the same drafts once more");
        t.equal(get(again, 2).state, has_landed ? state::dead : state::pending, "the rest of that transaction");
    });
}

} // namespace fault_end_checks

inline constexpr std::array fault_ends{
    clause{"FAULT-11", layer::faults, level::may, needs::nothing,
           "Only commit throws an error that is in doubt; after any other error nothing of the transaction is stored.",
           fault_end_checks::only_commits_are_in_doubt},
    clause{"FAULT-12", layer::faults, level::may, needs::nothing,
           "When a failed transaction is destroyed, its keys, ids and claims are free, and others can begin.",
           fault_end_checks::everything_is_free},
    clause{
        "FAULT-13", layer::faults, level::may, needs::durable,
        "After a failed commit, in doubt or not, a reopen or a crash changes nothing: the transaction is stored as a "
        "whole or not at all, as it was seen before.",
        fault_end_checks::reopen_agrees},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch
