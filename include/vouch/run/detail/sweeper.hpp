// SPDX-License-Identifier: MIT
// Applies a queue's retention in the background: removes ended entries, a bounded number per commit. After each commit
// it pauses four times as long as the commit took, so that claims and settles get their turns.
//
// Used by one thread.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include <vouch/contract/request.hpp>
#include <vouch/contract/state.hpp>
#include <vouch/contract/transact.hpp>
#include <vouch/observe/observer.hpp>
#include <vouch/outbox/outbox.hpp>
#include <vouch/policy/retention.hpp>
#include <vouch/run/detail/event_reporter.hpp>
#include <vouch/run/detail/interruptible_wait.hpp>
#include <vouch/run/detail/store_retry.hpp>
#include <vouch/run/worker_options.hpp>
#include <vouch/run/worker_report.hpp>

namespace vouch {
inline namespace v0 {
namespace detail {

template <class Store>
class sweeper {
  public:
    using steady = std::chrono::steady_clock;

    /// All arguments must outlive the sweeper.
    sweeper(const outbox<Store>& from, const event_reporter& events, const worker_options& all, const queue_options& of)
        : outbox_(from), events_(events), all_(all), queue_(of),
          retry_(all.store_backoff, from.clock(), events, {of.queue, all.name, all.exception_text}) {}

    [[nodiscard]] static bool has_work(const retention& keeps) noexcept {
        const time_point any{};
        return keeps.succeeded.before(any) || keeps.dead.before(any);
    }

    void interrupt() noexcept { wait_.interrupt(); }

    /// Sweeps until a stop is requested. Throws errors that no repeat can cure.
    void work(const std::stop_token& stop) {
        while (!stop.stop_requested()) {
            sweep(state::succeeded, queue_.retention.succeeded, stop);
            sweep(state::dead, queue_.retention.dead, stop);
            if (!stop.stop_requested()) {
                wait_.wait(all_.purge_every);
            }
        }
    }

    [[nodiscard]] worker_report done() const noexcept { return {.purged = purged_, .store_errors = retry_.total()}; }

  private:
    void sweep(state which, const purge_rule& rule, const std::stop_token& stop) {
        // Read once: entries that end from now on are left to the next sweep, or a busy queue would never let this end.
        const auto before = rule.before(outbox_.now());
        for (bool more = before.has_value(); more && !stop.stop_requested();) {
            const auto start = steady::now();
            const bool fine = retry_.attempt([&] { more = purge_some(which, *before, start); });
            if (!fine) {
                wait_.wait(retry_.next() - steady::now());
            } else if (more) {
                wait_.wait(std::max<steady::duration>(4 * (steady::now() - start), std::chrono::milliseconds{1}));
            }
        }
    }

    /// Returns whether there may be more.
    [[nodiscard]] bool purge_some(state which, time_point before, steady::time_point start) {
        const purge_request some{.queue = queue_.queue, .before = before, .limit = all_.purge_limit, .state = which};
        const auto gone = transact(outbox_.store(), [&](auto& tx) { return tx.purge(some); });
        purged_ += gone;
        if (gone > 0) {
            events_.on({.what = event_kind::purged,
                        .at = outbox_.now(),
                        .queue = queue_.queue,
                        .worker = all_.name,
                        .count = gone,
                        .took = std::chrono::duration_cast<duration>(steady::now() - start)});
        }
        return gone > 0; // fewer than the limit may only mean that the store looks at so many entries per call
    }

    const outbox<Store>& outbox_;
    const event_reporter& events_;
    const worker_options& all_;
    const queue_options& queue_;
    store_retry retry_;
    interruptible_wait wait_{};
    std::size_t purged_ = 0;
};

} // namespace detail
} // namespace v0
} // namespace vouch
