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
#include <vouch/run/hand.hpp>
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
    clerk(Store& store, const outbox& from, runner<Store>& through, const observer_list& observers,
          const worker_options& all, const queue_options& mine)
        : store_(store), outbox_(from), runner_(through), observers_(observers), all_(all), mine_(mine),
          batch_max_(store.capabilities().limits.batch_max),
          trouble_(all.store_backoff, from, observers, mine.queue, all.name, all.exception_text) {}

    [[nodiscard]] detail::hand<Store>& hand() noexcept { return hand_; }

    /// Somebody finished, is out of work, or wants to stop.
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
            if (tries > 0 && trouble_.is_over(steady::now())) {
                tries = try_to_settle() ? all_.stop_tries : tries - 1;
            }
            const auto left = hand_.size();
            const bool unsettled = left.finished > 0 || !batch_.empty();
            if (left.running == 0 && (!unsettled || tries == 0)) {
                break; // all is done; or the store fails for good, and leases heal what is left
            }
            if (deadline && steady::now() >= *deadline) {
                break;
            }
            if (left.finished == 0 || !batch_.empty()) {
                nap_.rest(until_settling(left, tries, deadline));
            }
        }
        auto finished = hand_.collect();
        for (const auto& left : hand_.abandon()) {
            done_.abandoned += 1;
            tell_unsettled(left.id, "still_running");
        }
        for (auto* const some : {&batch_, &finished}) {
            for (const auto& left : *some) {
                done_.unsettled += 1;
                tell_unsettled(left.entry.id, "store_failed");
            }
        }
        batch_.clear();
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

    /// What it came to; for when nobody works any more.
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
        const auto in_hand = hand_.size();
        const auto room = room_for_claims(in_hand);
        due_in_.reset();
        const bool claims = room > 0 && something_is_due(now);
        if (batch_.empty() && in_hand.finished > 0 && (claims || is_ripe(in_hand, now))) {
            batch_ = hand_.collect();
        }
        if (batch_.empty() && !claims) {
            return;
        }
        if (batch_.empty()) {
            took_up(runner_.claim(room), room, now);
            return;
        }
        auto [settled, claimed] = runner_.settle_and_try_claim(batch_, claims ? room : 0);
        batch_.clear();
        done_ += settled;
        if (claimed) {
            took_up(std::move(*claimed), room, now);
        } else {
            tell_polled(0, now);
        }
    }

    /// How many more the threads can take: those that are idle, and what a thread gets through within the look-ahead.
    /// Claims are worth a commit only when they are several, or somebody waits for one.
    [[nodiscard]] std::size_t room_for_claims(const hand_size& in_hand) const noexcept {
        auto ahead = std::size_t{0};
        if (in_hand.measured) {
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
        return *due_in_ == duration::zero() && now >= empty_until_;
    }

    [[nodiscard]] bool is_ripe(const hand_size& in_hand, steady::time_point now) const {
        return in_hand.finished >= mine_.batch_size || in_hand.unfinished() == 0 ||
               now - in_hand.finished_since >= all_.settle_within;
    }

    void took_up(std::vector<entry> claimed, std::size_t asked, steady::time_point before) {
        tell_polled(claimed.size(), before);
        was_full_ = claimed.size() == asked;
        due_in_ = duration::zero(); // until the next look
        if (claimed.empty()) {
            // What is due is passed over for now, because somebody has it open.
            empty_rest_ = std::clamp<duration>(empty_rest_ * 2, shortest_rest, all_.poll_interval);
            empty_until_ = steady::now() + empty_rest_;
            return;
        }
        empty_rest_ = duration::zero();
        done_.claimed += claimed.size();
        hand_.put(std::move(claimed), mine_.extend_leases ? before + mine_.lease / 3 : steady::time_point::max());
    }

    void keep_leases(steady::time_point now) {
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
            wants_work = room_for_claims(in_hand) > 0;
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

    /// Whatever goes wrong here has been reported, and is not worse than what is being wound up.
    [[nodiscard]] bool try_to_settle() {
        try {
            return trouble_.attempt([&] {
                keep_leases(steady::now());
                if (batch_.empty()) {
                    batch_ = hand_.collect();
                }
                if (!batch_.empty()) {
                    done_ += runner_.settle(batch_);
                    batch_.clear();
                }
            });
        } catch (...) {
            return false;
        }
    }

    [[nodiscard]] steady::duration until_settling(const hand_size& in_hand, int tries,
                                                  std::optional<steady::time_point> deadline) const {
        const auto now = steady::now();
        auto until = std::min(now + all_.poll_interval, deadline.value_or(steady::time_point::max()));
        if (tries > 0) {
            until = trouble_.is_over(now) ? std::min(until, in_hand.renew_at) : std::min(until, trouble_.until());
        }
        return std::max(until - now, steady::duration::zero());
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
    std::size_t batch_max_;

    detail::hand<Store> hand_{};
    nap nap_{};
    store_trouble trouble_;
    typename runner<Store>::batch batch_{}; ///< being settled; given again, whole, while the store fails
    worker_report done_{};

    std::uint64_t seen_ = 0;
    bool listens_ = false;
    bool was_full_ = true;             ///< the last claim got all it asked for; there may be more
    std::optional<duration> due_in_{}; ///< as the last look said
    duration empty_rest_{};            ///< doubles with each claim that got nothing though something was due
    steady::time_point empty_until_{};
};

} // namespace detail
} // namespace v0
} // namespace vouch
