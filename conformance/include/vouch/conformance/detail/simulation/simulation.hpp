// SPDX-License-Identifier: MIT
// A simulation of several real runners on one store, in one thread and in virtual time. Each step is a random event: one
// phase of one runner, a crash between two phases, a pause longer than the lease, a clock that jumps, a fault of the
// store, a call of a producer or an operator, or time that passes. When the faults stop, all work must end.
//
// The same seed gives the same simulation.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include <vouch/conformance/detail/show.hpp>
#include <vouch/conformance/detail/simulation/context.hpp>
#include <vouch/conformance/detail/simulation/simulated_runner.hpp>
#include <vouch/conformance/detail/simulation/workload.hpp>
#include <vouch/conformance/detail/trial.hpp>
#include <vouch/contract/requeue.hpp>
#include <vouch/contract/transact.hpp>
#include <vouch/run/delivery.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

class simulation {
  public:
    simulation(trial& t, std::uint64_t seed) : context_(t, seed) {
        auto& random = context_.random;
        const auto runners = 3 + random.below(3);
        for (std::size_t i = 0; i < runners; ++i) {
            const bool other_queue = i == 1 || (i > 1 && random.chance(30));
            runners_.push_back(std::make_unique<simulated_runner>(
                context_, [this](delivery& d) { return workload_(d); }, std::string(1, static_cast<char>('a' + i)),
                other_queue ? "r" : "q"));
        }
    }
    simulation(const simulation&) = delete;
    simulation& operator=(const simulation&) = delete;
    ~simulation() {
        const auto length = std::chrono::duration_cast<std::chrono::seconds>(context_.now - start).count();
        context_.t.tally().simulated_seconds += static_cast<std::uint64_t>(length);
        context_.t.tally().faults += context_.plan->faults();
    }

    /// Runs random events for this long.
    void run_with_faults(duration length) {
        const auto until = context_.now + length;
        context_.with_trace([&] {
            for (std::size_t steps = 0; context_.now < until; ++steps) {
                random_event();
                if (steps % 64 == 0) {
                    context_.monitor.compare_all(context_.plain);
                }
            }
        });
    }

    /// Stops all faults, corrects all clocks and restarts the runners.
    void heal() {
        context_.plan->disarm();
        context_.is_calm = true;
        context_.note("faults stop, runners restart");
        for (auto& r : runners_) {
            r->set_skew({});
            r->restart();
        }
        context_.with_trace([&] { enqueue_pending(); });
    }

    /// Runs passes of every runner, and lets time jump to the next due entry, until no live entry is left.
    void drain() {
        context_.with_trace([&] {
            const auto most = 200 + 100 * context_.monitor.live();
            for (std::size_t n = 0;; ++n) {
                trial::expect(n < most, "all work ends within " + std::to_string(most) + " passes");
                if (!pass_of_all() && !wait_for_due()) {
                    break;
                }
            }
            context_.monitor.compare_all(context_.plain);
            for (const std::string queue : {"q", "r"}) {
                trial::equal(context_.plain.counts(queue).live(), 0U,
                             "live entries of " + queue + " that no runner can claim");
            }
            trial::equal(context_.monitor.live(), 0U, "live entries");
        });
    }

    /// Runs `count` passes of every runner without random events.
    void passes(std::size_t count) {
        context_.with_trace([&] {
            for (std::size_t n = 0; n < count; ++n) {
                if (!pass_of_all()) {
                    context_.now += context_.lease;
                }
            }
        });
    }

    void produce(std::size_t count) {
        for (std::size_t n = 0; n < count; ++n) {
            pending_drafts_.push_back(workload_.next_draft());
        }
        context_.with_trace([&] { enqueue_pending(); });
    }

    /// No random faults from now on.
    void calm() noexcept { context_.is_calm = true; }
    void keep_trace() noexcept { context_.trace.keeps_all = true; }
    [[nodiscard]] const std::vector<std::string>& trace() const noexcept { return context_.trace.all; }
    [[nodiscard]] fault_plan& plan() noexcept { return *context_.plan; }

  private:
    void random_event() {
        auto& random = context_.random;
        auto& r = *runners_[random.below(runners_.size())];
        const auto what = random.below(1000);
        constexpr std::size_t enough = 60; // live entries, so that the runners keep up
        if (what < 80) {
            if (context_.monitor.live() < enough) {
                produce(1 + random.below(3));
            }
        } else if (what < 140) {
            call_as_operator();
        } else if (what < 260) {
            advance_time();
        } else if (what < 260 + context_.crashes_permille) {
            r.note("crashes with " + std::to_string(r.in_flight()) + " in flight");
            r.restart();
        } else if (what < 310) {
            r.paused_until = context_.now + context_.lease + context_.seconds(600);
            r.note("sleeps until " + show_date(r.paused_until) + " with " + std::to_string(r.in_flight()) +
                   " in flight");
        } else if (what < 320) {
            const auto skew = context_.skew();
            r.set_skew(skew);
            r.note("has a clock that is wrong by " + std::to_string(skew / std::chrono::seconds{1}) + " s");
        } else if (what < 340) {
            r.extend();
        } else if (r.paused_until <= context_.now) {
            r.phase();
        }
    }

    /// Lets time jump to the next due entry, or by a random duration.
    void advance_time() {
        auto& random = context_.random;
        const auto due = context_.plain.next_due(random.chance(50) ? "q" : "r");
        if (due && *due > context_.now && *due < context_.now + std::chrono::hours{3} && random.chance(60)) {
            context_.now = *due;
        } else {
            context_.now += context_.seconds(random.chance(20) ? 3600 : 300);
        }
    }

    /// Enqueues the pending drafts. If that fails, the same drafts are enqueued again later.
    void enqueue_pending() {
        if (!pending_drafts_.empty()) {
            context_.attempt("the producer", [&] {
                enqueue(store_, pending_drafts_, context_.now);
                pending_drafts_.clear();
            });
        }
    }

    void call_as_operator() {
        auto& random = context_.random;
        const auto now = context_.now + context_.skew();
        const auto target = context_.some_id();
        const auto* const dead = context_.pick([](const entry& e) { return e.state == state::dead; });
        const auto what = random.below(10);
        const purge_request old{.queue = random.chance(50) ? "q" : "r",
                                .before = context_.now - context_.seconds(40'000),
                                .limit = 1 + random.below(60)};
        context_.attempt("the operator", [&] {
            transact(store_, [&](auto& tx) {
                if (what < 4) {
                    std::ignore = tx.nudge(target, now);
                } else if (what < 6) {
                    std::ignore = tx.cancel(target, "cancelled", now);
                } else if (what < 8) {
                    std::ignore = requeue(tx, {.dead = dead == nullptr ? target : dead->entry.id,
                                               .successor = context_.fresh_id(),
                                               .now = now});
                } else {
                    tx.purge(old);
                }
            });
        });
    }

    /// Returns whether any runner had work.
    bool pass_of_all() {
        bool any = false;
        for (auto& r : runners_) {
            constexpr std::size_t patience = 20;       // phases with a store that keeps failing
            constexpr std::size_t phases_max = 10'000; // of one pass
            for (std::size_t n = 0; n == 0 || !r->is_idle(); ++n) {
                trial::expect(n < phases_max, "a runner finishes the work that is due");
                r->phase();
                any = any || !r->is_idle();
                if (n > patience && context_.plan->has_fired()) {
                    r->restart();
                }
            }
        }
        return any;
    }

    /// Lets time jump to the next due entry. Returns whether there is one.
    bool wait_for_due() {
        std::optional<time_point> next;
        for (const std::string queue : {"q", "r"}) {
            if (const auto due = context_.plain.next_due(queue); due && (!next || *due < *next)) {
                next = due;
            }
        }
        if (next) {
            trial::expect(*next > context_.now, "the entry that is due since " + show_date(*next) + " can be claimed");
            context_.now = *next;
        }
        return next.has_value();
    }

    simulation_context context_;
    workload workload_{context_};
    simulated_store store_ = context_.open();
    std::vector<std::unique_ptr<simulated_runner>> runners_{};
    std::vector<draft> pending_drafts_{};
};

} // namespace conformance::detail
} // namespace v0
} // namespace vouch
