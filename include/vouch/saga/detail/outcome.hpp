// SPDX-License-Identifier: MIT
// The result of one claim of a saga: the outcome to settle, and what must hold when it is settled.
#pragma once

#include <vouch/contract/id.hpp>
#include <vouch/contract/outcome.hpp>

namespace vouch {
inline namespace v0 {
namespace detail {

struct saga_outcome {
    vouch::outcome outcome{};
    bool completes = false; ///< the settle fails if a cancellation of the saga has been requested
    id origin{};            ///< the saga's first entry

    operator vouch::outcome() const { return outcome; } // NOLINT: implicit, because a handler returns it
};

} // namespace detail
} // namespace v0
} // namespace vouch
