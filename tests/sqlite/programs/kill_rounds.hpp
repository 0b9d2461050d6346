// SPDX-License-Identifier: MIT
// The rounds of a kill test. In each round one process works and is killed while another works beside it. At the end a
// last runner drains the queue.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <vouch/sqlite.hpp>
#include <vouch/vouch.hpp>

#include "sqlite/programs/database.hpp"
#include "sqlite/programs/kill_findings.hpp"
#include "sqlite/programs/kill_hooks.hpp"
#include "sqlite/programs/kill_points.hpp"
#include "sqlite/programs/kill_process.hpp"
#include "sqlite/programs/kill_roles.hpp"
#include "sqlite/programs/kill_scene.hpp"

namespace kill_test {

class rounds {
  public:
    rounds(variant as, std::uint64_t seed) : scene_(as), random_(seed) {
        expect_finished(process({}, [this] {
            const database app(scene_.database(), vfs_name);
            app.execute("PRAGMA journal_mode = WAL");
            app.execute("CREATE TABLE orders (number INTEGER PRIMARY KEY)");
            app.execute("CREATE TABLE ledger (stored INTEGER, purged INTEGER)");
            app.execute("INSERT INTO ledger VALUES (0, 0)");
            vouch::sqlite::migrate(app.handle());
        }));
        expect_finished(process({}, [p = next_part()] { produce(p); }));
    }

    void play(std::uint64_t count) {
        for (std::uint64_t left = count; left > 0; --left) {
            // Each point once in every `all_points.size()` rounds, in any order.
            if (points_.empty()) {
                points_.assign(all_points.begin(), all_points.end());
                std::shuffle(points_.begin(), points_.end(), random_);
            }
            round_ += 1;
            play_one(points_.back());
            points_.pop_back();
        }
    }

    /// Ends the test: drains what is left and inspects the result.
    [[nodiscard]] findings finish() {
        round_ += 1;
        expect_finished(process({}, [p = next_part()] { run(p); }));
        return inspect(scene_);
    }

    [[nodiscard]] std::uint64_t played() const noexcept { return round_; }
    [[nodiscard]] std::size_t kills(point at) const noexcept { return kills_[static_cast<std::size_t>(at)]; }
    [[nodiscard]] std::size_t kills() const noexcept {
        std::size_t sum = 0;
        for (const auto k : kills_) {
            sum += k;
        }
        return sum;
    }
    /// The number of children that failed, or were killed against the plan.
    [[nodiscard]] std::size_t failures() const noexcept { return failures_; }

  private:
    enum class role : std::uint8_t { producer, runner, purger };

    void play_one(point at) {
        switch (at) {
        case point::in_migration: return play_migration();
        case point::in_enqueue:
        case point::after_enqueue:
        case point::after_commit: return play_with(at, role::producer);
        case point::before_handler:
        case point::in_handler:
        case point::before_settle_commit: return play_with(at, role::runner);
        case point::in_purge: return play_with(at, role::purger);
        case point::in_commit:
        case point::any_moment: break;
        }
        constexpr std::array any{role::producer, role::producer, role::runner, role::purger};
        play_with(at, any[below(any.size())]);
    }

    /// Kills one process while another works beside it. A runner gets work first. In half of its rounds a slow runner
    /// has claimed that work before; its lease has expired, and it settles too late.
    void play_with(point at, role victims) {
        const bool kills_runner = victims == role::runner;
        if (kills_runner) {
            expect_finished(process({}, [p = next_part()] { produce(p); }));
        }
        if (kills_runner && below(2) == 0) {
            rendezvous before_settle;
            process slow({}, [&before_settle, p = next_part(5 * lease)] {
                const std::shared_ptr<void> at_last(nullptr, [&](void*) { before_settle.arrive(); });
                run(p, [&] { before_settle.arrive_and_wait(); });
            });
            before_settle.wait_for_child();
            count(at, kill(at, victims));
            before_settle.release();
            expect_finished(std::move(slow));
        } else {
            // Two runners take work from each other and then miss some points, so this is rare.
            const auto other = kills_runner && below(4) != 0 ? role::purger : role::runner;
            process beside({}, [other, p = next_part()] { work(other, p); });
            count(at, kill(at, victims));
            expect_finished(std::move(beside));
        }
    }

    [[nodiscard]] ending kill(point at, role victims) {
        const bool by_parent = at == point::any_moment;
        process victim(plan_for(at), [victims, by_parent, p = next_part()] {
            for (auto again = p; again.repeat < (by_parent ? repeats_max : 1); ++again.repeat, ++again.seed) {
                work(victims, again);
            }
        });
        if (by_parent) { // the parent may wake late, so the victim has work for much longer
            std::this_thread::sleep_for(std::chrono::microseconds{static_cast<std::int64_t>(below(8'000))});
            victim.kill();
        }
        return victim.wait();
    }

    static void work(role as, const part& p) {
        switch (as) {
        case role::producer: return produce(p);
        case role::runner: return run(p);
        case role::purger: return purge(p);
        }
    }

    /// On a separate file: after the kill all tables exist or none, and the next process can use the file.
    void play_migration() {
        const auto path = scene_.fresh_database();
        count(point::in_migration, process(plan_for(point::in_migration), [&] { create_tables(path); }).wait());
        expect_finished(process({}, [&] {
            {
                const database app(path);
                const auto tables =
                    app.integer("SELECT count(*) FROM sqlite_master WHERE sql LIKE 'CREATE%' AND name LIKE 'vouch_%'");
                const auto text = vouch::sqlite::schema();
                std::int64_t expected = 0;
                for (auto at = text.find("CREATE "); at != std::string::npos; at = text.find("CREATE ", at + 1)) {
                    expected += 1;
                }
                if (tables != 0 && tables != expected) {
                    throw std::runtime_error("a killed migration left some of the tables: " + std::to_string(tables) +
                                             " of " + std::to_string(expected));
                }
            }
            vouch::sqlite::store store(path);
            const vouch::outbox outbox(store);
            vouch::router router(outbox);
            router.on("#", [] {});
            outbox.emit({.queue = "q", .topic = "t"});
            vouch::runner runner(outbox, router, {.queue = "q"});
            if (runner.run_until_idle().succeeded != 1 || database(path).text("PRAGMA integrity_check") != "ok") {
                throw std::runtime_error("the store does not work after a killed migration");
            }
        }));
    }

    [[nodiscard]] part next_part(vouch::duration slow_by = {}) {
        return {.scene = scene_, .round = round_, .seed = random_(), .now = scene::time_of(round_) - slow_by};
    }

    /// A random pass of the point, within the number of passes that the role's work makes.
    [[nodiscard]] kill_plan plan_for(point at) {
        switch (at) {
        case point::in_enqueue: return {at, below(8)};
        case point::after_enqueue: return {at, below(4)};
        case point::in_commit: return {at, below(100)};
        case point::after_commit: return {at, below(2)};
        case point::before_handler: return {at, below(5) / 4};
        case point::in_handler: return {at, below(5)};
        case point::before_settle_commit: return {at, below(5) / 4};
        case point::in_purge: return {at, below(12)};
        case point::in_migration: return {at, below(75)};
        case point::any_moment: break;
        }
        return {};
    }

    void count(point at, ending end) noexcept {
        kills_[static_cast<std::size_t>(at)] += end == ending::killed ? 1U : 0U;
        failures_ += end == ending::failed ? 1U : 0U;
    }

    void expect_finished(process&& p) noexcept { failures_ += p.wait() == ending::finished ? 0U : 1U; }

    [[nodiscard]] std::uint64_t below(std::uint64_t limit) { return random_() % limit; }

    scene scene_;
    std::mt19937_64 random_;
    std::vector<point> points_{};
    std::uint64_t round_ = 0;
    std::array<std::size_t, all_points.size()> kills_{};
    std::size_t failures_ = 0;
};

} // namespace kill_test
