// SPDX-License-Identifier: MIT
// What a runner does with an entry whose topic fits none of its routes.
#pragma once

#include <chrono>
#include <cstdint>

#include <vouch/contract/time.hpp>

namespace vouch {
inline namespace v0 {

enum class unhandled : std::uint8_t {
    bury,       ///< the entry is dead at once, with the error `no_handler`; an operator sees it and requeues it
    look_again, ///< the entry is handed back and due again after `look_again_in`: for workers deployed after producers
};

/// How long an entry waits that this runner has no handler for, but another runner may have.
inline constexpr duration look_again_in = std::chrono::minutes{1};

} // namespace v0
} // namespace vouch
