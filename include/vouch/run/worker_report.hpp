// SPDX-License-Identifier: MIT
// What a run of a worker did, in numbers.
#pragma once

#include <cstddef>

#include <vouch/run/report.hpp>

namespace vouch {
inline namespace v0 {

struct worker_report {
    std::size_t claimed = 0;
    std::size_t succeeded = 0;
    std::size_t advanced = 0;
    std::size_t retried = 0;
    std::size_t dead = 0;
    std::size_t released = 0;
    std::size_t stale = 0;     ///< outcomes refused because another worker had taken over the claim
    std::size_t unsettled = 0; ///< outcomes that could not be stored; the entries stay claimed until their leases end
    std::size_t lost = 0;      ///< claims that another worker took over while this one held them
    std::size_t abandoned = 0; ///< handlers that were still running after `stop_within`
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
