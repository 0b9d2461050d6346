// SPDX-License-Identifier: MIT
// Times: 1970 and the times around it, the first and the last time that can be represented, and microseconds far from the
// present. No time has a special meaning; an unset time is a different value.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <vouch/conformance/clause.hpp>
#include <vouch/conformance/clauses/enqueue.hpp>
#include <vouch/conformance/detail/steps.hpp>
#include <vouch/conformance/detail/trial.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace times_checks {

using namespace enqueue_checks;

inline constexpr auto first_time = time_point::min();
inline constexpr auto last_time = time_point::max();
inline constexpr duration tick{1};

/// So many microseconds after 1970.
[[nodiscard]] constexpr time_point since_1970(std::int64_t us) noexcept { return time_point{duration{us}}; }

/// Times at which a careless store rounds, wraps or mistakes a value for something else, in ascending order.
inline constexpr std::array special_times{
    first_time,
    first_time + tick,
    since_1970(-62'135'596'800'000'001), // before the year 1
    since_1970(-9'223'372'036'854'776),  // before the first time in nanoseconds of 64 bits
    since_1970(-9'007'199'254'740'993),  // a microsecond that a double does not keep
    since_1970(-2'147'483'649'000'000),  // before the seconds of 32 bits
    since_1970(-1'000'001),
    since_1970(-1),
    since_1970(0),
    since_1970(1),
    since_1970(999'999),
    since_1970(2'147'483'648'000'001),   // after the seconds of 32 bits
    since_1970(4'294'967'296'000'001),   // after the seconds of 32 bits without a sign
    since_1970(9'007'199'254'740'993),   // a microsecond that a double does not keep
    since_1970(9'223'372'036'854'776),   // after the last time in nanoseconds of 64 bits
    since_1970(253'402'300'800'000'001), // after the year 9999
    last_time - tick,
    last_time};
static_assert(std::is_sorted(special_times.begin(), special_times.end()));

/// Ascending pairs of times between which a store must see a difference.
inline constexpr std::array neighbours{
    std::pair{first_time, first_time + tick},
    std::pair{since_1970(-9'007'199'254'740'993), since_1970(-9'007'199'254'740'992)},
    std::pair{since_1970(-1), since_1970(0)},
    std::pair{since_1970(0), since_1970(1)},
    std::pair{since_1970(9'007'199'254'740'992), since_1970(9'007'199'254'740'993)},
    std::pair{last_time - 3 * tick, last_time - 2 * tick}};

/// Whether a claim with the shortest lease is possible at this time.
[[nodiscard]] constexpr bool can_claim(time_point t) noexcept { return t < last_time; }

inline void drafts_at_any_time(trial& t) {
    auto store = t.open();
    std::uint64_t n = 0;
    for (const auto when : special_times) {
        // Each of the three times alone, so that none can stand in for another.
        const std::array drafts{draft_of(++n, {.due_at = when}), draft_of(++n, {.due_at = at(0), .expires_at = when}),
                                draft_of(++n, {.due_at = at(0)})};
        const std::array nows{at(5), at(5), when};
        for (std::size_t i = 0; i < drafts.size(); ++i) {
            t.equal(put(store, drafts[i], nows[i]), inserted(drafts[i].id.low), "enqueued");
            stored_as_drafted(store, drafts[i], nows[i], "a draft with due_at, expires_at or now at " + show(when));
        }
        const auto d = draft_of(++n);
        put(store, d, when);
        stored_as_drafted(store, d, when, "a draft without due_at, enqueued at " + show(when));
    }
}

inline void claims_at_any_time(trial& t) {
    std::uint64_t n = 0;
    auto store = t.open();
    for (const auto when : special_times) {
        if (!can_claim(when)) {
            continue;
        }
        n += 1;
        put(store, draft_of(n, {.due_at = when}), at(0));
        const auto taken = take(store, when, {.lease = tick, .only = id_of(n)});
        t.equal(taken.size(), 1, "claimed at " + show(when) + ", when it is due");
        t.equal(taken.front().last_attempt_at, when, "last_attempt_at");
        t.equal(taken.front().lease_until, when + tick, "lease_until");
        t.equal(taken.front().updated_at, when, "updated_at");
        t.equal(std::optional{taken.front()}, store.find(id_of(n)), "the claimed entry as it is stored");
        const auto again = take(store, std::min(when + tick, last_time - tick), {.lease = tick, .only = id_of(n)});
        t.equal(again.size(), when + tick < last_time ? 1 : 0, "taken over when the lease has ended");
    }
}

inline void claims_not_before(trial& t) {
    for (const auto& [earlier, later] : neighbours) {
        auto store = t.open(t.fresh_location());
        put(store, draft_of(1, {.due_at = later}), at(0));
        t.equal(take(store, earlier, {.lease = tick}).size(), 0, "claimed one microsecond before " + show(later));
        t.equal(take(store, earlier, {.lease = tick, .only = id_of(1)}).size(), 0, "the same by id");
        t.equal(store.next_due("q"), later, "next_due before the claim");
        t.equal(take(store, later, {.lease = tick}).size(), 1, "claimed at " + show(later));
    }
}

inline void claims_across_1970(trial& t) {
    auto store = t.open();
    std::vector<time_point> due(special_times.begin(), special_times.end());
    std::vector<draft> drafts;
    list_of expected;
    for (std::uint64_t n = 1; n <= due.size(); ++n) {
        // In an order of their own: 7 has no common divisor with the number of times.
        const auto place = n * 7 % due.size();
        drafts.push_back(draft_of(place + 1, {.due_at = due[place]}));
        expected.push_back(n);
    }
    static_assert(special_times.size() % 7 != 0);
    vouch::enqueue(store, drafts, at(0));
    expected.pop_back(); // the last time cannot be reached
    constexpr std::size_t few = 3;
    for (std::size_t done = 0; done < expected.size(); done += few) {
        const auto end = std::min(done + few, expected.size());
        t.equal(store.next_due("q"), special_times[done], "next_due among times before and after 1970");
        const auto taken = transact(store, [&](auto& tx) {
            auto some = tx.claim(request(last_time - tick, {.limit = few, .lease = tick}));
            std::vector<vouch::settle> batch;
            for (const auto& e : some) {
                batch.push_back({ticket_of(e), succeed{}});
            }
            std::ignore = tx.settle(batch, at(0));
            return some;
        });
        const list_of next(expected.begin() + static_cast<std::ptrdiff_t>(done),
                           expected.begin() + static_cast<std::ptrdiff_t>(end));
        t.equal(numbers(taken), next, "the next to be claimed, by the order of their times");
    }
    t.equal(store.next_due("q"), last_time, "next_due when only the last time is left");
}

inline void returned_across_1970(trial& t) {
    auto store = t.open();
    const std::array due{since_1970(5), since_1970(-5), first_time, since_1970(0), since_1970(7)};
    for (std::uint64_t n = 1; n <= due.size(); ++n) {
        put(store, draft_of(n, {.due_at = due[n - 1]}), at(0));
    }
    t.equal(numbers(take(store, since_1970(-1), {.lease = tick})), list_of{3, 2}, "claimed before 1970, in order");
    t.equal(numbers(take(store, since_1970(5))), list_of{3, 2, 4, 1}, "claimed after 1970, in order");
    t.equal(numbers(take(store, since_1970(200))), list_of{3, 2, 4, 1, 5}, "taken over, in the order of due_at");
}

inline void leases_across_1970(trial& t) {
    const std::array ends{since_1970(-50), since_1970(-1), since_1970(0), since_1970(1), since_1970(50)};
    for (const auto end : ends) {
        auto store = t.open(t.fresh_location());
        put(store, draft_of(1, {.due_at = first_time}), at(0));
        const auto held = take_one(store, end - 100 * tick, {.lease = 100 * tick});
        t.equal(store.next_due("q"), end, "next_due is the end of the lease at " + show(end));
        t.equal(take(store, end - tick, {.lease = tick}).size(), 0, "claimed before the lease ends at " + show(end));
        t.equal(cancel(store, id_of(1), end - tick), verdict::stale, "cancelled before the lease ends");
        t.equal(extend(store, held, end - tick, tick), verdict::applied, "extended to the same end");
        t.equal(get(store, 1).lease_until, end, "the end of the lease does not move");
        t.equal(extend(store, held, end - 2 * tick, 102 * tick), verdict::applied, "extended");
        t.equal(get(store, 1).lease_until, end + 100 * tick, "the new end of the lease");
        t.equal(take(store, end + 99 * tick, {.lease = tick}).size(), 0, "claimed before the new end of the lease");
        t.equal(cancel(store, id_of(1), end + 100 * tick), verdict::applied, "cancelled when the lease has ended");
    }
}

inline void lease_to_the_last_time(trial& t) {
    auto store = t.open();
    put(store, draft_of(1), at(0));
    put(store, draft_of(2), at(0));
    const auto longest = t.can().limits.lease_max;
    t.equal(take(store, last_time - longest, {.lease = longest}).size(), 2, "claimed until the last time");
    t.equal(get(store, 1).lease_until, last_time, "the end of the lease");
    t.equal(store.next_due("q"), last_time, "next_due");
    t.equal(take(store, last_time - tick, {.lease = tick}).size(), 0, "claimed while the leases run");
    t.equal(cancel(store, id_of(1), last_time - tick), verdict::stale, "cancelled while the lease runs");
    t.equal(cancel(store, id_of(1), last_time), verdict::applied, "cancelled at the last time");
    t.equal(get(store, 1).updated_at, last_time, "the time of the cancel");
    t.equal(extend(store, {id_of(2), 1}, last_time - tick, tick), verdict::applied, "extended to the last time");
    t.equal(settle(store, {id_of(2), 1}, succeed{}, last_time).verdict, verdict::applied, "settled at the last time");
    t.equal(get(store, 2).updated_at, last_time, "the time of the settle");
}

inline void outcomes_at_any_time(trial& t) {
    auto store = t.open();
    std::uint64_t n = 0;
    for (const auto when : special_times) {
        for (const auto& o : {outcome{retry{"e", when}}, outcome{advance{"p", when}}, outcome{release{when}}}) {
            n += 1;
            put(store, draft_of(n), at(0));
            settle(store, take_one(store, at(0), {.only = id_of(n)}), o, at(7));
            t.equal(get(store, n).due_at, when, "due_at after an outcome until " + show(when));
            t.equal(get(store, n).updated_at, at(7), "updated_at after that outcome");
            cancel(store, id_of(n), when);
            t.equal(get(store, n).updated_at, when, "updated_at after a cancel at " + show(when));
        }
    }
}

inline void nudges_at_any_time(trial& t) {
    for (const auto& [earlier, later] : neighbours) {
        auto store = t.open(t.fresh_location());
        put(store, draft_of(1, {.due_at = later}), at(0));
        put(store, draft_of(2, {.due_at = earlier}), at(0));
        t.equal(nudge(store, id_of(2), later), verdict::repeated, "nudged when it is due");
        t.equal(get(store, 2).due_at, earlier, "due_at of an entry that was due already");
        t.equal(nudge(store, id_of(1), later), verdict::repeated, "nudged exactly when it is due");
        t.equal(nudge(store, id_of(1), earlier), verdict::applied, "nudged one microsecond before it is due");
        t.equal(get(store, 1).due_at, earlier, "due_at after that nudge");
        t.equal(get(store, 1).updated_at, earlier, "updated_at after that nudge");
        put(store, draft_of(3, {.due_at = last_time}), at(0));
        t.equal(nudge(store, id_of(3), earlier), verdict::applied, "nudged long before it is due");
        t.equal(get(store, 3).due_at, earlier, "due_at after that nudge");
    }
}

} // namespace times_checks

inline constexpr std::array timing{
    clause{"TIME-01", layer::examples, level::must, needs::nothing,
           "due_at, expires_at and the now of an enqueue may be any time, and are kept to the microsecond; an unset "
           "expires_at differs from every time.",
           times_checks::drafts_at_any_time},
    clause{"TIME-02", layer::examples, level::must, needs::nothing,
           "A claim may be at any time that leaves room for its lease; lease_until, last_attempt_at and updated_at are "
           "exact.",
           times_checks::claims_at_any_time},
    clause{"TIME-03", layer::examples, level::must, needs::nothing,
           "An entry is claimed from its due_at on and not one microsecond earlier, at any time.",
           times_checks::claims_not_before},
    clause{"TIME-04", layer::examples, level::must, needs::nothing,
           "Claims and next_due order all times by their value, before and after 1970, from the first to the last.",
           times_checks::claims_across_1970},
    clause{"TIME-05", layer::examples, level::must, needs::nothing,
           "A claim returns entries in the order of due_at, before and after 1970.",
           times_checks::returned_across_1970},
    clause{"TIME-06", layer::examples, level::must, needs::nothing,
           "A lease that ends before, in or after 1970 runs to its end, for claim, cancel, extend and next_due.",
           times_checks::leases_across_1970},
    clause{"TIME-07", layer::examples, level::must, needs::nothing,
           "A lease may end at the last time, and runs until then.", times_checks::lease_to_the_last_time},
    clause{"TIME-08", layer::examples, level::must, needs::nothing,
           "An outcome may set due_at to any time, and a cancel may be at any time.",
           times_checks::outcomes_at_any_time},
    clause{"TIME-09", layer::examples, level::must, needs::nothing,
           "A nudge compares due_at with its now to the microsecond, at any time.", times_checks::nudges_at_any_time},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch
