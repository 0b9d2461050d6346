// SPDX-License-Identifier: MIT
// What a store can do beyond the base contract. A capability that is off is refused, never ignored: a draft that uses
// it is `unsupported` and nothing is written.
#pragma once

#include <vouch/contract/limits.hpp>

namespace vouch {
inline namespace v0 {

/// The level of the contract these headers describe. A store declares the level it was written for.
inline constexpr int contract_level = 1;

struct capabilities {
    bool groups = false;  ///< `draft::group`: the settle that completes a group says so
    bool lanes = false;   ///< `draft::lane`: one claimed at a time, in sequence
    bool wakes = false;   ///< models `waking_store`: one may wait for new work
    bool durable = false; ///< committed work survives the process and the machine
    bool shared = false;  ///< several handles, threads or processes may use the same stored work
    vouch::limits limits{};

    [[nodiscard]] friend constexpr bool operator==(const capabilities&, const capabilities&) noexcept = default;
};

} // namespace v0
} // namespace vouch
