// SPDX-License-Identifier: MIT
// The claims a worker has in hand for one queue: those no thread has started, those being handled, and those handled
// and not yet settled. One thread (the clerk) puts claims in and takes outcomes out; the others handle.
//
// Thread-safe. A claim is in exactly one of the three places, or it has left the hand.
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
#include <vouch/run/handling.hpp>
#include <vouch/run/stop_caller.hpp>

namespace vouch {
inline namespace v0 {
namespace detail {

using steady = std::chrono::steady_clock;

/// A claim that waits for a thread.
template <class Store>
struct held_claim {
    vouch::entry entry{};
    std::stop_source stop{};                    ///< fires when the claim is lost or the worker stops
    steady::time_point renew_at{};              ///< when its lease wants to be extended
    std::optional<handled<Store>> unrecorded{}; ///< it was handled, but its `record` failed; `entry` is empty then

    [[nodiscard]] vouch::ticket ticket() const noexcept { return ticket_of(unrecorded ? unrecorded->entry : entry); }
};

/// What is in hand.
struct hand_size {
    std::size_t unstarted = 0;
    std::size_t running = 0;
    std::size_t finished = 0;
    steady::time_point finished_since{};                     ///< when the first of these was finished
    steady::time_point started_last{};                       ///< when a handler was last started
    steady::time_point renew_at = steady::time_point::max(); ///< the earliest of all claims
    steady::duration handling{};                             ///< what a handler took, lately
    bool measured = false;                                   ///< whether any was
    [[nodiscard]] std::size_t unfinished() const noexcept { return unstarted + running; }
};

template <class Store>
class hand {
  public:
    using batch = std::vector<handled<Store>>;

    // The clerk's side.

    void put(std::vector<entry> claimed, steady::time_point renew_at) {
        {
            const std::lock_guard lock(mutex_);
            for (auto& e : claimed) {
                unstarted_.push_back({.entry = std::move(e), .renew_at = renew_at});
            }
        }
        started_.notify_all();
    }

    /// An outcome whose `record` has failed: a thread decides what follows. Before any claim that waits.
    void put_back(handled<Store> unrecorded, steady::time_point renew_at) {
        {
            const std::lock_guard lock(mutex_);
            unstarted_.push_front({.renew_at = renew_at, .unrecorded = std::move(unrecorded)});
        }
        started_.notify_all();
    }

    /// Claims no thread has started go back untouched, with the outcomes, so that another worker can take them.
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

    [[nodiscard]] hand_size size() const {
        const std::lock_guard lock(mutex_);
        hand_size out{.unstarted = unstarted_.size(),
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

    /// The tickets whose leases want to be extended by now.
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

    /// They have been extended; the next time is `again`.
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

    /// Another worker has the claim by now: it is not started if it was not, else its handler is asked to stop.
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

    /// From now on no handler is started: what was not goes back untouched, with the outcomes. Running ones are asked
    /// to stop.
    void close() {
        {
            const std::lock_guard lock(mutex_);
            closed_ = true;
            for (auto& c : unstarted_) {
                add_finished(c.unrecorded ? std::move(*c.unrecorded)
                                          : handled<Store>{.entry = std::move(c.entry), .outcome = release{}});
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

    /// Gives up what is still running: its outcomes will be dropped, and its leases heal it. Says which.
    [[nodiscard]] std::vector<ticket> abandon() {
        const std::lock_guard lock(mutex_);
        abandoned_ = true;
        std::vector<ticket> out;
        for (const auto& r : running_) {
            out.push_back(r.ticket);
        }
        return out;
    }

    // A handling thread's side.

    /// Waits for a claim to handle; nothing once the hand is closed. `idle` is called first if there is none.
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

    /// The outcome of a claim that was taken; none if it could not be handled at all. Says whether the clerk should
    /// look: it is the first outcome, or completes a batch, or the last one to be waited for.
    bool finish(const ticket& done, std::optional<handled<Store>> with, steady::duration took, std::size_t batch_size) {
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

    void add_finished(handled<Store> h) {
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
