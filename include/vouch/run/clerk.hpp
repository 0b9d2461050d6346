// SPDX-License-Identifier: MIT
// One queue's clerk: the thread of a worker that goes to the store. It claims as much as the handling threads can take,
// settles what they have finished (together, and with the next claim, in one commit), extends leases, and rests until
// something is due.
//
// Wake-ups are hints: they end a rest early, and nothing relies on them.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <vouch/contract/entry.hpp>
#include <vouch/contract/store.hpp>
#include <vouch/contract/transact.hpp>
#include <vouch/contract/verdict.hpp>
#include <vouch/observe/observer.hpp>
#include <vouch/outbox/outbox.hpp>
#include <vouch/run/exclusion.hpp>
#include <vouch/run/hand.hpp>
#include <vouch/run/isolation.hpp>
#include <vouch/run/nap.hpp>
#include <vouch/run/runner.hpp>
#include <vouch/run/store_trouble.hpp>
#include <vouch/run/worker_options.hpp>

namespace vouch {
inline namespace v0 {
namespace detail {

template <class Store>
class clerk {
  public:
    /// All but the store's capabilities is kept by reference.
    clerk(Store& store, const outbox& from, runner<Store>& through, const observer_list& observers,
          const worker_options& all, const queue_options& mine, exclusion& among)
        : store_(store), outbox_(from), runner_(through), observers_(observers), all_(all), mine_(mine),
          exclusion_(among), member_(among.join([this] { interrupt(); })),
          batch_max_(store.capabilities().limits.batch_max),
          trouble_(all.store_backoff, from, observers, mine.queue, all.name, all.exception_text) {}

    [[nodiscard]] detail::hand<Store>& hand() noexcept { return hand_; }

    /// Wakes the loop: a handler has finished, a thread is idle, or a stop was requested.
    void interrupt() noexcept { nap_.interrupt(); }

    /// Claims and settles until a stop is requested. Throws what no repeat can cure. Either way `wind_up` is to follow.
    void work(const std::stop_token& stop) {
        while (!stop.stop_requested()) {
            listen();
            const auto now = steady::now();
            if (trouble_.is_over(now)) {
                trouble_.attempt([&] { pass(now); });
            }
            rest(stop);
        }
    }

    /// The end: nothing new is started, running handlers finish or, when `deadline` has passed, are left behind.
    void wind_up(std::optional<steady::time_point> deadline) {
        hand_.close();
        for (int tries = all_.stop_tries;;) {
            const bool is_last = hand_.size().running == 0; // nothing more will be finished
            if (trouble_.is_over(steady::now())) {
                const auto failures_before = hook_failures_;
                const bool fine = try_to_settle(is_last) && hook_failures_ <= failures_before;
                tries = !is_last ? all_.stop_tries : fine ? tries : tries - 1;
            }
            const auto left = hand_.size();
            const bool unsettled = left.finished > 0 || !batch_.empty() || !kept_.empty();
            if (left.running == 0 && (!unsettled || tries == 0)) {
                break; // all is done; or the store fails for good, and leases heal what is left
            }
            if (deadline && steady::now() >= *deadline) {
                break;
            }
            if (left.finished == 0 || !batch_.empty() || !trouble_.is_over(steady::now())) {
                nap_.rest(until_settling(left, deadline));
            }
        }
        give_up(hand_.collect());
        exclusion_.leave(member_, steady::now());
    }

    /// A claim was given up; its lease heals it.
    void tell_unsettled(const id& which, std::string_view error) const {
        observers_.on({.what = event_kind::unsettled,
                       .at = outbox_.now(),
                       .queue = mine_.queue,
                       .worker = all_.name,
                       .error = error,
                       .id = which});
    }

    /// The final report. Call it after the worker has stopped.
    [[nodiscard]] worker_report done() const noexcept {
        auto out = done_;
        out.store_errors = trouble_.total();
        return out;
    }

  private:
    static constexpr std::chrono::milliseconds shortest_rest{1};

    // Working.

    /// Before anything is looked at, so that no wake-up falls between the look and the rest.
    void listen() {
        if constexpr (waking_store<Store>) {
            listens_ = false;
            if (trouble_.is_over(steady::now())) {
                trouble_.listen([&] {
                    seen_ = store_.wakes(mine_.queue);
                    listens_ = true;
                });
            }
        }
    }

    void pass(steady::time_point now) {
        keep_leases(now);
        const bool hands_back = is_stuck(hand_.size(), now);
        if (hands_back) {
            hand_.hand_back_unstarted();
        }
        const auto in_hand = hand_.size();
        const bool held_claims = holds_claims();
        plan_claims(in_hand, now);
        due_in_.reset();
        const bool claims = plan_.limit > 0 && something_is_due(now);
        if (batch_.empty() && in_hand.finished > 0 && (claims || hands_back || is_ripe(in_hand, now))) {
            batch_ = hand_.collect();
        }
        add_kept(now);
        if (batch_.empty() && claims) {
            took_up(runner_.claim_by(plan_), now);
        } else if (!batch_.empty()) {
            auto [settled, claimed] = runner_.settle_and_try_claim(batch_, claims ? plan_ : claim_plan{});
            done_ += settled;
            sort_out(now, true);
            if (claimed) {
                took_up(std::move(*claimed), now);
            } else {
                tell_polled(0, now);
            }
        }
        if (!holds_claims()) {
            if (access_.access == exclusion::access::alone) {
                exclusion_.leave(member_, now);
                interrupt();
            } else if (access_.access == exclusion::access::closed && held_claims) {
                interrupt(); // to say so
            }
        }
    }

    /// Whether claims wait for threads that have all been busy for longer than the look-ahead.
    [[nodiscard]] bool is_stuck(const hand_size& in_hand, steady::time_point now) const noexcept {
        return in_hand.unstarted > 0 && is_slow(in_hand, now);
    }
    [[nodiscard]] bool is_slow(const hand_size& in_hand, steady::time_point now) const noexcept {
        return in_hand.running >= mine_.concurrency && now - in_hand.started_last >= all_.look_ahead;
    }

    /// Outcomes that a hook holds up do not count: they may wait for days, and no handler of theirs runs.
    [[nodiscard]] bool holds_claims() const {
        const auto in_hand = hand_.size();
        return in_hand.unfinished() + in_hand.finished + batch_.size() > 0;
    }

    /// How much to claim now, as far as the other queues allow.
    void plan_claims(const hand_size& in_hand, steady::time_point now) {
        using access = exclusion::access;
        access_ = exclusion_.ask(member_, holds_claims(), now);
        plan_ = {};
        if (access_.access == access::alone) {
            plan_.limit = holds_claims() ? 0 : 1;
        } else if (access_.access == access::open && kept_.size() < mine_.batch_size) {
            plan_ = {.limit = room_for_claims(in_hand, now), .rule = claim_plan::lapsed::handed_back};
            if (access_.until) {
                // Not for long, because another process may be able to handle them alone.
                const auto wait = std::min<steady::duration>(*access_.until - now, std::chrono::seconds{1});
                plan_.until = later(outbox_.now(), std::chrono::ceil<duration>(wait));
            }
        }
    }

    /// What is left of a settled batch: outcomes that a hook holds up, and those whose `record` has failed, which are a
    /// handling thread's business if there still are any.
    void sort_out(steady::time_point now, bool has_threads) {
        const bool was_held_up = !kept_.empty();
        for (auto& h : batch_) {
            if (h.record_failure && has_threads) {
                hand_.put_back(std::move(h), mine_.extend_leases ? now : steady::time_point::max());
            } else if (!h.landing) {
                kept_.push_back(std::move(h));
            }
        }
        batch_.clear();
        std::stable_partition(kept_.begin(), kept_.end(), [](const auto& h) { return h.is_untried; });
        if (kept_.empty()) {
            hook_failures_ = 0;
        } else if (now >= kept_until_ || !was_held_up) {
            hook_failures_ += 1;
            kept_until_ = now + *delay_after(backoff(all_.store_backoff), kept_.front().entry.id, hook_failures_);
            kept_renew_at_ = was_held_up ? kept_renew_at_ : now;
        }
    }

    /// Outcomes that were held up go behind the others, so that a hook which fails for some does not hold up all.
    void add_kept(steady::time_point now) {
        if (!kept_.empty() && now >= kept_until_) {
            const auto count = std::min(kept_.size(), batch_max_ - std::min(batch_max_, batch_.size()));
            const auto end = kept_.begin() + static_cast<std::ptrdiff_t>(count);
            std::move(kept_.begin(), end, std::back_inserter(batch_));
            kept_.erase(kept_.begin(), end);
        }
    }

    /// How many more the threads can take: those that are idle, and what a thread gets through within the look-ahead.
    /// Claims are worth a commit only when they are several, or a thread waits for one.
    [[nodiscard]] std::size_t room_for_claims(const hand_size& in_hand, steady::time_point now) const noexcept {
        auto ahead = std::size_t{0};
        if (in_hand.measured && !is_slow(in_hand, now)) {
            const auto each = std::max<steady::duration>(in_hand.handling, std::chrono::microseconds{1});
            const auto fit = static_cast<std::uint64_t>(std::max<steady::duration>(all_.look_ahead, {}) / each);
            ahead = static_cast<std::size_t>(std::min<std::uint64_t>(fit * mine_.concurrency, mine_.batch_size));
        }
        const auto wanted = std::min(mine_.concurrency + ahead, batch_max_);
        const auto room = wanted - std::min(wanted, in_hand.unfinished());
        return in_hand.unstarted == 0 || room >= ahead / 2 ? room : 0;
    }

    [[nodiscard]] bool something_is_due(steady::time_point now) {
        if (was_full_) {
            return true;
        }
        const auto next = store_.next_due(mine_.queue);
        if (!next) {
            return false;
        }
        const auto present = outbox_.now();
        due_in_ = *next <= present ? duration::zero() : *next - present;
        if (*due_in_ > duration::zero()) {
            return false;
        }
        if (next != due_gate_) { // not what the last claim did not get
            due_gate_ = next;
            empty_rest_ = duration::zero();
            empty_until_ = now;
        }
        return now >= empty_until_;
    }

    [[nodiscard]] bool is_ripe(const hand_size& in_hand, steady::time_point now) const {
        return in_hand.finished >= mine_.batch_size || in_hand.unfinished() == 0 ||
               now - in_hand.finished_since >= all_.settle_within;
    }

    void took_up(claims got, steady::time_point before) {
        auto& claimed = got.entries;
        tell_polled(claimed.size(), before);
        const bool was_alone = access_.access == exclusion::access::alone;
        was_full_ = claimed.size() == plan_.limit && !was_alone;
        due_in_ = duration::zero(); // until the next look
        if (got.hands_back) {
            exclusion_.want(member_, before);
            was_full_ = false;
        } else if (claimed.empty()) {
            // What is due is passed over for now: another worker has just claimed it, or has it open.
            empty_rest_ = std::clamp<duration>(empty_rest_ * 2, shortest_rest, all_.poll_interval);
            empty_until_ = steady::now() + empty_rest_;
            return;
        }
        empty_rest_ = duration::zero();
        done_.claimed += claimed.size();
        const bool is_lapsed = !claimed.empty() && has_lapsed(claimed.front());
        hand_.put(std::move(claimed), mine_.extend_leases ? before + mine_.lease / 3 : steady::time_point::max());
        if (was_alone) {
            is_lapsed ? exclusion_.want(member_, before) : exclusion_.leave(member_, before);
        }
    }

    void keep_leases(steady::time_point now) {
        if (!kept_.empty() && now >= kept_renew_at_) {
            runner_.extend(kept_);
            done_ += runner_.report_landings(kept_); // those that another worker has taken over
            std::erase_if(kept_, [](const auto& h) { return h.landing.has_value(); });
            kept_renew_at_ = now + mine_.lease / 3;
        }
        const auto tickets = hand_.to_renew(now);
        for (std::size_t at = 0; at < tickets.size(); at += batch_max_) {
            const auto some = std::span(tickets).subspan(at, std::min(batch_max_, tickets.size() - at));
            const auto verdicts =
                transact(store_, [&](auto& tx) { return tx.extend(some, outbox_.now(), mine_.lease); });
            for (std::size_t i = 0; i < some.size(); ++i) {
                if (verdicts[i] != verdict::applied) {
                    lose(some[i]);
                }
            }
        }
        hand_.renewed(now, now + mine_.lease / 3); // not if that threw: then it is tried again before the lease is over
    }

    void lose(const ticket& lost) {
        using loss = typename detail::hand<Store>::loss;
        const auto what = hand_.lose(lost);
        if (what != loss::of_none) {
            done_.lost += 1;
            observers_.on({.what = event_kind::lease_lost,
                           .at = outbox_.now(),
                           .queue = mine_.queue,
                           .worker = all_.name,
                           .tag = what == loss::of_unstarted ? "unstarted" : "",
                           .id = lost.id});
        }
    }

    // Resting.

    void rest(const std::stop_token& stop) {
        if (stop.stop_requested()) {
            return;
        }
        const auto now = steady::now();
        const auto in_hand = hand_.size();
        auto until = now + all_.poll_interval;
        bool wants_work = false;
        if (!trouble_.is_over(now)) {
            until = std::min(until, trouble_.until());
        } else {
            until = std::min(until, in_hand.renew_at);
            if (in_hand.finished > 0) {
                until = std::min(until, in_hand.unfinished() == 0 ? now : in_hand.finished_since + all_.settle_within);
            }
            if (in_hand.unstarted > 0 && in_hand.running >= mine_.concurrency) {
                until = std::min(until, in_hand.started_last + all_.look_ahead);
            }
            if (!kept_.empty()) {
                until = std::min({until, kept_until_, kept_renew_at_});
            }
            if (access_.access == exclusion::access::closed && access_.until) {
                until = std::min(until, *access_.until);
            }
            wants_work = wants_claims(in_hand, now);
            if (wants_work) {
                until = std::min(until, next_claim(now));
            }
        }
        if (until <= now) {
            return;
        }
        if constexpr (waking_store<Store>) {
            if (wants_work && listens_) {
                trouble_.listen([&] { nap_.rest(store_, mine_.queue, seen_, until - now); });
                return;
            }
        }
        nap_.rest(until - now);
    }

    [[nodiscard]] bool wants_claims(const hand_size& in_hand, steady::time_point now) const noexcept {
        if (access_.access == exclusion::access::open) {
            return kept_.size() < mine_.batch_size && room_for_claims(in_hand, now) > 0;
        }
        return plan_.limit > 0;
    }

    [[nodiscard]] steady::time_point next_claim(steady::time_point now) const {
        if (was_full_) {
            return now;
        }
        if (!due_in_) {
            return steady::time_point::max();
        }
        // The longest waits would lead past the last time there is.
        return std::max(now + std::min(*due_in_, all_.poll_interval), empty_until_);
    }

    // The end.

    /// Whatever goes wrong here has been reported, and is not worse than what is being wound up. While handlers run,
    /// this thread extends their leases and calls no handler's `ended`.
    [[nodiscard]] bool try_to_settle(bool is_last) {
        try {
            return trouble_.attempt([&] {
                const auto now = steady::now();
                keep_leases(now);
                if (batch_.empty()) {
                    batch_ = hand_.collect();
                }
                add_kept(now);
                if (!batch_.empty()) {
                    done_ += is_last ? runner_.settle(batch_) : runner_.settle_and_try_claim(batch_, {}).first;
                    sort_out(now, false);
                }
            });
        } catch (...) {
            return false;
        }
    }

    [[nodiscard]] steady::duration until_settling(const hand_size& in_hand,
                                                  std::optional<steady::time_point> deadline) const {
        const auto now = steady::now();
        auto until = std::min(now + all_.poll_interval, deadline.value_or(steady::time_point::max()));
        if (!trouble_.is_over(now)) {
            until = std::min(until, trouble_.until());
        } else {
            until = std::min(until, in_hand.renew_at);
            until = kept_.empty() ? until : std::min({until, kept_until_, kept_renew_at_});
        }
        return std::max(until - now, steady::duration::zero());
    }

    /// What has landed is reported as such; all else is left to its lease.
    void give_up(typename runner<Store>::batch finished) {
        for (const auto& left : hand_.abandon()) {
            done_.abandoned += 1;
            tell_unsettled(left.id, "still_running");
        }
        done_ += runner_.report_on(batch_);
        for (auto* const some : {&batch_, &kept_, &finished}) {
            for (const auto& left : *some) {
                if (!left.landing) {
                    done_.unsettled += 1;
                    tell_unsettled(left.entry.id, left.held_up.empty() ? "store_failed" : left.held_up);
                }
            }
            some->clear();
        }
    }

    void tell_polled(std::size_t claimed, steady::time_point since) const {
        observers_.on({.what = event_kind::polled,
                       .at = outbox_.now(),
                       .queue = mine_.queue,
                       .worker = all_.name,
                       .count = claimed,
                       .took = std::chrono::duration_cast<duration>(steady::now() - since)});
    }

    Store& store_;
    const outbox& outbox_;
    runner<Store>& runner_;
    const observer_list& observers_;
    const worker_options& all_;
    const queue_options& mine_;
    exclusion& exclusion_;
    exclusion::member member_;
    std::size_t batch_max_;

    detail::hand<Store> hand_{};
    nap nap_{};
    store_trouble trouble_;
    typename runner<Store>::batch batch_{}; ///< being settled; given again, whole, while the store fails
    typename runner<Store>::batch kept_{};  ///< held up by a hook that fails
    std::uint32_t hook_failures_ = 0;       ///< in a row
    steady::time_point kept_until_{};       ///< when they are settled again
    steady::time_point kept_renew_at_{};    ///< when their leases want to be extended
    worker_report done_{};

    exclusion::answer access_{}; ///< as of the last pass
    claim_plan plan_{};          ///< of the last pass
    std::uint64_t seen_ = 0;
    bool listens_ = false;
    bool was_full_ = true;                 ///< the last claim got all it asked for; there may be more
    std::optional<duration> due_in_{};     ///< as the last look said
    std::optional<time_point> due_gate_{}; ///< the gate that was due then
    duration empty_rest_{};                ///< doubles with each claim that got nothing though the same gate was due
    steady::time_point empty_until_{};
};

} // namespace detail
} // namespace v0
} // namespace vouch
