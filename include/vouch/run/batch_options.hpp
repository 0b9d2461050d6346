// SPDX-License-Identifier: MIT
// How many entries a batch handler gets in one call, and how long a worker waits for them.
#pragma once

#include <cstddef>

#include <vouch/contract/time.hpp>

namespace vouch {
inline namespace v0 {

struct batch_options {
    /// The most entries in one call. A claim may hold fewer: its limit is the `batch_size` of the runner or the queue.
    std::size_t size_max = 100;
    /// How long a claimed entry may wait in a worker until `size_max` entries of its route are claimed, counted from the time
    /// it was due. If the worker does not extend leases, it waits for at most a third of the lease. A runner never waits.
    duration wait{};
};

} // namespace v0
} // namespace vouch
