// SPDX-License-Identifier: MIT
// Fixture: whether the fixture opens stores as the suite requires. If a clause here fails, the others mean nothing.
#pragma once

#include <array>

#include <vouch/conformance/clause.hpp>
#include <vouch/conformance/detail/steps.hpp>
#include <vouch/conformance/detail/trial.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace fixture_checks {

inline void fresh_is_empty(trial& t) {
    auto first = t.open();
    put(first, draft_of(1));
    const auto other = t.open(t.fresh_location());
    t.expect(!other.find(id_of(1)), "a new location has no entry of another location");
    t.equal(other.counts("q"), state_counts{}, "counts of a new location");
    t.equal(other.next_due("q"), std::optional<time_point>{}, "next_due of a new location");
}

inline void second_handle_sees(trial& t) {
    auto first = t.open();
    auto second = t.open();
    put(first, draft_of(1));
    t.equal(get(second, 1), get(first, 1), "the entry through the second handle");
    put(second, draft_of(2));
    t.equal(get(first, 2), get(second, 2), "the entry through the first handle");
}

inline void reopen_keeps(trial& t) {
    std::optional<entry> before;
    {
        auto store = t.open();
        put(store, draft_of(1, {.payload = "kept"}));
        before = get(store, 1);
    }
    const auto again = t.open();
    t.equal(again.find(id_of(1)), before, "the entry after everything was closed and opened again");
}

inline void obeys_given_time(trial& t) {
    auto store = t.open();
    const auto long_ago = time_point{std::chrono::hours{1}};
    const auto far_away = time_point{std::chrono::hours{24 * 365 * 200}};
    put(store, draft_of(1, {.due_at = far_away}), long_ago);
    t.equal(get(store, 1).created_at, long_ago, "created_at is the given time");
    t.equal(take(store, far_away - duration{1}).size(), 0U, "claimed before the given time");
    t.equal(take(store, far_away).size(), 1U, "claimed at the given time");
    t.equal(get(store, 1).updated_at, far_away, "updated_at is the given time");
}

inline void capabilities_constant(trial& t) {
    auto store = t.open();
    const auto before = store.capabilities();
    put(store, draft_of(1));
    t.expect(before == store.capabilities() && before == t.can(), "capabilities are the same at any time");
    if (t.can().shared) {
        t.expect(before == t.open().capabilities(), "capabilities are the same through every handle");
    }
}

} // namespace fixture_checks

inline constexpr std::array fixture{
    clause{"FIX-01", layer::fixture, level::must, needs::nothing, "A new location is an empty store.",
           fixture_checks::fresh_is_empty},
    clause{"FIX-02", layer::fixture, level::may, needs::shared,
           "Opening the same location twice gives a second handle on the same work.",
           fixture_checks::second_handle_sees},
    clause{"FIX-03", layer::fixture, level::may, needs::durable,
           "After all handles are destroyed, a location that is opened again has everything that was committed.",
           fixture_checks::reopen_keeps},
    clause{"FIX-04", layer::fixture, level::must, needs::nothing,
           "The store uses the times that callers pass, in the far past or future too, and reads no clock.",
           fixture_checks::obeys_given_time},
    clause{"FIX-05", layer::fixture, level::must, needs::nothing, "The capabilities of a store never change.",
           fixture_checks::capabilities_constant},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch
