// SPDX-License-Identifier: MIT
// A clause: one numbered sentence of the contract, with the check that a store obeys it.
#pragma once

#include <cstdint>
#include <string_view>

#include <vouch/contract/capability.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance {

class trial; ///< what a check works with; for the suite only

enum class level : std::uint8_t {
    must, ///< applies to every store
    may,  ///< applies to stores that declare the capability; other stores must refuse its use
};

/// The capability that a clause applies to.
enum class needs : std::uint8_t { nothing, groups, lanes, wakes, durable, shared, committing };

[[nodiscard]] constexpr std::string_view name_of(needs n) noexcept {
    switch (n) {
    case needs::nothing: return "-";
    case needs::groups: return "groups";
    case needs::lanes: return "lanes";
    case needs::wakes: return "wakes";
    case needs::durable: return "durable";
    case needs::shared: return "shared";
    case needs::committing: return "committing";
    }
    return "?";
}

[[nodiscard]] constexpr bool has(const capabilities& can, needs n) noexcept {
    switch (n) {
    case needs::nothing: return true;
    case needs::groups: return can.groups;
    case needs::lanes: return can.lanes;
    case needs::wakes: return can.wakes;
    case needs::durable: return can.durable;
    case needs::shared: return can.shared;
    case needs::committing: return can.committing;
    }
    return false;
}

/// The kinds of checks, from the fixture itself to the simulation. conformance/README.md describes them.
enum class layer : std::uint8_t {
    fixture,
    examples,
    model,
    interleavings,
    histories,
    threads,
    crashes,
    processes,
    faults,
    simulation,
    cost
};

[[nodiscard]] constexpr std::string_view name_of(layer l) noexcept {
    switch (l) {
    case layer::fixture: return "fixture";
    case layer::examples: return "examples";
    case layer::model: return "model";
    case layer::interleavings: return "interleavings";
    case layer::histories: return "histories";
    case layer::threads: return "threads";
    case layer::crashes: return "crashes";
    case layer::processes: return "processes";
    case layer::faults: return "faults";
    case layer::simulation: return "simulation";
    case layer::cost: return "cost";
    }
    return "?";
}

struct clause {
    std::string_view id; ///< "CLAIM-01"
    conformance::layer layer;
    conformance::level level;
    conformance::needs needs;
    std::string_view sentence;
    void (*check)(trial&);
};

} // namespace conformance
} // namespace v0
} // namespace vouch
