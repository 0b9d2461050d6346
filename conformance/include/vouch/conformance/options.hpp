// SPDX-License-Identifier: MIT
// How much the suite does. Budgets are counts, not times, so that a seed determines the whole run.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <vouch/conformance/clause.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance {

/// The store that is tested.
struct identity {
    std::string name{};
    std::string version{};
};

enum class profile : std::uint8_t {
    quick,    ///< takes seconds, for use while developing
    standard, ///< takes about a minute; the basis of a verdict
    soak,     ///< takes hours
};

[[nodiscard]] constexpr std::string_view name_of(profile p) noexcept {
    switch (p) {
    case profile::quick: return "quick";
    case profile::standard: return "standard";
    case profile::soak: return "soak";
    }
    return "?";
}

/// How many cases of each kind are run.
struct budget {
    std::size_t model_runs = 0;
    std::size_t commands_per_run = 0;
    std::size_t schedules = 0; ///< for each pair of transactions
    std::size_t histories = 0;
    std::size_t crash_points = 0;
    std::size_t simulated_days = 0;
    /// Where a case is repeated for each of its calls, or for each pause inside the store, with a fault or an interruption
    /// there: only at every n-th of them, from a random one on.
    std::size_t point_stride = 1;
    std::size_t cost_rows = 0; ///< the largest number of entries that a claim must not look at
};

/// The budget for a store in memory.
[[nodiscard]] constexpr budget budget_of(profile p) noexcept {
    switch (p) {
    case profile::quick:
        return {.model_runs = 400,
                .commands_per_run = 100,
                .schedules = 12,
                .histories = 1'500,
                .crash_points = 100,
                .simulated_days = 5,
                .cost_rows = 10'000};
    case profile::standard: break;
    case profile::soak:
        return {.model_runs = 200'000,
                .commands_per_run = 200,
                .schedules = 1'000,
                .histories = 500'000,
                .crash_points = 50'000,
                .simulated_days = 5'000,
                .cost_rows = 100'000};
    }
    return {.model_runs = 10'000,
            .commands_per_run = 100,
            .schedules = 100,
            .histories = 20'000,
            .crash_points = 1'000,
            .simulated_days = 130,
            .cost_rows = 100'000};
}

/// The budget for a store with these capabilities. A durable store is much slower, so it gets a smaller budget.
[[nodiscard]] constexpr budget budget_of(profile p, const capabilities& can) noexcept {
    auto b = budget_of(p);
    if (can.durable) {
        b.model_runs /= p == profile::quick ? 16 : 10;
        b.schedules = (b.schedules + 3) / 4;
        b.histories /= p == profile::quick ? 8 : 5;
        b.simulated_days = (b.simulated_days + 9) / 10;
        if (p == profile::quick) {
            b.crash_points /= 2;
            b.point_stride = 2;
        }
    }
    return b;
}

struct options {
    std::uint64_t seed = 1;
    conformance::profile profile = conformance::profile::standard;
    std::string clause{};                      ///< only clauses whose id starts with this; empty: all
    std::vector<std::string> skip{};           ///< no clauses whose ids start with one of these
    std::optional<conformance::layer> layer{}; ///< only this layer; empty: all
    std::size_t seconds_per_clause = 300;      ///< a clause that takes longer hangs, and the program ends
    bool progress = false;                     ///< print each clause to stderr before it is run
    bool explains = true;                      ///< shrink failing cases and write transcripts; false is faster
};

/// Whether the options let this clause run.
[[nodiscard]] inline bool is_chosen(const clause& c, const options& o) {
    const auto is_named = [&](const std::string& prefix) { return c.id.starts_with(prefix); };
    return is_named(o.clause) && std::none_of(o.skip.begin(), o.skip.end(), is_named) &&
           (!o.layer || c.layer == *o.layer);
}

} // namespace conformance
} // namespace v0
} // namespace vouch
