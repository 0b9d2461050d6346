// SPDX-License-Identifier: MIT
// How `metrics::look_at` reads the depth of a queue.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include <vouch/contract/time.hpp>

namespace vouch {
inline namespace v0 {

/// What a look at a queue counts as stuck, and how much it reads.
struct look_options {
    /// An entry is stuck if its due time or the end of its lease is this long ago and it has not changed since. A saga
    /// that has begun is stuck if it has not changed for this long, even while it waits for a reply or for a later
    /// time: this is how a participant without a worker becomes visible.
    duration stuck_after = std::chrono::minutes{5};
    /// How many live entries to read, oldest first. 0 reads none: then only the counts by state and the lateness are
    /// known.
    std::size_t entries_max = 10'000;
    /// Topics of sagas. A saga that has begun is recognised without it. It adds sagas that were emitted without
    /// `outbox::start` and have not been claimed yet, and a count of 0 for topics that have no saga.
    std::vector<std::string> saga_topics{};
};

} // namespace v0
} // namespace vouch
