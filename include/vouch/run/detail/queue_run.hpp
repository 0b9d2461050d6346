// SPDX-License-Identifier: MIT
// One queue during one run of a worker: the loop of the thread that uses the store, and the loop of the threads that
// call handlers, side by side. They meet in `in_flight`.
//
//   claim loop     claims as much as the handler threads can take, settles what they have finished (together, and with
//                  the next claim, in one commit), extends leases, and waits until something is due
//   handler loop   takes a claim, or several of a batch route, calls the handler, adds the completions
//
// Wake-ups are hints: they end a wait early, and nothing relies on them.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stop_token>
#include <string_view>
#include <utility>
#include <vector>

#include <vouch/contract/entry.hpp>
#include <vouch/contract/store.hpp>
#include <vouch/contract/transact.hpp>
#include <vouch/contract/verdict.hpp>
#include <vouch/observe/observer.hpp>
#include <vouch/outbox/outbox.hpp>
#include <vouch/run/detail/claim_pacing.hpp>
#include <vouch/run/detail/exclusion.hpp>
#include <vouch/run/detail/gathering.hpp>
#include <vouch/run/detail/held_outcomes.hpp>
#include <vouch/run/detail/in_flight.hpp>
#include <vouch/run/detail/interruptible_wait.hpp>
#include <vouch/run/detail/isolation.hpp>
#include <vouch/run/detail/phases.hpp>
#include <vouch/run/detail/store_retry.hpp>
#include <vouch/run/worker_options.hpp>
#include <vouch/run/worker_report.hpp>

namespace vouch {
inline namespace v0 {
namespace detail {

template <class Store>
class queue_run {
  public:
    /// All arguments must outlive the run.
    queue_run(const outbox<Store>& from, phases<Store>& through, const worker_options& all, const queue_options& mine,
              exclusion& among)
        : outbox_(from), phases_(through), all_(all), mine_(mine), exclusion_(among),
          member_(among.join([this] { interrupt(); })), batch_max_(from.store().capabilities().limits.batch_max),
          retry_(all.store_backoff, from.clock(), through.events(), {mine.queue, all.name, all.exception_text}),
          held_(all.store_backoff, mine.lease), pacing_(all.poll_interval), gathering_(all.gather_within),
          entries_per_call_max_(std::min(through.largest_batch(), mine.batch_size)) {}

    /// Wakes the claim loop: a handler has finished, a thread is idle, or a stop was requested.
    void interrupt() noexcept { wait_.interrupt(); }
    /// Starts no further handler and asks the running ones to stop.
    void close() { in_flight_.close(); }

    // The loops.

    /// Claims and settles until a stop is requested. Throws errors that no repeat can cure. Call `finish` afterwards,
    /// in either case.
    void claim_loop(const std::stop_token& stop) {
        while (!stop.stop_requested()) {
            listen();
            const auto now = steady::now();
            if (retry_.is_due(now)) {
                retry_.attempt([&] { pass(now); });
            }
            wait(stop);
        }
    }

    /// Calls handlers until `close`.
    void handler_loop() {
        while (auto call = in_flight_.take([&] { interrupt(); })) {
            const auto start = steady::now();
            auto done = handle(*call);
            if (in_flight_.finish(*call, std::move(done), steady::now() - start, mine_.batch_size)) {
                interrupt();
            }
        }
    }

    /// Ends the claim loop: starts nothing new, waits until running handlers have finished or `deadline` has passed,
    /// and settles what they return.
    void finish(std::optional<steady::time_point> deadline) {
        in_flight_.close();
        for (int tries = all_.stop_tries;;) {
            const bool is_last = in_flight_.size().running == 0; // nothing more will be finished
            if (retry_.is_due(steady::now())) {
                const auto failures_before = held_.failures();
                const bool fine = try_to_settle(is_last) && held_.failures() <= failures_before;
                tries = !is_last ? all_.stop_tries : fine ? tries : tries - 1;
            }
            const auto left = in_flight_.size();
            const bool is_unsettled = left.finished > 0 || !batch_.empty() || !held_.empty();
            if (left.running == 0 && (!is_unsettled || tries == 0)) {
                break; // all is settled; or the store keeps failing, and the rest is left to its leases
            }
            if (deadline && steady::now() >= *deadline) {
                break;
            }
            if (left.finished == 0 || !batch_.empty() || !retry_.is_due(steady::now())) {
                wait_.wait(until_settling(left, deadline));
            }
        }
        give_up();
        exclusion_.leave(member_, steady::now());
    }

    /// The final report. Call it after `finish`.
    [[nodiscard]] worker_report done() const noexcept {
        auto out = done_;
        out.store_errors = retry_.total();
        return out;
    }

  private:
    using access = exclusion::access;
    using batch = typename phases<Store>::batch;

    /// Calls the handler. Returns nothing if that is impossible.
    [[nodiscard]] batch handle(handler_call<Store>& call) const {
        auto& first = call.claims.front();
        try {
            batch out(1);
            if (first.unrecorded) {
                out[0] = phases_.convert_record_failure(std::move(*first.unrecorded));
            } else if (call.claims.size() == 1) {
                out[0] = phases_.handle(std::move(first.entry), first.stop.get_token());
            } else {
                std::vector<claimed_entry<Store>> some;
                some.reserve(call.claims.size());
                for (auto& c : call.claims) {
                    some.push_back({std::move(c.entry), c.stop.get_token()});
                }
                out = phases_.handle_together(std::move(some), call.stop.get_token());
            }
            return out;
        } catch (...) { // there is no memory even for a failed attempt
            for (const auto& t : call.tickets) {
                report_unsettled(t.id, "full");
            }
            return {};
        }
    }

    // One pass of the claim loop.

    /// Reads the wake-up counter before anything else, so that no wake-up falls between a look and the wait.
    void listen() {
        if constexpr (waking_store<Store>) {
            listens_ = false;
            if (retry_.is_due(steady::now())) {
                retry_.read([&] {
                    seen_ = outbox_.store().wakes(mine_.queue);
                    listens_ = true;
                });
            }
        }
    }

    void pass(steady::time_point now) {
        extend_leases(now);
        const bool hands_back = is_stuck(in_flight_.size(), now);
        if (hands_back) {
            in_flight_.hand_back_unstarted();
            entries_per_call_ = std::max<std::size_t>(entries_per_call_ / 2, 1);
        }
        const auto flying = in_flight_.size();
        const bool held_claims = holds_claims();
        plan_claims(flying, now);
        is_gathering_ = !pacing_.was_full() && listens_ && gathering_.holds(seen_, now);
        const bool settles = hands_back || (flying.finished > 0 && is_ripe(flying, now));
        const bool claims = (settles || !is_gathering_) && is_claim_due(now);
        if (batch_.empty() && flying.finished > 0 && (claims || settles)) {
            batch_ = in_flight_.collect();
        }
        held_.move_due(batch_, batch_max_, now);
        if (!batch_.empty()) {
            settle_and_claim(claims, now);
        } else if (claims) {
            auto got = phases_.claim(plan_);
            gathering_.committed(now, steady::now());
            start(std::move(got), now);
        }
        if (entries_per_call_max_ > 1 && !can_fill_batches(in_flight_.size(), now)) {
            in_flight_.end_waits();
        }
        if (!holds_claims()) {
            leave_exclusion(held_claims, now);
        }
    }

    /// In one commit, if every outcome is settled.
    void settle_and_claim(bool claims, steady::time_point now) {
        auto settled = phases_.settle(batch_, claims ? &plan_ : nullptr, false);
        gathering_.committed(now, steady::now());
        done_ += settled.report;
        sort_out(now, true);
        if (settled.claims) {
            start(std::move(*settled.claims), now);
        } else {
            report_polled(0, now);
        }
    }

    /// Whether claims wait for threads that have all been busy for longer than the look-ahead.
    [[nodiscard]] bool is_stuck(const in_flight_size& flying, steady::time_point now) const noexcept {
        return flying.unstarted > 0 && is_slow(flying, now);
    }
    [[nodiscard]] bool is_slow(const in_flight_size& flying, steady::time_point now) const noexcept {
        return flying.calls >= mine_.concurrency && now - flying.started_last >= all_.look_ahead;
    }
    [[nodiscard]] bool is_ripe(const in_flight_size& flying, steady::time_point now) const {
        return flying.finished >= mine_.batch_size || (flying.unfinished() == 0 && !is_gathering_) ||
               now - flying.finished_since >= all_.settle_within;
    }

    /// Outcomes that a hook holds up do not count: they may wait for days, and their handlers have ended.
    [[nodiscard]] bool holds_claims() const {
        const auto flying = in_flight_.size();
        return flying.unfinished() + flying.finished + batch_.size() > 0;
    }

    /// Plans how much to claim, as far as the worker's other queues allow.
    void plan_claims(const in_flight_size& flying, steady::time_point now) {
        access_ = exclusion_.ask(member_, holds_claims(), now);
        plan_ = {};
        if (access_.access == access::alone) {
            plan_.limit = holds_claims() ? 0 : 1;
        } else if (access_.access == access::open && held_.size() < mine_.batch_size) {
            plan_ = {.limit = room_for_claims(flying, now), .rule = claim_plan::lapsed::handed_back};
            if (access_.until) {
                // A short time only, because another process may be able to handle them alone.
                const auto wait = std::min<steady::duration>(*access_.until - now, std::chrono::seconds{1});
                plan_.until = later(outbox_.now(), std::chrono::ceil<duration>(wait));
            }
        }
    }

    [[nodiscard]] bool is_claim_due(steady::time_point now) {
        pacing_.forget_due();
        return plan_.limit > 0 &&
               pacing_.is_due([&] { return outbox_.store().next_due(mine_.queue); }, outbox_.clock(), now);
    }

    /// How many more claims the threads can take: one call of a handler per idle thread, and what a thread gets through
    /// within the look-ahead. A claim is worth a commit only if a thread waits for it or there is room for several.
    [[nodiscard]] std::size_t room_for_claims(const in_flight_size& flying, steady::time_point now) const noexcept {
        auto ahead = std::size_t{0};
        if (flying.measured && flying.calling <= all_.look_ahead && !is_slow(flying, now)) {
            const auto each = std::max<steady::duration>(flying.handling, std::chrono::microseconds{1});
            const auto fit = static_cast<std::uint64_t>(std::max<steady::duration>(all_.look_ahead, {}) / each);
            ahead = static_cast<std::size_t>(std::min<std::uint64_t>(fit * mine_.concurrency, mine_.batch_size));
        }
        const auto idle = mine_.concurrency - std::min(mine_.concurrency, flying.calls);
        const auto wanted = std::min(flying.running + idle * entries_per_call_ + ahead, batch_max_);
        const auto room = wanted - std::min(wanted, flying.unfinished());
        return flying.unstarted == flying.waiting || room >= ahead / 2 ? room : 0;
    }

    /// Gives the claims of a pass to the handler threads.
    void start(claims got, steady::time_point before) {
        auto& claimed = got.entries;
        report_polled(claimed.size(), before);
        if (claimed.empty() && !got.hands_back) {
            pacing_.missed(steady::now());
            return;
        }
        const bool was_alone = access_.access == access::alone;
        pacing_.claimed(claimed.size() == plan_.limit && !was_alone && !got.hands_back);
        if (got.hands_back) {
            exclusion_.want(member_, before);
        }
        if (claimed.size() == plan_.limit) {
            entries_per_call_ = std::min(entries_per_call_ * 2, entries_per_call_max_);
        }
        done_.claimed += claimed.size();
        const bool is_lapsed = !claimed.empty() && has_lapsed(claimed.front());
        in_flight_.put(
            std::move(claimed), mine_.extend_leases ? before + mine_.lease / 3 : steady::time_point::max(),
            [&](const entry& e) { return phases_.batch_of(e); },
            [&, now = outbox_.now()](const entry& e, const batch_options& b) { return wait_of(e, b, now); });
        if (was_alone) {
            is_lapsed ? exclusion_.want(member_, before) : exclusion_.leave(member_, before);
        }
    }

    /// How long a claim may wait for others to share its call. The wait of a batch counts from the time its entry was due,
    /// so that claims that are handed back, and claimed again, do not wait anew.
    [[nodiscard]] duration wait_of(const entry& e, const batch_options& shared, time_point now) const noexcept {
        const auto longest = mine_.extend_leases ? shared.wait : std::min(shared.wait, mine_.lease / 3);
        if (e.due_at >= now) {
            return longest;
        }
        return e.due_at <= now - longest ? duration::zero() : longest - (now - e.due_at);
    }

    void leave_exclusion(bool held_claims, steady::time_point now) {
        if (access_.access == access::alone) {
            exclusion_.leave(member_, now);
            interrupt();
        } else if (access_.access == access::closed && held_claims) {
            interrupt(); // the next pass tells the other queues that this one holds nothing any more
        }
    }

    /// Distributes what a settle has left: outcomes that a hook holds up wait; a failed `record` is for a handler
    /// thread to convert, if there still is one.
    void sort_out(steady::time_point now, bool has_threads) {
        batch left;
        for (auto& h : batch_) {
            if (h.record_failure && has_threads) {
                in_flight_.put_back(std::move(h), mine_.extend_leases ? now : steady::time_point::max());
            } else if (!h.result) {
                left.push_back(std::move(h));
            }
        }
        batch_.clear();
        held_.keep(std::move(left), now);
    }

    void extend_leases(steady::time_point now) {
        done_ += held_.extend_leases(phases_, now);
        const auto tickets = in_flight_.to_renew(now);
        for (std::size_t at = 0; at < tickets.size(); at += batch_max_) {
            const auto some = std::span(tickets).subspan(at, std::min(batch_max_, tickets.size() - at));
            const auto verdicts =
                transact(outbox_.store(), [&](auto& tx) { return tx.extend(some, outbox_.now(), mine_.lease); });
            for (std::size_t i = 0; i < some.size(); ++i) {
                if (verdicts[i] != verdict::applied) {
                    lose(some[i]);
                }
            }
        }
        // Not reached if that throws: the next pass tries again before the leases end.
        in_flight_.renewed(now, now + mine_.lease / 3);
    }

    void lose(const ticket& lost) {
        using loss = typename in_flight<Store>::loss;
        const auto what = in_flight_.lose(lost);
        if (what != loss::of_none) {
            done_.lost += 1;
            phases_.events().on({.what = event_kind::lease_lost,
                                 .at = outbox_.now(),
                                 .queue = mine_.queue,
                                 .worker = all_.name,
                                 .tag = what == loss::of_unstarted ? "unstarted" : "",
                                 .id = lost.id});
        }
    }

    // Waiting between passes.

    void wait(const std::stop_token& stop) {
        const auto now = steady::now();
        const auto flying = in_flight_.size();
        const bool wants_claims = retry_.is_due(now) && wants_more(flying, now);
        const auto until = next_pass(flying, wants_claims, now);
        if (stop.stop_requested() || until <= now) {
            return;
        }
        if constexpr (waking_store<Store>) {
            if (wants_claims && listens_ && !is_gathering_) {
                retry_.read([&] { wait_.wait(outbox_.store(), mine_.queue, seen_, until - now); });
                return;
            }
        }
        wait_.wait(until - now);
    }

    [[nodiscard]] steady::time_point next_pass(const in_flight_size& flying, bool wants_claims,
                                               steady::time_point now) const {
        const auto latest = now + all_.poll_interval;
        if (!retry_.is_due(now)) {
            return std::min(latest, retry_.next());
        }
        auto until = std::min(latest, flying.renew_at);
        if (flying.finished > 0) {
            until = std::min(
                until, flying.unfinished() == 0 && !is_gathering_ ? now : flying.finished_since + all_.settle_within);
        }
        if (flying.unstarted > 0 && flying.calls >= mine_.concurrency) {
            until = std::min(until, flying.started_last + all_.look_ahead);
        }
        if (!held_.empty()) {
            until = std::min(until, held_.next());
        }
        if (access_.access == access::closed && access_.until) {
            until = std::min(until, *access_.until);
        }
        if (is_gathering_) {
            return std::min(until, gathering_.next());
        }
        return wants_claims ? std::min(until, pacing_.next(now)) : until;
    }

    [[nodiscard]] bool wants_more(const in_flight_size& flying, steady::time_point now) const noexcept {
        if (access_.access == access::open) {
            return held_.size() < mine_.batch_size && room_for_claims(flying, now) > 0;
        }
        return plan_.limit > 0;
    }

    /// Whether claims that wait for others to share their call may still get some before a thread could start them.
    [[nodiscard]] bool can_fill_batches(const in_flight_size& flying, steady::time_point now) const noexcept {
        if (access_.access != access::open || held_.size() >= mine_.batch_size) {
            return false;
        }
        return flying.unstarted > flying.waiting || flying.calls >= mine_.concurrency ||
               room_for_claims(flying, now) > 0;
    }

    // The end.

    /// Errors have been reported by then, and cannot stop the end. While handlers run, this thread extends their leases
    /// and must not call a handler's `ended`.
    [[nodiscard]] bool try_to_settle(bool is_last) {
        try {
            return retry_.attempt([&] {
                const auto now = steady::now();
                extend_leases(now);
                if (batch_.empty()) {
                    batch_ = in_flight_.collect();
                }
                held_.move_due(batch_, batch_max_, now);
                if (!batch_.empty()) {
                    done_ += phases_.settle(batch_, nullptr, is_last).report;
                    sort_out(now, false);
                }
            });
        } catch (...) {
            return false;
        }
    }

    [[nodiscard]] steady::duration until_settling(const in_flight_size& flying,
                                                  std::optional<steady::time_point> deadline) const {
        const auto now = steady::now();
        auto until = std::min(now + all_.poll_interval, deadline.value_or(steady::time_point::max()));
        if (!retry_.is_due(now)) {
            until = std::min(until, retry_.next());
        } else {
            until = std::min(until, flying.renew_at);
            until = held_.empty() ? until : std::min(until, held_.next());
        }
        return std::max(until - now, steady::duration::zero());
    }

    /// Reports results that were not reported yet. All other claims are left to their leases.
    void give_up() {
        for (const auto& left : in_flight_.abandon()) {
            done_.abandoned += 1;
            report_unsettled(left.id, "still_running");
        }
        auto finished = in_flight_.collect(); // after that, nothing more is finished
        done_ += phases_.report_all(batch_);
        auto held = held_.take_all();
        for (auto* const some : {&batch_, &held, &finished}) {
            for (const auto& left : *some) {
                if (!left.result) {
                    done_.unsettled += 1;
                    report_unsettled(left.entry.id, left.held_up.empty() ? "store_failed" : left.held_up);
                }
            }
            some->clear();
        }
    }

    // Events.

    /// The claim was given up. The entry is claimed again when its lease ends.
    void report_unsettled(const id& which, std::string_view error) const {
        phases_.events().on({.what = event_kind::unsettled,
                             .at = outbox_.now(),
                             .queue = mine_.queue,
                             .worker = all_.name,
                             .error = error,
                             .id = which});
    }

    void report_polled(std::size_t claimed, steady::time_point since) const {
        phases_.events().on({.what = event_kind::polled,
                             .at = outbox_.now(),
                             .queue = mine_.queue,
                             .worker = all_.name,
                             .count = claimed,
                             .took = std::chrono::duration_cast<duration>(steady::now() - since)});
    }

    const outbox<Store>& outbox_;
    phases<Store>& phases_;
    const worker_options& all_;
    const queue_options& mine_;
    exclusion& exclusion_;
    exclusion::member member_;
    std::size_t batch_max_;

    in_flight<Store> in_flight_{};
    interruptible_wait wait_{};
    store_retry retry_;
    held_outcomes<Store> held_;
    claim_pacing pacing_;
    gathering gathering_;
    std::size_t entries_per_call_max_;                     ///< of the largest batch; 1 without batch routes
    std::size_t entries_per_call_ = entries_per_call_max_; ///< fewer if threads did not take what was claimed for them
    batch batch_{}; ///< being settled; settled again, whole, while the store fails
    worker_report done_{};

    exclusion::answer access_{}; ///< of the last pass
    claim_plan plan_{};          ///< of the last pass
    std::uint64_t seen_ = 0;     ///< the wake-up counter
    bool listens_ = false;
    bool is_gathering_ = false; ///< the last pass held back what could wait
};

} // namespace detail
} // namespace v0
} // namespace vouch
