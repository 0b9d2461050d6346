// SPDX-License-Identifier: MIT
// Wakes: a number per queue that changes when work may have become due sooner, and a wait for that change.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <stop_token>
#include <string>
#include <thread>
#include <tuple>

#include <vouch/conformance/clause.hpp>
#include <vouch/conformance/clauses/transaction.hpp>
#include <vouch/conformance/detail/steps.hpp>
#include <vouch/conformance/detail/trial.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace wakes_checks {

using namespace transaction_checks;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

/// Long for a computer, short for a person who waits for a failure.
inline constexpr std::chrono::milliseconds patience{1'500};
inline constexpr std::chrono::milliseconds longer{2'000};

/// The number of a queue once it no longer changes: it may follow a commit by a moment.
[[nodiscard]] inline std::uint64_t settled(any_store& store, const std::string& queue) {
    constexpr int looks = 5;
    auto number = store.wakes(queue);
    for (int same = 0; same < looks; ++same) {
        std::this_thread::sleep_for(milliseconds{2});
        if (const auto now = store.wakes(queue); now != number) {
            number = now;
            same = 0;
        }
    }
    return number;
}

/// The operations on a furnished store that may make work of "q" due sooner.
inline constexpr std::array nearer{
    deed{"enqueue", [](any_transaction& tx) { put_in(tx, draft_of(7)); }},
    deed{"requeue", [](any_transaction& tx) { put_in(tx, draft_of(7, {.predecessor = id_of(5)})); }},
    deed{"retry",
         [](any_transaction& tx) {
             settle_third(tx, retry{"failed", at(30)});
         }},
    deed{"release", [](any_transaction& tx) { settle_third(tx, release{}); }},
    deed{"advance",
         [](any_transaction& tx) {
             settle_third(tx, advance{"step", {}});
         }},
    deed{"nudge", [](any_transaction& tx) { std::ignore = tx.nudge(id_of(1), at(5)); }},
    deed{"the end of a child in another queue",
         [](any_transaction& tx) { std::ignore = tx.cancel(id_of(6), "cancelled", at(5)); }},
};

inline void changes_with_commit(trial& t) {
    for (const auto& [what, in] : nearer) {
        auto store = furnished(t);
        const auto seen = settled(store, "q");
        t.equal(store.wakes("q"), seen, "the number when nothing happens");
        transact(store, in);
        t.expect(wakes_change(store, "q", seen), "the number changes with a commit of " + std::string(what));
    }
}

inline void not_with_rollback(trial& t) {
    auto store = furnished(t);
    const auto seen = settled(store, "q");
    for (const auto& [what, in] : nearer) {
        {
            auto tx = store.begin();
            in(tx);
            t.equal(store.wakes("q"), seen, "the number before the commit of " + std::string(what));
        }
        t.equal(store.wakes("q"), seen, "the number after a rollback of " + std::string(what));
    }
    t.equal(settled(store, "q"), seen, "the number a moment after rollbacks");
}

inline void changes_with_lane(trial& t) {
    if (!t.can().lanes) {
        return;
    }
    for (const outcome& o : {outcome{succeed{}}, outcome{bury{"e", {}}}}) {
        auto store = t.open(t.fresh_location());
        put(store, draft_of(1, {.lane = "lane"}));
        put(store, draft_of(2, {.lane = "lane"}));
        const auto held = take_one(store, at(0));
        const auto seen = settled(store, "q");
        settle(store, held, o);
        t.expect(wakes_change(store, "q", seen),
                 "the number changes when a head ends and the next entry of its lane can run");
    }
}

inline void every_handle_hears(trial& t) {
    if (!t.can().shared) {
        return;
    }
    auto first = t.open();
    auto second = t.open();
    const auto seen = first.wakes("q");
    put(second, draft_of(1));
    t.expect(wakes_change(first, "q", seen), "the number changes with a commit through a second handle");
}

inline void wait_sees_what_was(trial& t) {
    auto store = t.open();
    const auto seen = store.wakes("q");
    put(store, draft_of(1));
    const auto begun = steady_clock::now();
    const auto number = store.wait("q", seen, longer, {});
    t.expect(steady_clock::now() - begun < patience, "wait returns at once when the number has already changed");
    t.equal(number, store.wakes("q"), "the number that wait returns");
}

inline void wait_ends_at_its_limit(trial& t) {
    auto store = t.open();
    put(store, draft_of(1));
    const auto seen = settled(store, "q");
    for (const auto at_most : {milliseconds{0}, milliseconds{-5}, milliseconds{5}}) {
        const auto begun = steady_clock::now();
        t.equal(store.wait("q", seen, at_most, {}), seen, "the number when the time of a wait has passed");
        const auto waited = steady_clock::now() - begun;
        t.expect(waited >= at_most, "wait does not return before its time without a commit");
        t.expect(waited < patience, "wait returns when its time has passed");
    }
}

inline void wait_ends_on_stop(trial& t) {
    auto store = t.open();
    const auto seen = store.wakes("q");
    std::stop_source stop;
    stop.request_stop();
    const auto begun = steady_clock::now();
    t.equal(store.wait("q", seen, longer, stop.get_token()), seen, "the number when wait is stopped");
    t.expect(steady_clock::now() - begun < patience, "wait returns when a stop is requested");
}

} // namespace wakes_checks

inline constexpr std::array wakes{
    clause{"WAKE-01", layer::examples, level::may, needs::wakes,
           "A queue's number changes with every commit that may have made its work due sooner, at once or soon after.",
           wakes_checks::changes_with_commit},
    clause{"WAKE-02", layer::examples, level::may, needs::wakes,
           "A queue's number changes neither before the commit nor after a rollback.", wakes_checks::not_with_rollback},
    clause{"WAKE-03", layer::examples, level::may, needs::wakes,
           "In a store with lanes, a queue's number changes when a head ends and the next entry of its lane can run.",
           wakes_checks::changes_with_lane},
    clause{"WAKE-04", layer::examples, level::may, needs::wakes,
           "In a shared store, a queue's number changes with commits through any handle.",
           wakes_checks::every_handle_hears},
    clause{"WAKE-05", layer::examples, level::may, needs::wakes,
           "wait returns at once if the number differs from the one given, so that no commit is missed.",
           wakes_checks::wait_sees_what_was},
    clause{"WAKE-06", layer::examples, level::may, needs::wakes,
           "wait returns when its time has passed, not before; with no time it returns at once.",
           wakes_checks::wait_ends_at_its_limit},
    clause{"WAKE-07", layer::examples, level::may, needs::wakes, "wait returns when a stop is requested.",
           wakes_checks::wait_ends_on_stop},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch
