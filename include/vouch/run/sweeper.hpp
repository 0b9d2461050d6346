// SPDX-License-Identifier: MIT
// Retention as a background pass: removes ended entries a bounded number per commit, and leaves the store alone four
// times as long as each commit took, so that claims and settles get their turns.
//
// One thread's.
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
#include <vouch/run/nap.hpp>
#include <vouch/run/store_trouble.hpp>
#include <vouch/run/worker_options.hpp>

namespace vouch {
inline namespace v0 {
namespace detail {

template <class Store>
class sweeper {
  public:
    using steady = std::chrono::steady_clock;

    sweeper(Store& store, const outbox& from, const observer_list& observers, const worker_options& all,
            const queue_options& of)
        : store_(store), outbox_(from), observers_(observers), all_(all), queue_(of),
          trouble_(all.store_backoff, from, observers, of.queue, all.name, all.exception_text) {}

    [[nodiscard]] static bool has_work(const retention& keeps) noexcept {
        const time_point any{};
        return keeps.succeeded.before(any) || keeps.dead.before(any);
    }

    void interrupt() noexcept { nap_.interrupt(); }

    /// Sweeps until a stop is requested. Throws what no repeat can cure.
    void work(const std::stop_token& stop) {
        while (!stop.stop_requested()) {
            sweep(state::succeeded, queue_.retention.succeeded, stop);
            sweep(state::dead, queue_.retention.dead, stop);
            if (!stop.stop_requested()) {
                nap_.rest(all_.purge_every);
            }
        }
    }

    [[nodiscard]] worker_report done() const noexcept { return {.purged = purged_, .store_errors = trouble_.total()}; }

  private:
    void sweep(state which, const purge_rule& rule, const std::stop_token& stop) {
        // Once: what ends meanwhile is the next sweep's, or a busy queue would never let this one end.
        const auto before = rule.before(outbox_.now());
        for (bool more = before.has_value(); more && !stop.stop_requested();) {
            const auto start = steady::now();
            const bool fine = trouble_.attempt([&] { more = purge_some(which, *before, start); });
            if (!fine) {
                nap_.rest(trouble_.until() - steady::now());
            } else if (more) {
                nap_.rest(std::max<steady::duration>(4 * (steady::now() - start), std::chrono::milliseconds{1}));
            }
        }
    }

    /// Says whether there may be more.
    [[nodiscard]] bool purge_some(state which, time_point before, steady::time_point start) {
        const purge_request some{.queue = queue_.queue, .before = before, .limit = all_.purge_limit, .state = which};
        const auto gone = transact(store_, [&](auto& tx) { return tx.purge(some); });
        purged_ += gone;
        if (gone > 0) {
            observers_.on({.what = event_kind::purged,
                           .at = outbox_.now(),
                           .queue = queue_.queue,
                           .worker = all_.name,
                           .count = gone,
                           .took = std::chrono::duration_cast<duration>(steady::now() - start)});
        }
        return gone > 0; // fewer than the limit may mean that the store has looked at enough for one call
    }

    Store& store_;
    const outbox& outbox_;
    const observer_list& observers_;
    const worker_options& all_;
    const queue_options& queue_;
    store_trouble trouble_;
    nap nap_{};
    std::size_t purged_ = 0;
};

} // namespace detail
} // namespace v0
} // namespace vouch
