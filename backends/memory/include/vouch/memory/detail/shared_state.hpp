// SPDX-License-Identifier: MIT
// The state that all handles and transactions of one memory store share.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include <vouch/contract/capability.hpp>
#include <vouch/contract/error.hpp>
#include <vouch/memory/detail/ledger.hpp>

namespace vouch {
inline namespace v0 {
namespace memory::detail {

inline constexpr capabilities supported{.groups = true, .lanes = true, .wakes = true, .shared = true};

/// How long `begin` waits. A minute is longer than any transaction that ends by itself. A seam may set another limit.
template <class Seam>
[[nodiscard]] constexpr std::chrono::milliseconds begin_limit() noexcept {
    if constexpr (requires { Seam::begin_limit; }) {
        return Seam::begin_limit;
    } else {
        return std::chrono::minutes{1};
    }
}

template <class Seam>
struct shared_state {
    explicit shared_state(Seam seam) : ledger(std::move(seam)) {}

    std::mutex mutex; ///< guards everything below
    detail::ledger<Seam> ledger;
    bool writing = false;              ///< a transaction is open
    std::thread::id writer;            ///< the thread that used it last; none after a move
    std::condition_variable idle;      ///< signalled when no transaction is open any more
    std::condition_variable_any woken; ///< signalled when the `wakes` of some queue has grown

    /// Made in advance, because copying it allocates nothing.
    const error out_of_memory{error_kind::full, "memory: out of memory"};

    void end(bool committed) noexcept {
        const bool wakes = committed && ledger.has_wakes();
        committed ? ledger.commit() : ledger.roll_back();
        writing = false;
        idle.notify_one();
        if (wakes) {
            woken.notify_all();
        }
    }
};

} // namespace memory::detail
} // namespace v0
} // namespace vouch
