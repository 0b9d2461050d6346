// SPDX-License-Identifier: MIT
// A world of several real runners on one store, in one thread and in virtual time. A scheduler draws what happens next:
// one phase of one runner, a crash between two phases, a pause longer than the lease, a clock that jumps, a fault of
// the store, a producer's or an operator's call, time passing. Then the world can heal and has to come to rest.
//
// The same seed gives the same world.
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
namespace conformance {

class simulation {
  public:
    simulation(trial& t, std::uint64_t seed) : ground_(t, seed) {
        auto& random = ground_.random;
        const auto runners = 3 + random.below(3);
        for (std::size_t i = 0; i < runners; ++i) {
            const bool other_queue = i == 1 || (i > 1 && random.chance(30));
            runners_.push_back(std::make_unique<simulated_runner>(
                ground_, [this](delivery& d) { return work_(d); }, std::string(1, static_cast<char>('a' + i)),
                other_queue ? "r" : "q"));
        }
    }
    simulation(const simulation&) = delete;
    simulation& operator=(const simulation&) = delete;
    ~simulation() {
        const auto length = std::chrono::duration_cast<std::chrono::seconds>(ground_.now - start).count();
        ground_.t.tally().simulated_seconds += static_cast<std::uint64_t>(length);
        ground_.t.tally().faults += ground_.plan->faults();
    }

    /// Goes on for so long, with all that can go wrong.
    void storm(duration length) {
        const auto until = ground_.now + length;
        ground_.told([&] {
            for (std::size_t steps = 0; ground_.now < until; ++steps) {
                happen();
                if (steps % 64 == 0) {
                    ground_.watch.compare_all(ground_.truth);
                }
            }
        });
    }

    /// From now on nothing fails and all clocks agree; runners begin anew.
    void heal() {
        ground_.plan->disarm();
        ground_.is_calm = true;
        ground_.note("everything heals");
        for (auto& r : runners_) {
            r->set_skew({});
            r->restart();
        }
        ground_.told([&] { deliver(); });
    }

    /// Passes of every runner until nothing is left to wait for, time jumping along.
    void drain() {
        ground_.told([&] {
            const auto most = 200 + 100 * ground_.watch.live();
            for (std::size_t n = 0;; ++n) {
                trial::expect(n < most, "the world is at rest after " + std::to_string(most) + " passes");
                if (!pass_of_all() && !wait_for_due()) {
                    break;
                }
            }
            ground_.watch.compare_all(ground_.truth);
            for (const std::string queue : {"q", "r"}) {
                trial::equal(ground_.truth.counts(queue).live(), 0U, "entries of " + queue + " that nobody can claim");
            }
            trial::equal(ground_.watch.live(), 0U, "entries that have not ended");
        });
    }

    /// So many passes of every runner, with nothing going wrong but what is planned.
    void passes(std::size_t count) {
        ground_.told([&] {
            for (std::size_t n = 0; n < count; ++n) {
                if (!pass_of_all()) {
                    ground_.now += ground_.lease;
                }
            }
        });
    }

    void produce(std::size_t count) {
        for (std::size_t n = 0; n < count; ++n) {
            undelivered_.push_back(work_.next_draft());
        }
        ground_.told([&] { deliver(); });
    }

    /// Nothing goes wrong by chance.
    void calm() noexcept { ground_.is_calm = true; }
    void keep_trace() noexcept { ground_.story.keeps_all = true; }
    [[nodiscard]] const std::vector<std::string>& trace() const noexcept { return ground_.story.all; }
    [[nodiscard]] fault_plan& plan() noexcept { return *ground_.plan; }

  private:
    void happen() {
        auto& random = ground_.random;
        auto& r = *runners_[random.below(runners_.size())];
        const auto what = random.below(1000);
        constexpr std::size_t enough = 60; // live entries, so that runners can follow
        if (what < 80) {
            if (ground_.watch.live() < enough) {
                produce(1 + random.below(3));
            }
        } else if (what < 140) {
            operate();
        } else if (what < 260) {
            pass_time();
        } else if (what < 260 + ground_.crashes_permille) {
            r.note("crashes with " + std::to_string(r.in_hand()) + " in hand");
            r.restart();
        } else if (what < 310) {
            r.paused_until = ground_.now + ground_.lease + ground_.seconds(600);
            r.note("sleeps until " + show_date(r.paused_until) + " with " + std::to_string(r.in_hand()) + " in hand");
        } else if (what < 320) {
            const auto skew = ground_.skew();
            r.set_skew(skew);
            r.note("has a clock that is off by " + std::to_string(skew / std::chrono::seconds{1}) + " s");
        } else if (what < 340) {
            r.extend();
        } else if (r.paused_until <= ground_.now) {
            r.phase();
        }
    }

    /// To the next thing that is due, or just on.
    void pass_time() {
        auto& random = ground_.random;
        const auto due = ground_.truth.next_due(random.chance(50) ? "q" : "r");
        if (due && *due > ground_.now && *due < ground_.now + std::chrono::hours{3} && random.chance(60)) {
            ground_.now = *due;
        } else {
            ground_.now += ground_.seconds(random.chance(20) ? 3600 : 300);
        }
    }

    /// Enqueues what waits for it; if that fails, the same goes again later.
    void deliver() {
        if (!undelivered_.empty()) {
            ground_.attempt("the producer", [&] {
                enqueue(office_, undelivered_, ground_.now);
                undelivered_.clear();
            });
        }
    }

    void operate() {
        auto& random = ground_.random;
        const auto now = ground_.now + ground_.skew();
        const auto target = ground_.some_id();
        const auto* const dead = ground_.pick([](const entry& e) { return e.state == state::dead; });
        const auto what = random.below(10);
        const purge_request old{.queue = random.chance(50) ? "q" : "r",
                                .before = ground_.now - ground_.seconds(40'000),
                                .limit = 1 + random.below(60)};
        ground_.attempt("the operator", [&] {
            transact(office_, [&](auto& tx) {
                if (what < 4) {
                    std::ignore = tx.nudge(target, now);
                } else if (what < 6) {
                    std::ignore = tx.cancel(target, "cancelled", now);
                } else if (what < 8) {
                    std::ignore = vouch::requeue(tx, {.dead = dead == nullptr ? target : dead->entry.id,
                                                      .successor = ground_.fresh_id(),
                                                      .now = now});
                } else {
                    tx.purge(old);
                }
            });
        });
    }

    /// Says whether anybody found something to do.
    bool pass_of_all() {
        bool any = false;
        for (auto& r : runners_) {
            constexpr std::size_t patience = 20;       // with a store that keeps failing
            constexpr std::size_t phases_max = 10'000; // of one pass
            for (std::size_t n = 0; n == 0 || !r->is_idle(); ++n) {
                trial::expect(n < phases_max, "a runner comes to the end of what is due");
                r->phase();
                any = any || !r->is_idle();
                if (n > patience && ground_.plan->has_struck()) {
                    r->restart();
                }
            }
        }
        return any;
    }

    /// Says whether there is anything to wait for.
    bool wait_for_due() {
        std::optional<time_point> next;
        for (const std::string queue : {"q", "r"}) {
            if (const auto due = ground_.truth.next_due(queue); due && (!next || *due < *next)) {
                next = due;
            }
        }
        if (next) {
            trial::expect(*next > ground_.now, "what is due since " + show_date(*next) + " can be claimed");
            ground_.now = *next;
        }
        return next.has_value();
    }

    simulation_ground ground_;
    simulation_work work_{ground_};
    simulated_store office_ = ground_.open();
    std::vector<std::unique_ptr<simulated_runner>> runners_{};
    std::vector<draft> undelivered_{};
};

} // namespace conformance
} // namespace v0
} // namespace vouch
