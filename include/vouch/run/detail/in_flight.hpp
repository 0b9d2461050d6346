// SPDX-License-Identifier: MIT
// The claims that a worker holds for one queue: unstarted ones, those a handler is running for, and finished ones that
// are not settled yet. The claim loop adds claims and collects completions; the handler loops take claims and finish
// them. A claim of a batch route waits until its batch is full or its wait is over; claims of other routes pass it.
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
#include <vouch/run/batch_options.hpp>
#include <vouch/run/detail/batch_plan.hpp>
#include <vouch/run/detail/completion.hpp>
#include <vouch/run/detail/held_claim.hpp>
#include <vouch/run/detail/stop_caller.hpp>

namespace vouch {
inline namespace v0 {
namespace detail {

struct in_flight_size {
    std::size_t unstarted = 0;
    std::size_t waiting = 0;    ///< unstarted ones that wait for others to share their call
    std::size_t unrecorded = 0; ///< finished, but their `record` failed; they wait for a thread
    std::size_t running = 0;
    std::size_t calls = 0; ///< of handlers for the running ones, each on its own thread
    std::size_t finished = 0;
    steady::time_point finished_since{};                     ///< when the first of these finished
    steady::time_point started_last{};                       ///< when the last handler started
    steady::time_point renew_at = steady::time_point::max(); ///< the earliest of all claims
    steady::duration handling{};                             ///< how long a handler takes per entry, averaged
    steady::duration calling{};                              ///< the same per call, which may be for a batch
    bool measured = false;                                   ///< whether any handler has finished
    [[nodiscard]] std::size_t unfinished() const noexcept { return unstarted + unrecorded + running; }
};

template <class Store>
class in_flight {
  public:
    using batch = std::vector<completion<Store>>;

    // For the claim loop.

    /// `batch_of` returns the batch of an entry, or null, as `held_claim::batch`. `wait_of` returns how long it may wait for
    /// others to share its call.
    template <class BatchOf, class WaitOf>
    void put(std::vector<entry> claimed, steady::time_point renew_at, const BatchOf& batch_of, const WaitOf& wait_of) {
        std::vector<held_claim<Store>> added;
        added.reserve(claimed.size());
        bool is_waiting = false;
        for (auto& e : claimed) {
            const batch_options* const shared = batch_of(e);
            const auto wait = shared != nullptr ? wait_of(e, *shared) : duration::zero();
            const bool waits = wait > duration::zero();
            added.push_back({.entry = std::move(e),
                             .renew_at = renew_at,
                             .batch = shared,
                             .start_at = waits ? steady::now() + wait : steady::time_point{}});
            is_waiting = is_waiting || waits;
        }
        {
            const std::lock_guard lock(mutex_);
            std::move(added.begin(), added.end(), std::back_inserter(unstarted_));
            if (is_waiting) {
                end_waits_of_full_batches();
            }
        }
        started_.notify_all();
    }

    /// Claims no longer wait for others to share their call: no further ones will be put for a while.
    void end_waits() {
        {
            const std::lock_guard lock(mutex_);
            for (auto& c : unstarted_) {
                c.start_at = {};
            }
        }
        started_.notify_all();
    }

    /// Returns a completion whose `record` failed, so that a handler thread converts it before it starts another claim.
    void put_back(completion<Store> unrecorded, steady::time_point renew_at) {
        {
            const std::lock_guard lock(mutex_);
            auto& claim = unstarted_.emplace_front();
            claim.renew_at = renew_at;
            claim.unrecorded = std::move(unrecorded);
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
                           .calls = calls_,
                           .finished = finished_.size(),
                           .finished_since = finished_since_,
                           .started_last = started_last_,
                           .handling = handling_,
                           .calling = calling_,
                           .measured = measured_};
        const auto now = steady::now();
        for (const auto& c : unstarted_) {
            out.renew_at = std::min(out.renew_at, c.renew_at);
            out.waiting += c.start_at > now ? 1U : 0U;
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

    /// Another worker has taken over the claim: an unstarted one is dropped, a running handler is asked to stop. A batch
    /// is asked to stop when it has lost all its claims.
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
        found->is_lost = true;
        stops_.request({found->stop});
        const auto is_kept = [&](const running& r) { return r.call == found->call && !r.is_lost; };
        if (found->stop_of_call.stop_possible() && std::none_of(running_.begin(), running_.end(), is_kept)) {
            stops_.request({found->stop_of_call});
        }
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
                if (r.stop_of_call.stop_possible()) {
                    stops.push_back(r.stop_of_call);
                }
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

    /// Waits for a claim to handle, and takes the claims that share its call. Returns nothing after `close`. Calls
    /// `idle` before it waits.
    template <class Idle>
    [[nodiscard]] std::optional<handler_call<Store>> take(Idle&& idle) {
        std::unique_lock lock(mutex_);
        for (bool is_told = false; !closed_;) {
            const auto now = steady::now();
            const auto first =
                std::find_if(unstarted_.begin(), unstarted_.end(), [&](const auto& c) { return c.start_at <= now; });
            if (first != unstarted_.end()) {
                return start(first, now);
            }
            if (!std::exchange(is_told, true)) {
                lock.unlock();
                idle();
                lock.lock();
            } else {
                wait_for_claims(lock);
            }
        }
        return std::nullopt;
    }

    /// Adds the completions of a call that was taken; none if the claims could not be handled. Returns whether the claim
    /// loop should wake up: these are the first completions, the last ones, or they fill a batch.
    bool finish(const handler_call<Store>& call, batch with, steady::duration took, std::size_t batch_size) {
        const std::lock_guard lock(mutex_);
        std::erase_if(running_, [&](const auto& r) { return r.call == call.number; });
        calls_ -= 1;
        const auto each = took / static_cast<steady::rep>(call.tickets.size());
        handling_ = measured_ ? (handling_ * 7 + each) / 8 : each;
        calling_ = measured_ ? (calling_ * 7 + took) / 8 : took;
        measured_ = true;
        const auto before = finished_.size();
        if (!abandoned_) {
            for (auto& h : with) {
                add_finished(std::move(h));
            }
        }
        const bool is_first = before == 0 && !finished_.empty();
        const bool is_full = before < batch_size && finished_.size() >= batch_size;
        return is_first || is_full || closed_ || (running_.empty() && unstarted_.empty());
    }

  private:
    struct running {
        std::uint64_t call = 0;
        vouch::ticket ticket{};
        std::stop_source stop{std::nostopstate};
        std::stop_source stop_of_call{std::nostopstate}; ///< of a batch
        steady::time_point renew_at{};
        bool is_lost = false;
    };

    using place = typename std::deque<held_claim<Store>>::iterator;

    /// Takes the claim at `first`, and those after it that share its call.
    [[nodiscard]] handler_call<Store> start(place first, steady::time_point now) {
        handler_call<Store> out{.number = ++calls_ever_};
        if (const auto* const shared = first->batch) {
            out.stop = std::stop_source{};
            auto kept = first;
            for (auto at = first; at != unstarted_.end(); ++at) {
                if (at->batch == shared && out.claims.size() < shared->size_max) {
                    move_to_running(*at, out);
                } else {
                    *kept++ = std::move(*at);
                }
            }
            unstarted_.erase(kept, unstarted_.end());
        } else {
            move_to_running(*first, out);
            unstarted_.erase(first);
        }
        calls_ += 1;
        started_last_ = now;
        return out;
    }

    void move_to_running(held_claim<Store>& c, handler_call<Store>& call) {
        call.tickets.push_back(c.ticket());
        running_.push_back({.call = call.number,
                            .ticket = call.tickets.back(),
                            .stop = c.stop,
                            .stop_of_call = call.stop,
                            .renew_at = c.renew_at});
        call.claims.push_back(std::move(c));
    }

    void wait_for_claims(std::unique_lock<std::mutex>& lock) {
        auto until = steady::time_point::max();
        for (const auto& c : unstarted_) {
            until = std::min(until, c.start_at);
        }
        if (unstarted_.empty()) {
            started_.wait(lock);
        } else {
            started_.wait_until(lock, until);
        }
    }

    /// Claims that fill a batch no longer wait.
    void end_waits_of_full_batches() {
        const auto plan = plan_calls(unstarted_, [](const held_claim<Store>& c) { return c.batch; });
        for (std::size_t first = 0; first < plan.size(); ++first) {
            const auto* const shared = unstarted_[first].batch;
            if (shared == nullptr || plan[first].size < shared->size_max) {
                continue;
            }
            for (auto i = first; i != no_entry; i = plan[i].next) {
                unstarted_[i].start_at = {};
            }
        }
    }

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
    std::size_t calls_ = 0; ///< of handlers, now
    std::uint64_t calls_ever_ = 0;
    batch finished_{};
    steady::time_point finished_since_{};
    steady::time_point started_last_{};
    steady::duration handling_{};
    steady::duration calling_{};
    bool measured_ = false;
    bool closed_ = false;
    bool abandoned_ = false;
    stop_caller stops_{};
};

} // namespace detail
} // namespace v0
} // namespace vouch
