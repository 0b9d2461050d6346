// SPDX-License-Identifier: MIT
// What a store can do beyond the base contract. A store refuses what it does not declare: a draft that needs a missing
// capability throws `unsupported`, and nothing is written.
#pragma once

#include <vouch/contract/limits.hpp>

namespace vouch {
inline namespace v0 {

/// The level of the contract that these headers describe. A store declares the level for which it was written.
inline constexpr int contract_level = 1;

/// What a store declares through `capabilities()`. The answer never changes during the life of a store.
struct capabilities {
    bool groups = false;     ///< accepts `draft::group`; the settle that completes a group says so
    bool lanes = false;      ///< accepts `draft::lane`; a lane has one claimed entry at a time, in sequence
    bool wakes = false;      ///< models `waking_store`: a worker can wait for new work
    bool durable = false;    ///< committed work survives a crash of the process, and of the machine if so configured
    bool shared = false;     ///< several handles or processes may use the same stored work
    bool committing = false; ///< its transactions model `committing_transaction`; declared exactly if they do
    vouch::limits limits{};  ///< at least the defaults

    [[nodiscard]] friend constexpr bool operator==(const capabilities&, const capabilities&) noexcept = default;
};

} // namespace v0
} // namespace vouch
