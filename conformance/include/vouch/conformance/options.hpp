// SPDX-License-Identifier: MIT
// How much the suite does. Budgets are counts, not times, so that one seed is one run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <vouch/conformance/clause.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance {

/// Whose store is tested.
struct identity {
    std::string name{};
    std::string version{};
};

enum class profile : std::uint8_t {
    quick,    ///< seconds, for the inner loop
    standard, ///< a minute or so; what a verdict is based on
    soak,     ///< as long as one likes to wait
};

[[nodiscard]] constexpr std::string_view name_of(profile p) noexcept {
    switch (p) {
    case profile::quick: return "quick";
    case profile::standard: return "standard";
    case profile::soak: return "soak";
    }
    return "?";
}

struct budget {
    std::size_t stories = 0;        ///< of the model
    std::size_t story_commands = 0; ///< in each
    std::size_t schedules = 0;      ///< orders tried of each pair of transactions
    std::size_t histories = 0;      ///< of threads
    std::size_t crash_points = 0;
    std::size_t simulated_days = 0;
    std::size_t cost_rows = 0; ///< the largest number of rows beside a claim
};

/// For a store in memory.
[[nodiscard]] constexpr budget budget_of(profile p) noexcept {
    switch (p) {
    case profile::quick:
        return {.stories = 400,
                .story_commands = 100,
                .schedules = 12,
                .histories = 1'500,
                .crash_points = 100,
                .simulated_days = 5,
                .cost_rows = 10'000};
    case profile::standard: break;
    case profile::soak:
        return {.stories = 200'000,
                .story_commands = 200,
                .schedules = 1'000,
                .histories = 500'000,
                .crash_points = 50'000,
                .simulated_days = 5'000,
                .cost_rows = 100'000};
    }
    return {.stories = 10'000,
            .story_commands = 100,
            .schedules = 100,
            .histories = 20'000,
            .crash_points = 1'000,
            .simulated_days = 130,
            .cost_rows = 100'000};
}

/// A durable store's commands take tens of times as long, so it is given fewer of them.
[[nodiscard]] constexpr budget budget_of(profile p, const capabilities& can) noexcept {
    auto b = budget_of(p);
    if (can.durable) {
        b.stories /= 10;
        b.schedules = (b.schedules + 3) / 4;
        b.histories /= 5;
        b.simulated_days = (b.simulated_days + 9) / 10;
    }
    return b;
}

struct options {
    std::uint64_t seed = 1;
    conformance::profile profile = conformance::profile::standard;
    std::string clause{};                      ///< only those whose id begins so; empty: all
    std::optional<conformance::layer> layer{}; ///< only this one
    std::size_t seconds_per_clause = 300;      ///< after which a clause counts as hanging and the program ends
    bool progress = false;                     ///< say on stderr what is being done
    bool explains = true;                      ///< a failing case is made smaller and told; without, it is found sooner
};

} // namespace conformance
} // namespace v0
} // namespace vouch
