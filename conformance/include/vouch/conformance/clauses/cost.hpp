// SPDX-License-Identifier: MIT
// Cost: how long a claim takes in a store with many entries that it must not look at. Times are only compared with each
// other.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <vouch/conformance/clause.hpp>
#include <vouch/conformance/detail/steps.hpp>
#include <vouch/conformance/detail/trial.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace cost_checks {

inline constexpr std::size_t few = 100;
inline constexpr double growth_max = 10; // for a thousand times the rows; a scan would take hundreds of times as long
inline constexpr time_point now = at(1'000);
inline constexpr duration long_time = std::chrono::hours{24};

/// A store with `rows` entries, each made by `make(number) -> draft`.
template <class Make>
[[nodiscard]] any_store filled(trial& t, std::size_t rows, Make&& make) {
    auto store = t.open(t.fresh_location());
    constexpr std::size_t batch = 5'000;
    for (std::size_t done = 0; done < rows;) {
        std::vector<draft> drafts;
        for (; drafts.size() < batch && done < rows; ++done) {
            drafts.push_back(make(1'000'000 + done));
        }
        vouch::enqueue(store, drafts, at(0));
    }
    return store;
}

/// The duration of the fastest of several claims of ten entries, in microseconds.
[[nodiscard]] inline double claim_time(any_store& store, std::uint64_t first) {
    double best = 1e9;
    for (std::uint64_t round = 0; round < 15; ++round) {
        std::vector<draft> drafts;
        for (std::uint64_t n = 0; n < 10; ++n) {
            drafts.push_back(draft_of(first + 10 * round + n, {.due_at = now}));
        }
        vouch::enqueue(store, drafts, now);
        from_begin(store, [&](auto& tx) {
            const auto begun = std::chrono::steady_clock::now();
            const auto claimed = tx.claim(request(now, {.limit = 10, .lease = long_time}));
            best = std::min(
                best, std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begun).count());
            trial::equal(claimed.size(), std::size_t{10}, "due entries claimed beside the others");
            std::vector<vouch::settle> settles;
            for (const auto& e : claimed) {
                settles.push_back({ticket_of(e), succeed{}});
            }
            std::ignore = tx.settle(settles, now);
            tx.commit();
        });
    }
    return best;
}

/// Compares a claim in a small store with one in a large store.
template <class Make, class After>
void does_not_grow(trial& t, Make&& make, After&& after) {
    auto small = filled(t, few, make);
    auto large = filled(t, t.budget().cost_rows, make);
    after(small);
    after(large);
    constexpr double noise = 20; // microseconds that cannot be measured reliably
    double beside_few = 0;
    double beside_many = 0;
    for (std::uint64_t attempt = 0; attempt < 3; ++attempt) {
        beside_few = claim_time(small, 1 + 1'000 * attempt);
        beside_many = claim_time(large, 1 + 1'000 * attempt);
        if (beside_many <= std::max(noise, growth_max * beside_few)) {
            return;
        }
    }
    // A power of ten, because exact times would make every report different.
    int times = 10;
    while (times < 1'000'000 && beside_many > 10.0 * times * beside_few) {
        times *= 10;
    }
    trial::fail("a claim of ten beside " + std::to_string(t.budget().cost_rows) +
                    " rows takes about as long as beside " + std::to_string(few),
                "more than " + std::to_string(times) + " times as long", "at most 10 times as long");
}

inline constexpr auto nothing_more = [](any_store&) {};

inline void future(trial& t) {
    does_not_grow(
        t, [](std::uint64_t n) { return draft_of(n, {.due_at = now + long_time}); }, nothing_more);
}

inline void terminal(trial& t) {
    does_not_grow(
        t, [](std::uint64_t n) { return draft_of(n, {.result = "done"}); }, nothing_more);
}

inline void blocked(trial& t) {
    does_not_grow(
        t,
        [](std::uint64_t n) { return draft_of(n, {.lane = "l" + std::to_string(n % 10), .due_at = now + long_time}); },
        nothing_more);
}

inline void claimed(trial& t) {
    does_not_grow(
        t, [](std::uint64_t n) { return draft_of(n, {.due_at = at(0)}); },
        [](any_store& store) {
            while (!take(store, at(1), {.limit = 5'000, .lease = long_time}).empty()) {
            }
        });
}

} // namespace cost_checks

inline constexpr std::array cost{
    clause{"COST-01", layer::cost, level::must, needs::nothing,
           "The cost of a claim does not grow with entries that are not due yet.", cost_checks::future},
    clause{"COST-02", layer::cost, level::must, needs::nothing,
           "The cost of a claim does not grow with terminal entries.", cost_checks::terminal},
    clause{"COST-03", layer::cost, level::may, needs::lanes,
           "The cost of a claim does not grow with entries that are blocked in their lanes.", cost_checks::blocked},
    clause{"COST-04", layer::cost, level::must, needs::nothing,
           "The cost of a claim does not grow with entries that other workers hold.", cost_checks::claimed},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch
