// SPDX-License-Identifier: MIT
// A claim that a worker holds for one queue, and the claims that one call of a handler gets.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <vector>

#include <vouch/contract/entry.hpp>
#include <vouch/contract/ticket.hpp>
#include <vouch/run/batch_options.hpp>
#include <vouch/run/detail/completion.hpp>

namespace vouch {
inline namespace v0 {
namespace detail {

using steady = std::chrono::steady_clock;

/// A claim that waits for a handler thread.
template <class Store>
struct held_claim {
    vouch::entry entry{};
    std::stop_source stop{};                       ///< fires when the claim is lost or the worker stops
    steady::time_point renew_at{};                 ///< when its lease has to be extended
    std::optional<completion<Store>> unrecorded{}; ///< its `record` failed; `entry` is empty then
    const batch_options* batch = nullptr;          ///< which claims may share its call; null: none
    steady::time_point start_at{};                 ///< how long it waits for others to share its call

    [[nodiscard]] vouch::ticket ticket() const noexcept { return ticket_of(unrecorded ? unrecorded->entry : entry); }
};

/// What a handler thread has taken: one claim, or several of a batch route.
template <class Store>
struct handler_call {
    std::uint64_t number = 0;
    std::vector<held_claim<Store>> claims{};
    std::vector<ticket> tickets{};
    std::stop_source stop{std::nostopstate}; ///< of a batch: fires when the worker stops or all its claims are lost
};

} // namespace detail
} // namespace v0
} // namespace vouch
