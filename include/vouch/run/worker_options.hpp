// SPDX-License-Identifier: MIT
// How a worker goes about it, in all and per queue, and what a run of it came to.
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
#include <vouch/run/handling.hpp>
#include <vouch/run/report.hpp>

namespace vouch {
inline namespace v0 {

struct worker_options {
    std::string name = "worker"; ///< who claims; shown to operators
    /// What the worker logs to stderr by itself, unless one of its observers writes a log.
    log_level log = log_level::warning;
    bool exception_text = false; ///< hand it to observers and the log: it may carry other people's data
    /// Nothing is late by more than this, whatever becomes of wake-ups.
    duration poll_interval = std::chrono::seconds{1};
    /// How long an outcome may wait for others to be committed with.
    duration settle_within = std::chrono::milliseconds{5};
    /// How much work, counted in time, a thread may have waiting. Short handlers are claimed by the batch, long ones
    /// one by one, so that no entry waits behind them while another worker is idle. Claims that wait for longer,
    /// because all threads are busy with a handler each, are handed back.
    duration look_ahead = std::chrono::milliseconds{20};
    /// How long a stop waits for running handlers; what still runs then is left to its lease. Unset: as long as it
    /// takes.
    std::optional<duration> stop_within{};
    /// The waits between tries while the store or a hook fails.
    exponential store_backoff{.base = std::chrono::milliseconds{20}, .max = std::chrono::seconds{5}, .jitter = 0.5};
    /// How many tries in a row a stop makes to settle what is left, while the store or a hook fails and no handler
    /// runs.
    int stop_tries = 5;
    duration purge_every = std::chrono::seconds{10}; ///< how often a queue with a retention is swept
    std::size_t purge_limit = 200;                   ///< entries per commit of a sweep
};

struct queue_options {
    std::string queue{};
    std::size_t concurrency = 1;              ///< handlers at a time
    std::size_t batch_size = 50;              ///< entries per commit, and the most that wait for a thread
    duration lease = std::chrono::minutes{5}; ///< how long a claim outlives a worker that died
    bool extend_leases = true;                ///< while a handler runs; else the lease must exceed what a batch takes
    retry_policy retry{};                     ///< for routes and entries that say nothing of their own
    vouch::unhandled unhandled = unhandled::bury; ///< for entries whose topic no route fits
    vouch::retention retention{};                 ///< what is swept, and when
};

struct worker_report {
    std::size_t claimed = 0;
    std::size_t succeeded = 0;
    std::size_t advanced = 0;
    std::size_t retried = 0;
    std::size_t dead = 0;
    std::size_t released = 0;
    std::size_t stale = 0;     ///< outcomes refused because another claim had taken over
    std::size_t unsettled = 0; ///< outcomes that could not be recorded; their leases heal them
    std::size_t lost = 0;      ///< claims that were taken over while in hand
    std::size_t abandoned = 0; ///< handlers that were still running when the stop's time was over
    std::size_t purged = 0;
    std::size_t store_errors = 0;

    worker_report& operator+=(const report& r) noexcept {
        succeeded += r.succeeded;
        advanced += r.advanced;
        retried += r.retried;
        dead += r.dead;
        released += r.released;
        stale += r.stale;
        unsettled += r.unsettled;
        return *this;
    }
    worker_report& operator+=(const worker_report& r) noexcept {
        claimed += r.claimed;
        succeeded += r.succeeded;
        advanced += r.advanced;
        retried += r.retried;
        dead += r.dead;
        released += r.released;
        stale += r.stale;
        unsettled += r.unsettled;
        lost += r.lost;
        abandoned += r.abandoned;
        purged += r.purged;
        store_errors += r.store_errors;
        return *this;
    }
    [[nodiscard]] friend bool operator==(const worker_report&, const worker_report&) = default;
};

} // namespace v0
} // namespace vouch
