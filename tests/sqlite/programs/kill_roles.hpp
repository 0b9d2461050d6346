// SPDX-License-Identifier: MIT
// The roles of the processes in a kill test: produce orders, run their entries, purge a ledger, create tables. They are
// the same whether the process is killed or not.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <vouch/sqlite.hpp>
#include <vouch/vouch.hpp>

#include "sqlite/programs/database.hpp"
#include "sqlite/programs/kill_hooks.hpp"
#include "sqlite/programs/kill_points.hpp"
#include "sqlite/programs/kill_scene.hpp"

namespace kill_test {

using sqlite_test::database;

inline constexpr std::uint64_t repeats_max = 1000;

/// One process's part in one round.
struct part {
    const kill_test::scene& scene;
    std::uint64_t round = 0;
    std::uint64_t repeat = 0; ///< counts the repetitions of one process
    std::uint64_t seed = 0;
    vouch::time_point now{};
};

namespace detail {

class role_context {
  public:
    explicit role_context(const part& p)
        : clock(p.now), random(p.seed), stamps{.clock = clock, .ids = vouch::uuid7_source(clock, p.seed)} {}

    [[nodiscard]] std::uint64_t below(std::uint64_t limit) { return random() % limit; }

    vouch::manual_clock clock;
    std::mt19937_64 random;
    vouch::emitter_options stamps; ///< times and ids
};

inline const vouch::sqlite::options through_hooks{.vfs = vfs_name};

[[nodiscard]] inline database open_application(const part& p) {
    database app(p.scene.database(), vfs_name);
    app.execute("PRAGMA synchronous = FULL");
    app.execute("PRAGMA wal_autocheckpoint = 16"); // often, so that some processes die in a checkpoint
    return app;
}

[[nodiscard]] inline std::string insert_order(std::uint64_t number) {
    return "INSERT INTO orders VALUES (" + std::to_string(number) + ')';
}

/// Places orders with their entries in one transaction: the application's, joined, or the store's on the application's
/// connection.
class producer {
  public:
    explicit producer(const part& p) : part_(p), context_(p), app_(open_application(p)), joined_(app_.handle()) {}

    void place_some(std::uint64_t& last_number) {
        std::vector<std::uint64_t> numbers(1 + context_.below(3));
        for (auto& n : numbers) {
            n = ++last_number;
        }
        const bool two_commits = part_.scene.as() == variant::two_commits;
        const bool changes_its_mind = !two_commits && context_.below(6) == 0;
        if (changes_its_mind) {
            write_log(logged::rolled_back, numbers);
        }
        if (two_commits) {
            place_in_two_commits(numbers);
        } else if (context_.below(2) == 0) {
            place_by_store(numbers, changes_its_mind);
        } else {
            place_joined(numbers, changes_its_mind);
        }
        if (!changes_its_mind) {
            reach(point::after_commit);
            write_log(logged::ordered, numbers);
        }
    }

  private:
    void write_log(logged what, std::span<const std::uint64_t> numbers) const {
        for (const auto n : numbers) {
            part_.scene.write_log(what, std::to_string(n));
        }
    }

    void place_joined(std::span<const std::uint64_t> numbers, bool changes_its_mind) {
        app_.execute("BEGIN IMMEDIATE");
        write(joined_, numbers);
        app_.execute(changes_its_mind ? "ROLLBACK" : "COMMIT");
    }

    void place_by_store(std::span<const std::uint64_t> numbers, bool changes_its_mind) {
        vouch::sqlite::store store(app_.handle());
        auto tx = store.begin();
        write(tx, numbers);
        if (!changes_its_mind) {
            tx.commit();
        }
    }

    void place_in_two_commits(std::span<const std::uint64_t> numbers) {
        for (const auto n : numbers) {
            app_.execute(insert_order(n));
        }
        app_.execute("BEGIN IMMEDIATE");
        for (const auto n : numbers) {
            emit(joined_, n);
        }
        app_.execute("COMMIT");
    }

    template <class Writer>
    void write(Writer& to, std::span<const std::uint64_t> numbers) {
        const bool entries_first = context_.below(2) == 0;
        for (const auto n : numbers) {
            if (entries_first) {
                emit(to, n);
            }
            app_.execute(insert_order(n));
            if (!entries_first) {
                emit(to, n);
            }
        }
    }

    template <class Writer>
    void emit(Writer& to, std::uint64_t number) {
        const std::vector drafts{vouch::draft{.id = context_.stamps.ids(),
                                              .queue = "orders",
                                              .topic = "order.placed",
                                              .payload = std::to_string(number)}};
        to.enqueue(drafts, context_.clock());
        reach(point::after_enqueue);
    }

    const part& part_;
    role_context context_;
    database app_;
    vouch::sqlite::joined joined_; // destroyed before its connection
};

} // namespace detail

inline void produce(const part& p) {
    detail::producer producer(p);
    auto last_number = (p.round * repeats_max + p.repeat) * 10;
    for (int left = 3; left > 0; --left) {
        producer.place_some(last_number);
    }
}

namespace detail {

/// The store without the fence: a settle goes by id and ends any claim.
class unfenced_store : public vouch::sqlite::store {
  public:
    class transaction : public vouch::sqlite::transaction {
      public:
        explicit transaction(vouch::sqlite::transaction&& fenced) : vouch::sqlite::transaction(std::move(fenced)) {}

        [[nodiscard]] std::vector<vouch::settlement> settle(std::span<const vouch::settle> settles,
                                                            vouch::time_point now) {
            std::vector<vouch::settle> forged(settles.begin(), settles.end());
            for (auto& s : forged) {
                s.ticket.epoch = find(s.ticket.id)->epoch;
            }
            return vouch::sqlite::transaction::settle(forged, now);
        }
    };

    using vouch::sqlite::store::store;
    [[nodiscard]] transaction begin() { return transaction(vouch::sqlite::store::begin()); }
};

template <class Store>
void run(const part& p, const std::function<void()>& pause) {
    role_context context(p);
    Store store(p.scene.database(), through_hooks);
    const vouch::outbox outbox(store, context.stamps);
    vouch::router router(outbox);
    router.on("order.placed", [&](vouch::delivery& d) {
        reach(point::in_handler);
        p.scene.write_log(logged::executed, d.id(), d.entry().epoch);
        reach(point::in_handler);
        return std::to_string(d.entry().epoch); // the claim that settles it
    });
    vouch::runner runner(outbox, router,
                         {.queue = "orders",
                          .worker = "round " + std::to_string(p.round),
                          .batch_size = batch_size,
                          .lease = lease,
                          .retry = {.attempts_max = 1'000'000}});

    auto entries = runner.claim();
    while (!entries.empty()) {
        reach(point::before_handler);
        auto batch = runner.handle_all(std::move(entries));
        entries.clear();
        if (pause) {
            pause();
        }
        is_settling = true;
        if (!pause && context.below(2) == 0) {
            entries = runner.settle_and_claim(batch).second;
        } else {
            runner.settle(batch);
        }
        is_settling = false;
        for (const auto& h : batch) {
            const bool landed = h.result->what == vouch::detail::settle_result::kind::applied;
            p.scene.write_log(landed ? logged::settled : logged::refused, h.entry.id, h.entry.epoch);
        }
        context.clock.pass(std::chrono::milliseconds{1}); // much less than a lease
        if (!pause && entries.empty()) {
            entries = runner.claim();
        }
    }
}

} // namespace detail

/// Runs until nothing is due. With a `pause`: one batch only, and calls it between the handlers and the settle.
inline void run(const part& p, const std::function<void()>& pause = {}) {
    if (p.scene.as() == variant::no_fence) {
        detail::run<detail::unfenced_store>(p, pause);
    } else {
        detail::run<vouch::sqlite::store>(p, pause);
    }
}

/// Stores and purges ended entries, and counts them in the same transactions.
inline void purge(const part& p) {
    detail::role_context context(p);
    const auto app = detail::open_application(p);
    vouch::sqlite::joined joined(app.handle());
    const auto account = [&](const std::string& column, std::size_t count) {
        app.execute("UPDATE ledger SET " + column + " = " + column + " + " + std::to_string(count));
        app.execute("COMMIT");
    };
    std::vector<vouch::draft> drafts;
    for (std::size_t i = 0; i < 3 * batch_size; ++i) {
        drafts.push_back({.id = context.stamps.ids(), .queue = "ledger", .topic = "line", .result = "done"});
    }
    app.execute("BEGIN IMMEDIATE");
    joined.enqueue(drafts, p.now);
    account("stored", drafts.size());
    for (int left = 2; left > 0; --left) {
        app.execute("BEGIN IMMEDIATE");
        account("purged",
                joined.purge({.queue = "ledger", .before = p.now + std::chrono::seconds{1}, .limit = batch_size}));
    }
}

inline void create_tables(const std::string& path) {
    is_migrating = true;
    const vouch::sqlite::store store(path, detail::through_hooks);
    is_migrating = false;
}

} // namespace kill_test
