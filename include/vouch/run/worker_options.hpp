// SPDX-License-Identifier: MIT
// The options of a worker: for all its queues, and per queue.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>

#include <vouch/contract/time.hpp>
#include <vouch/observe/logger.hpp>
#include <vouch/policy/backoff.hpp>
#include <vouch/policy/retention.hpp>
#include <vouch/policy/retry.hpp>
#include <vouch/run/unhandled.hpp>

namespace vouch {
inline namespace v0 {

struct worker_options {
    std::string name = "worker"; ///< who claims; shown to operators
    /// What the worker logs to stderr, unless an observer writes a log.
    log_level log = log_level::warning;
    bool exception_text = false; ///< whether observers and the log see it; it may contain personal data
    /// No entry is late by more than this, even if every wake-up is lost.
    duration poll_interval = std::chrono::seconds{1};
    /// How long an outcome may wait so that others can share its commit.
    duration settle_within = std::chrono::milliseconds{5};
    /// How long the worker may hold back a claim or an outcome while producers keep adding work, so that its commits are
    /// fewer and leave the store to them. It never holds back if no work was added since its last commit.
    duration gather_within = std::chrono::milliseconds{5};
    /// How long a claimed entry may wait for a free thread. Entries with short handlers are claimed by the batch, entries
    /// with long ones one by one, so that no entry waits while another worker is idle. Claims that wait longer than this
    /// are handed back.
    duration look_ahead = std::chrono::milliseconds{20};
    /// How long a stop waits for running handlers. The claims of those that still run are left to their leases. Unset:
    /// a stop waits for all handlers.
    std::optional<duration> stop_within{};
    /// The waits between tries while the store or a hook fails.
    exponential store_backoff{.base = std::chrono::milliseconds{20}, .max = std::chrono::seconds{5}, .jitter = 0.5};
    /// How many times in a row a stop tries to settle the remaining outcomes while the store or a hook fails and no
    /// handler runs.
    int stop_tries = 5;
    duration purge_every = std::chrono::seconds{10}; ///< how often retention is applied to a queue
    std::size_t purge_limit = 200;                   ///< entries removed per commit
};

struct queue_options {
    std::string queue{};
    std::size_t concurrency = 1;              ///< handlers at a time
    std::size_t batch_size = 200;             ///< entries per commit, and the most that wait for a thread
    duration lease = std::chrono::minutes{5}; ///< how long a claim outlives a worker that has died
    bool extend_leases = true; ///< while a handler runs; if not, the lease must be longer than a batch takes
    retry_policy retry{};      ///< for routes and entries without a policy of their own
    vouch::unhandled unhandled = unhandled::bury; ///< for entries whose topic fits no route
    vouch::retention retention{};                 ///< which ended entries are removed, and when
};

} // namespace v0
} // namespace vouch
