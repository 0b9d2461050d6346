// SPDX-License-Identifier: MIT
// The claims that a worker holds for one queue: unstarted ones, those a handler is running for, and finished ones that
// are not settled yet. The claim loop adds claims and collects completions; the handler loops take claims and finish
// them.
//
// Thread-safe. A claim is in exactly one of the three places, or it is no longer here.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <iterator>
#include <mutex>
#include <optional>
#include <stop_token>
#include <utility>
#include <vector>

#include <vouch/contract/entry.hpp>
#include <vouch/contract/outcome.hpp>
#include <vouch/contract/ticket.hpp>
#include <vouch/contract/time.hpp>
#include <vouch/run/detail/completion.hpp>
#include <vouch/run/detail/stop_caller.hpp>

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

    [[nodiscard]] vouch::ticket ticket() const noexcept { return ticket_of(unrecorded ? unrecorded->entry : entry); }
};

struct in_flight_size {
    std::size_t unstarted = 0;
    std::size_t unrecorded = 0; ///< finished, but their `record` failed; they wait for a thread
    std::size_t running = 0;
    std::size_t finished = 0;
    steady::time_point finished_since{};                     ///< when the first of these finished
    steady::time_point started_last{};                       ///< when the last handler started
    steady::time_point renew_at = steady::time_point::max(); ///< the earliest of all claims
    steady::duration handling{};                             ///< how long a handler takes, averaged
    bool measured = false;                                   ///< whether any handler has finished
    [[nodiscard]] std::size_t unfinished() const noexcept { return unstarted + unrecorded + running; }
};

template <class Store>
class in_flight {
  public:
    using batch = std::vector<completion<Store>>;

    // For the claim loop.

    void put(std::vector<entry> claimed, steady::time_point renew_at) {
        {
            const std::lock_guard lock(mutex_);
            for (auto& e : claimed) {
                unstarted_.push_back({.entry = std::move(e), .renew_at = renew_at});
            }
        }
        started_.notify_all();
    }

    /// Returns a completion whose `record` failed, so that a handler thread converts it before it starts another claim.
    void put_back(completion<Store> unrecorded, steady::time_point renew_at) {
        {
            const std::lock_guard lock(mutex_);
            unstarted_.push_front({.renew_at = renew_at, .unrecorded = std::move(unrecorded)});
        }
        started_.notify_all();
    }

    /// Turns unstarted claims into releases, so that another worker can claim them.
    void hand_back_unstarted() {
        const std::lock_guard lock(mutex_);
        for (auto& c : unstarted_) {
            if (!c.unrecorded) {
                add_finished({.entry = std::move(c.entry), .outcome = release{}});
            }
        }
        std::erase_if(unstarted_, [](const auto& c) { return !c.unrecorded; });
    }

    [[nodiscard]] batch collect() {
        const std::lock_guard lock(mutex_);
        return std::exchange(finished_, {});
    }

    [[nodiscard]] in_flight_size size() const {
        const std::lock_guard lock(mutex_);
        const auto unrecorded = static_cast<std::size_t>(std::count_if(
            unstarted_.begin(), unstarted_.end(), [](const auto& c) { return c.unrecorded.has_value(); }));
        in_flight_size out{.unstarted = unstarted_.size() - unrecorded,
                           .unrecorded = unrecorded,
                           .running = running_.size(),
                           .finished = finished_.size(),
                           .finished_since = finished_since_,
                           .started_last = started_last_,
                           .handling = handling_,
                           .measured = measured_};
        for (const auto& c : unstarted_) {
            out.renew_at = std::min(out.renew_at, c.renew_at);
        }
        for (const auto& r : running_) {
            out.renew_at = std::min(out.renew_at, r.renew_at);
        }
        return out;
    }

    /// The tickets whose leases have to be extended now.
    [[nodiscard]] std::vector<ticket> to_renew(steady::time_point now) const {
        std::vector<ticket> out;
        const std::lock_guard lock(mutex_);
        for (const auto& c : unstarted_) {
            if (c.renew_at <= now) {
                out.push_back(c.ticket());
            }
        }
        for (const auto& r : running_) {
            if (r.renew_at <= now) {
                out.push_back(r.ticket);
            }
        }
        return out;
    }

    /// The leases that were due at `now` have been extended; they are due again at `again`.
    void renewed(steady::time_point now, steady::time_point again) {
        const std::lock_guard lock(mutex_);
        for (auto& c : unstarted_) {
            c.renew_at = c.renew_at <= now ? again : c.renew_at;
        }
        for (auto& r : running_) {
            r.renew_at = r.renew_at <= now ? again : r.renew_at;
        }
    }

    enum class loss : std::uint8_t { of_none, of_unstarted, of_running };

    /// Another worker has taken over the claim: an unstarted one is dropped, a running handler is asked to stop.
    [[nodiscard]] loss lose(const ticket& lost) {
        const std::lock_guard lock(mutex_);
        if (std::erase_if(unstarted_, [&](const auto& c) { return c.ticket() == lost; }) > 0) {
            return loss::of_unstarted;
        }
        const auto found =
            std::find_if(running_.begin(), running_.end(), [&](const auto& r) { return r.ticket == lost; });
        if (found == running_.end()) {
            return loss::of_none;
        }
        found->renew_at = steady::time_point::max();
        stops_.request({found->stop});
        return loss::of_running;
    }

    /// Starts no further handler. Turns unstarted claims into releases, and asks running handlers to stop.
    void close() {
        {
            const std::lock_guard lock(mutex_);
            closed_ = true;
            for (auto& c : unstarted_) {
                add_finished(c.unrecorded ? std::move(*c.unrecorded)
                                          : completion<Store>{.entry = std::move(c.entry), .outcome = release{}});
            }
            unstarted_.clear();
            std::vector<std::stop_source> stops;
            for (const auto& r : running_) {
                stops.push_back(r.stop);
            }
            stops_.request(std::move(stops));
        }
        started_.notify_all();
    }

    /// Gives up the running handlers: their outcomes will be dropped. Returns their tickets.
    [[nodiscard]] std::vector<ticket> abandon() {
        const std::lock_guard lock(mutex_);
        abandoned_ = true;
        std::vector<ticket> out;
        for (const auto& r : running_) {
            out.push_back(r.ticket);
        }
        return out;
    }

    // For the handler loops.

    /// Waits for a claim to handle. Returns nothing after `close`. Calls `idle` before it waits.
    template <class Idle>
    [[nodiscard]] std::optional<held_claim<Store>> take(Idle&& idle) {
        std::unique_lock lock(mutex_);
        if (unstarted_.empty() && !closed_) {
            lock.unlock();
            idle();
            lock.lock();
            started_.wait(lock, [&] { return !unstarted_.empty() || closed_; });
        }
        if (closed_) {
            return std::nullopt;
        }
        auto taken = std::move(unstarted_.front());
        unstarted_.pop_front();
        running_.push_back({.ticket = taken.ticket(), .stop = taken.stop, .renew_at = taken.renew_at});
        started_last_ = steady::now();
        return taken;
    }

    /// Adds the completion of a claim that was taken; nothing if the claim could not be handled. Returns whether the
    /// claim loop should wake up: this is the first completion, the last one, or it fills a batch.
    bool finish(const ticket& done, std::optional<completion<Store>> with, steady::duration took,
                std::size_t batch_size) {
        const std::lock_guard lock(mutex_);
        std::erase_if(running_, [&](const auto& r) { return r.ticket == done; });
        handling_ = measured_ ? (handling_ * 7 + took) / 8 : took;
        measured_ = true;
        if (with && !abandoned_) {
            add_finished(std::move(*with));
        }
        return finished_.size() == 1 || finished_.size() == batch_size || closed_ ||
               (running_.empty() && unstarted_.empty());
    }

  private:
    struct running {
        vouch::ticket ticket{};
        std::stop_source stop{std::nostopstate};
        steady::time_point renew_at{};
    };

    void add_finished(completion<Store> h) {
        if (finished_.empty()) {
            finished_since_ = steady::now();
        }
        finished_.push_back(std::move(h));
    }

    mutable std::mutex mutex_;
    std::condition_variable started_;
    std::deque<held_claim<Store>> unstarted_{};
    std::vector<running> running_{};
    batch finished_{};
    steady::time_point finished_since_{};
    steady::time_point started_last_{};
    steady::duration handling_{};
    bool measured_ = false;
    bool closed_ = false;
    bool abandoned_ = false;
    stop_caller stops_{};
};

} // namespace detail
} // namespace v0
} // namespace vouch
