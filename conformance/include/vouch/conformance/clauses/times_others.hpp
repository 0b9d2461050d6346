// SPDX-License-Identifier: MIT
// Times: next_due, purge, wake marks, lanes and parents at 1970, before it, and at the ends of the range; and times after
// a reopen.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <vouch/conformance/clause.hpp>
#include <vouch/conformance/clauses/times.hpp>
#include <vouch/conformance/detail/steps.hpp>
#include <vouch/conformance/detail/trial.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace times_checks {

inline void due_at_any_time(trial& t) {
    auto store = t.open();
    // From the last time to the first, so that each new entry is due before the others.
    for (std::size_t n = special_times.size(); n > 0; --n) {
        put(store, draft_of(n, {.due_at = special_times[n - 1]}), at(0));
        t.equal(store.next_due("q"), special_times[n - 1], "next_due with an entry due at that time");
    }
    for (std::size_t n = 1; n <= special_times.size(); ++n) {
        t.equal(store.next_due("q"), special_times[n - 1], "next_due when the earlier ones have ended");
        cancel(store, id_of(n));
    }
    t.equal(store.next_due("q"), std::optional<time_point>{}, "next_due when all have ended");
}

/// Stores one entry that has ended at each of the special times, the latest first.
inline void put_ended(any_store& store) {
    for (std::size_t n = special_times.size(); n > 0; --n) {
        put(store, draft_of(n, {.result = ""}), special_times[n - 1]);
    }
}

inline void purges_by_time(trial& t) {
    for (std::size_t n = 0; n < special_times.size(); ++n) {
        auto store = t.open(t.fresh_location());
        put_ended(store);
        t.equal(purge(store, {.queue = "q", .before = special_times[n]}), n, "purged before " + show(special_times[n]));
        t.equal(store.counts("q").total(), special_times.size() - n, "left by that purge");
        t.expect(store.find(id_of(n + 1)).has_value(), "an entry that ended exactly at `before` is kept");
    }
}

inline void purges_in_order(trial& t) {
    auto store = t.open();
    put_ended(store);
    for (std::uint64_t n = 1; n < special_times.size(); ++n) {
        t.equal(purge(store, {.queue = "q", .before = last_time, .limit = 1}), 1, "purged of entries of all times");
        t.expect(!store.find(id_of(n)), "the entry that ended first is purged first, at " + show(special_times[n - 1]));
    }
    t.equal(purge(store, {.queue = "q", .before = last_time}), 0, "purged of what ended at the last time");
}

inline void purges_to_the_microsecond(trial& t) {
    for (const auto& [earlier, later] : neighbours) {
        auto store = t.open(t.fresh_location());
        put(store, draft_of(1), at(0));
        put(store, draft_of(2), at(0));
        cancel(store, id_of(1), later);
        settle(store, take_one(store, at(0)), succeed{}, earlier);
        t.equal(purge(store, {.queue = "q", .before = earlier}), 0, "purged before " + show(earlier));
        t.equal(purge(store, {.queue = "q", .before = later}), 1, "purged before " + show(later));
        t.expect(store.find(id_of(1)).has_value(), "the entry that ended one microsecond later is kept");
    }
}

inline void times_survive(trial& t) {
    std::vector<std::optional<entry>> before;
    {
        auto store = t.open();
        std::uint64_t n = 0;
        for (const auto when : special_times) {
            put(store, draft_of(++n, {.due_at = when, .expires_at = when}), when);
            put(store, draft_of(++n, {.due_at = first_time}), at(0));
            if (can_claim(when)) {
                t.equal(take(store, when, {.lease = tick, .only = id_of(n)}).size(), 1, "claimed");
            }
        }
        for (n = 1; n <= 2 * special_times.size(); ++n) {
            before.push_back(store.find(id_of(n)));
        }
    }
    const auto again = t.open();
    for (std::uint64_t n = 1; n <= before.size(); ++n) {
        t.equal(again.find(id_of(n)), before[n - 1], "an entry with special times after a reopen");
    }
    t.equal(again.next_due("q"), first_time, "next_due after a reopen");
}

inline void wakes_at_any_time(trial& t) {
    for (const auto& [earlier, later] : neighbours) {
        auto store = t.open(t.fresh_location());
        for (const std::uint64_t n : {1U, 2U}) {
            put(store, draft_of(n, {.due_at = first_time}), at(0));
            t.equal(take(store, earlier, {.lease = tick, .only = id_of(n)}).size(), 1, "claimed");
            t.equal(nudge(store, id_of(n), earlier), verdict::applied, "nudged while it is claimed");
        }
        settle(store, {id_of(1), 1}, retry{"e", later}, earlier);
        t.equal(get(store, 1).due_at, earlier, "due_at after a retry until later: the time of the settle");
        settle(store, {id_of(2), 1}, retry{"e", earlier}, later);
        t.equal(get(store, 2).due_at, earlier, "due_at after a retry until earlier: the time of the retry");
    }
}

inline void lanes_at_any_time(trial& t) {
    for (const auto when : special_times) {
        auto store = t.open(t.fresh_location());
        put(store, draft_of(1, {.lane = "lane"}), at(0));
        put(store, draft_of(2, {.lane = "lane", .due_at = when}), at(0));
        t.equal(store.next_due("q"), at(0), "next_due while the second entry is blocked");
        cancel(store, id_of(1));
        t.equal(store.next_due("q"), when, "next_due when the second entry heads its lane");
        t.equal(take(store, std::min(when, last_time - tick), {.lease = tick}).size(), can_claim(when) ? 1 : 0,
                "claimed when it is due");
    }
}

inline void parents_at_any_time(trial& t) {
    auto store = t.open();
    std::uint64_t n = 0;
    for (const auto when : special_times) {
        n += 2;
        put(store, draft_of(n, {.due_at = last_time}), at(0));
        put(store, draft_of(n + 1, {.parent = id_of(n), .due_at = last_time}), at(0));
        cancel(store, id_of(n + 1), when);
        t.equal(get(store, n).due_at, when, "due_at of a parent whose child has ended at " + show(when));
        t.equal(get(store, n).updated_at, when == last_time ? at(0) : when, "updated_at of that parent");
    }
}

} // namespace times_checks

inline constexpr std::array timing_of_others{
    clause{"TIME-10", layer::examples, level::must, needs::nothing,
           "next_due is the earliest gate, whatever time that is: the first, one before 1970, 1970 itself, the last.",
           times_checks::due_at_any_time},
    clause{"TIME-11", layer::examples, level::must, needs::nothing,
           "A purge removes what ended before `before`, whatever time that is, and nothing that ended exactly then.",
           times_checks::purges_by_time},
    clause{"TIME-12", layer::examples, level::must, needs::nothing,
           "A purge removes the entries that ended first, before and after 1970.", times_checks::purges_in_order},
    clause{"TIME-13", layer::examples, level::must, needs::nothing,
           "A purge compares the end of an entry with `before` to the microsecond, at any time.",
           times_checks::purges_to_the_microsecond},
    clause{"TIME-14", layer::examples, level::may, needs::durable, "All times survive a reopen.",
           times_checks::times_survive},
    clause{"TIME-15", layer::examples, level::must, needs::nothing,
           "A claimed entry that was nudged is due at the settle's now or at the outcome's time, whichever is earlier, "
           "at any time.",
           times_checks::wakes_at_any_time},
    clause{"TIME-16", layer::examples, level::may, needs::lanes,
           "An entry that heads its lane is due at its due_at, whatever time that is.",
           times_checks::lanes_at_any_time},
    clause{"TIME-17", layer::examples, level::must, needs::nothing,
           "The end of a child makes its parent due, whatever time that is.", times_checks::parents_at_any_time},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch
