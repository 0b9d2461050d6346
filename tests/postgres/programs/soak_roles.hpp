// SPDX-License-Identifier: MIT
// What each process of the soak does until it is asked to stop. Every process may be killed at any moment.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <vouch/postgres.hpp>
#include <vouch/saga.hpp>
#include <vouch/vouch.hpp>
#include <vouch/worker.hpp>

#include "postgres/programs/database.hpp"

namespace soak {

using namespace std::chrono_literals;
using postgres_test::database;
using postgres_test::run;
using postgres_test::server;
using vouch::postgres::store;
using transaction = store::transaction;

constexpr vouch::duration lease = 2s;
constexpr vouch::duration poll_interval = 500ms;
constexpr vouch::duration kept = 2s; ///< how long ended entries are kept
const std::string prefix = "soak.";

/// Called by a process when it can be asked to stop and has its connections.
using when_ready = std::function<void()>;

/// The tables of the test, beside those of the store.
inline void create_tables() {
    const store s(server(), {.prefix = prefix});
    const database db;
    db.execute("CREATE TABLE soak.produced (id text, lane text, number bigint, \"group\" text, is_saga boolean)");
    db.execute("CREATE TABLE soak.ended (at bigserial, what text, id text, queue text, \"group\" text)");
    db.execute("CREATE TABLE soak.samples (at bigserial, wait bigint, claims bigint, trip bigint, blocked bigint, "
               "entries bigint, lanes bigint, groups bigint, bytes bigint)");
    db.execute("CREATE UNLOGGED TABLE soak.waiting (id uuid, epoch bigint, since bigint, PRIMARY KEY (id, epoch))");
    // A minute without autovacuum would be most of a short run.
    db.execute("ALTER SYSTEM SET autovacuum_naptime = '1s'");
    db.execute("SELECT pg_reload_conf()");
}

[[nodiscard]] inline std::string quoted(const std::string& text) { return '\'' + text + '\''; }

/// Writes each end, and each completed group, in the transaction that settles.
inline void note_end(transaction& tx, const vouch::audit_line& line) {
    run(tx.connection(), "INSERT INTO soak.ended (what, id, queue, \"group\") VALUES (" +
                             quoted(std::string(name_of(line.what))) + ',' + quoted(to_string(line.id)) + ',' +
                             quoted(line.queue) + ',' + quoted(line.group) + ')');
}

/// An order that pays at a participant. Some are refused at the last step, and compensated.
[[nodiscard]] inline vouch::saga_definition order_saga() {
    return vouch::define_saga<std::string>("order", {.completed = "order.done",
                                                     .compensated = "order.failed",
                                                     .queue = "mail",
                                                     .retry = {.backoff = vouch::fixed{10ms}, .attempts_max = 1000}})
        .step(
            "reserve", [] { std::this_thread::sleep_for(1ms); }, [] {})
        .command("pay", {.queue = "payment", .topic = "charge", .undo = "refund"})
        .step("ship",
              [](const std::string& order) {
                  if (order == "refused") {
                      throw vouch::reject("refused");
                  }
              })
        .build();
}

/// Succeeds, fails at the first attempt, or is refused, as the payload says.
inline void work_on(vouch::delivery& d) {
    std::this_thread::sleep_for(2ms);
    if (d.payload() == "retry" && d.entry().attempts == 1) {
        throw vouch::failure("first");
    }
    if (d.payload() == "dead") {
        throw vouch::reject("refused");
    }
}

/// Returns 0 if the store has reported no error.
inline int work(std::size_t number, const std::vector<std::string>& queues, const when_ready& ready) {
    const vouch::stop_signals signals;
    store s(server(), {.prefix = prefix});
    const vouch::outbox outbox(s);
    vouch::router routes(outbox);
    const auto saga = order_saga();
    routes.on(saga);
    routes.on("work", work_on);
    routes.on("charge", [] { return "paid"; });
    routes.on("refund", [] {});
    routes.on("order.*", [] {});
    vouch::worker worker(outbox, {.name = "worker-" + std::to_string(number),
                                  .log = vouch::log_level::error, // retries and refusals are part of the test
                                  .poll_interval = poll_interval});
    for (const auto& queue : queues) {
        worker.serve(routes, {.queue = queue,
                              .concurrency = 2,
                              .lease = lease,
                              .retry = {.backoff = vouch::fixed{10ms}, .attempts_max = 1000}});
    }
    worker.audit(note_end);
    ready();
    const auto done = worker.run(signals.token());
    if (done.store_errors + done.unsettled > 0) {
        std::printf("worker %zu: %zu errors of the store, %zu outcomes unsettled\n", number, done.store_errors,
                    done.unsettled);
        return 1;
    }
    return 0;
}

/// What a producer stores in one transaction: a group, entries of a lane, one of each other kind, or a saga.
struct batch {
    std::vector<vouch::emission> work{};
    std::string saga{}; ///< the order; empty: none
};

[[nodiscard]] inline batch next_batch(const vouch::outbox<store>& outbox, std::size_t producer, std::uint64_t n) {
    const auto some = [&](std::size_t count, vouch::emission e) {
        e.queue = "work";
        e.topic = "work";
        return std::vector<vouch::emission>(count, e);
    };
    switch (n % 6) {
    case 0: return {.work = some(4, {.group = "group-" + to_string(outbox.fresh_id())})};
    case 2: return {.saga = n % 5 == 0 ? "refused" : "usual"};
    case 4: return {.work = some(1 + n % 3, {.payload = n % 11 == 0 ? "dead" : ""})};
    default: // few lanes, which are often empty: many enqueues meet the end of the last entry of their lane
        return {.work = some(1 + n % 4 / 3, {.payload = n % 7 == 0   ? "dead"
                                                        : n % 5 == 0 ? "retry"
                                                                     : "",
                                             .lane = std::to_string(producer) + '-' + std::to_string(n / 2 % 2)})};
    }
}

/// Stores the batch and notes what was stored, in one transaction. `connection` returns its connection.
template <class Writer, class Connection>
void produce_batch(Writer& tx, const Connection& connection, const vouch::outbox<store>& outbox, const batch& what) {
    static const auto saga = order_saga();
    auto number = vouch::system_now().time_since_epoch().count();
    const auto note = [&](const vouch::id& which, const vouch::emission& e, bool is_saga) {
        run(connection(), "INSERT INTO soak.produced VALUES (" + quoted(to_string(which)) + ',' + quoted(e.lane) + ',' +
                              std::to_string(number++) + ',' + quoted(e.group) + ',' + (is_saga ? "true" : "false") +
                              ')');
    };
    if (!what.saga.empty()) {
        note(outbox.start(tx, saga, {.queue = "orders"}, what.saga), {}, true);
        return;
    }
    const auto receipts = outbox.emit(tx, what.work);
    for (std::size_t i = 0; i < receipts.size(); ++i) {
        note(receipts[i].id, what.work[i], false);
    }
}

/// The second producer stores in transactions of the application. Both rest while much work is waiting.
inline int produce(std::size_t producer, const when_ready& ready) {
    const vouch::stop_signals signals;
    store s(server(), {.prefix = prefix});
    const vouch::outbox outbox(s);
    const database db;
    vouch::postgres::joined joined(db.connection(), prefix);
    ready();
    for (std::uint64_t n = 0; !signals.token().stop_requested(); ++n) {
        constexpr long long enough = 200;
        const auto what = next_batch(outbox, producer, n);
        if (db.number("SELECT count(*) FROM soak.entries WHERE state < 3") > enough) {
            std::this_thread::sleep_for(20ms);
        } else if (producer == 0) {
            vouch::transact(s, [&](auto& tx) {
                produce_batch(
                    tx, [&] { return tx.connection(); }, outbox, what);
            });
        } else {
            db.execute("BEGIN");
            try {
                produce_batch(
                    joined, [&] { return db.connection(); }, outbox, what);
                db.execute("COMMIT");
            } catch (const vouch::error& e) {
                db.execute("ROLLBACK");
                if (e.kind() != vouch::error_kind::conflict) {
                    throw;
                }
            }
        }
        std::this_thread::sleep_for(5ms);
    }
    return 0;
}

/// Removes what has ended, in small steps.
inline int purge(const when_ready& ready) {
    const vouch::stop_signals signals;
    store s(server(), {.prefix = prefix});
    ready();
    while (!signals.token().stop_requested()) {
        for (const std::string queue : {"work", "orders", "payment", "mail"}) {
            vouch::transact(s, [&](auto& tx) {
                static_cast<void>(tx.purge({.queue = queue, .before = vouch::system_now() - kept, .limit = 200}));
            });
        }
        std::this_thread::sleep_for(100ms);
    }
    return 0;
}

/// Notes since when each entry can be claimed. Its gate does not tell: an entry that was blocked in its lane, or handed back,
/// has the due time from before.
inline void note_waiting(const database& db, const std::string& now) {
    db.execute("DELETE FROM soak.waiting w WHERE NOT EXISTS (SELECT 1 FROM soak.entries e WHERE e.id = w.id AND "
               "e.epoch = w.epoch AND e.gate <= " +
               now + ")");
    db.execute("INSERT INTO soak.waiting SELECT id, epoch, " + now + " FROM soak.entries WHERE gate <= " + now +
               " ON CONFLICT DO NOTHING");
}

/// Samples, many times a second: the longest that an entry has been waiting since it could be claimed, and the most claims of
/// an entry; how long a round trip takes; and how many entries are blocked in a lane whose first entry cannot be claimed.
/// Once a second, also the size of the tables.
inline int watch(const when_ready& ready) {
    const vouch::stop_signals signals;
    const database db;
    ready();
    auto next_size = std::chrono::steady_clock::now();
    while (!signals.token().stop_requested()) {
        const auto before = std::chrono::steady_clock::now();
        db.execute("SELECT 1");
        const auto trip = std::chrono::duration_cast<vouch::duration>(std::chrono::steady_clock::now() - before);
        const auto now = std::to_string(vouch::system_now().time_since_epoch().count());
        const bool has_size = before >= next_size;
        next_size += has_size ? 1s : 0s;
        note_waiting(db, now);
        db.execute(
            "INSERT INTO soak.samples (wait, claims, trip, blocked, entries, lanes, groups, bytes) SELECT "
            "(SELECT coalesce(max(" +
            now + " - since), 0) FROM soak.waiting), (SELECT coalesce(max(epoch), 0) FROM soak.entries), " +
            std::to_string(trip.count()) +
            ", (SELECT count(*) FROM soak.entries e WHERE e.state < 3 AND e.gate IS NULL AND NOT EXISTS (SELECT 1 "
            "FROM soak.entries h WHERE h.queue = e.queue AND h.lane = e.lane AND h.gate IS NOT NULL)), " +
            (has_size ? "(SELECT count(*) FROM soak.entries), (SELECT count(*) FROM soak.lanes), (SELECT count(*) "
                        "FROM soak.groups), pg_total_relation_size('soak.entries') + "
                        "pg_total_relation_size('soak.lanes') + pg_total_relation_size('soak.groups')"
                      : "NULL, NULL, NULL, NULL"));
        std::this_thread::sleep_for(20ms);
    }
    return 0;
}

} // namespace soak
