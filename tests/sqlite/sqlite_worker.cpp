// SPDX-License-Identifier: MIT
// Workers on a SQLite file: many on one file with stops in between, the audit table, and what an operator may ask.
#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include <sqlite3.h>

#include <vouch/sqlite.hpp>
#include <vouch/vouch.hpp>
#include <vouch/worker.hpp>

#include "catch.hpp"
#include "sqlite/folder.hpp"
#include "start_delays.hpp"

namespace sqlite_worker_test {

namespace {

using namespace std::chrono_literals;
using sqlite_store = vouch::sqlite::store;
using vouch::state;

template <class Predicate>
[[nodiscard]] bool worker_gets_there(Predicate&& p) {
    for (int i = 0; i < 20'000 && !p(); ++i) {
        std::this_thread::sleep_for(1ms);
    }
    return p();
}

/// The numbers of a query's rows, as SQLite prints them.
[[nodiscard]] std::vector<std::string> worker_rows(sqlite_store& store, const char* sql) {
    std::vector<std::string> out;
    const auto tx = store.begin();
    const int rc = sqlite3_exec(
        tx.connection(), sql,
        [](void* to, int columns, char** row, char**) {
            std::string line;
            for (int i = 0; i < columns; ++i) {
                line += (i == 0 ? "" : " ") + std::string(row[i] == nullptr ? "NULL" : row[i]);
            }
            static_cast<std::vector<std::string>*>(to)->push_back(line);
            return 0;
        },
        &out, nullptr);
    REQUIRE(rc == SQLITE_OK);
    return out;
}

void worker_statement(sqlite_store& store, const char* sql) {
    auto tx = store.begin();
    REQUIRE(sqlite3_exec(tx.connection(), sql, nullptr, nullptr, nullptr) == SQLITE_OK);
    tx.commit();
}

/// A row written in the commit of the outcome.
struct recorded_effect {
    static std::string work(vouch::delivery& d) { return to_string(d.id()); }
    static void record(vouch::sqlite::transaction& tx, const std::string& id) {
        const auto sql = "INSERT INTO effects VALUES ('" + id + "')";
        if (sqlite3_exec(tx.connection(), sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) {
            throw vouch::failure("no_effect");
        }
    }
};

} // namespace

TEST_CASE(
    "sqlite worker: many on one file, producers beside them and stops in between, and every effect is there once") {
    const sqlite_test::folder in;
    const auto path = in.fresh_path();
    sqlite_store store(path, {.synchronous = vouch::sqlite::synchronous::normal});
    worker_statement(store, "CREATE TABLE effects (id TEXT)");
    const vouch::outbox outbox(store);
    vouch::router routes(outbox);
    routes.on("t", recorded_effect{});

    std::atomic<bool> over = false;
    std::atomic<std::size_t> produced = 0;
    std::atomic<std::size_t> stops = 0;
    std::atomic<std::size_t> wrong = 0;
    std::vector<std::jthread> threads;
    for (int i = 0; i < 2; ++i) {
        threads.emplace_back([&] {
            while (!over) {
                const std::vector<vouch::emission> some(5, {.queue = "q", .topic = "t"});
                produced += outbox.emit(some).size();
                std::this_thread::sleep_for(2ms);
            }
        });
    }
    std::vector<std::jthread> workers;
    for (int i = 0; i < 3; ++i) {
        workers.emplace_back([&, i](const std::stop_token& stop) {
            sqlite_store mine(path, {.synchronous = vouch::sqlite::synchronous::normal});
            const vouch::outbox through(mine);
            vouch::worker worker(through, {.name = std::to_string(i), .poll_interval = 50ms});
            worker.serve(routes,
                         {.queue = "q", .concurrency = 2, .lease = 1h}); // so that no lease ends during the test
            while (!stop.stop_requested()) {
                std::stop_source shift;
                const std::stop_callback link(stop, [&] { shift.request_stop(); });
                const std::jthread bell([&] {
                    std::this_thread::sleep_for(std::chrono::milliseconds{60 + 20 * i});
                    shift.request_stop();
                });
                const auto done = worker.run(shift.get_token());
                wrong += done.retried + done.dead + done.stale + done.unsettled + done.lost + done.store_errors;
                ++stops;
            }
        });
    }
    std::this_thread::sleep_for(1500ms);
    over = true;
    threads.clear();
    CHECK(worker_gets_there([&] { return store.counts("q").live() == 0; }));
    workers.clear();
    CHECK(produced > 100);
    CHECK(stops > 20);
    CHECK(wrong == 0);
    CHECK(store.counts("q")[state::succeeded] == produced);
    const auto all = std::to_string(produced);
    CHECK(worker_rows(store, "SELECT count(*), count(DISTINCT id) FROM effects") == std::vector{all + ' ' + all});
}

TEST_CASE("sqlite audit: a line per ended entry and completed group, in the commit of the outcome") {
    const sqlite_test::folder in;
    sqlite_store store(in.fresh_path());
    const vouch::sqlite::audit_table audit(store);
    const vouch::sqlite::audit_table again(store); // it is there already
    const vouch::outbox outbox(store);
    vouch::router routes(outbox);
    routes.on("good", [](vouch::delivery&) {});
    routes.on("bad", [](vouch::delivery&) { throw vouch::reject("no_good"); });
    routes.on("later", [](vouch::delivery&) { throw vouch::failure("not_yet"); });
    vouch::runner runner(outbox, routes, {.queue = "q", .worker = "w"});
    runner.audit(audit);
    outbox.emit({.queue = "q", .topic = "good", .group = "g"});
    outbox.emit({.queue = "q", .topic = "bad"});
    outbox.emit({.queue = "q", .topic = "later"});
    CHECK(runner.run_once().retried == 1);
    const auto lines = worker_rows(
        store, R"(SELECT what, queue, topic, "group", worker, error, attempts FROM vouch_audit ORDER BY number)");
    CHECK(lines == std::vector<std::string>{"succeeded q good g w  1", "dead q bad  w no_good 1",
                                            "group_completed q good g w  1"});
    CHECK(worker_rows(store, "SELECT count(*) FROM vouch_audit WHERE length(id) = 16 AND at > 0") ==
          std::vector<std::string>{"3"});
}

TEST_CASE("sqlite audit: while the table cannot be written the outcome is kept, and settled when it can be") {
    const sqlite_test::folder in;
    sqlite_store store(in.fresh_path());
    const vouch::sqlite::audit_table audit(store);
    worker_statement(store, "ALTER TABLE vouch_audit RENAME TO gone");
    const vouch::manual_clock clock;
    const vouch::outbox outbox(store, {.clock = clock});
    vouch::router routes(outbox);
    routes.on("t", [](vouch::delivery&) {});
    vouch::runner runner(outbox, routes, {.queue = "q", .lease = 1min});
    runner.audit(audit);
    const auto id = outbox.emit({.queue = "q", .topic = "t"}).front().id;
    CHECK(runner.run_once().held_up == 1);
    CHECK(store.find(id)->state == state::claimed);
    worker_statement(store, "ALTER TABLE gone RENAME TO vouch_audit");
    clock.pass(2min);
    CHECK(runner.run_once().succeeded == 1);
    CHECK(worker_rows(store, "SELECT what, attempts FROM vouch_audit") == std::vector<std::string>{"succeeded 1"});
}

TEST_CASE("sqlite inspect: which schema and which queues a database has, whatever the number of entries") {
    const sqlite_test::folder in;
    const auto path = in.fresh_path();
    sqlite3* db = nullptr;
    REQUIRE(sqlite3_open(path.c_str(), &db) == SQLITE_OK);
    const std::unique_ptr<sqlite3, int (*)(sqlite3*)> closes(db, sqlite3_close);
    CHECK(vouch::sqlite::stored_schema_version(db) == std::nullopt);
    sqlite_store store(path);
    CHECK(vouch::sqlite::stored_schema_version(db) == vouch::sqlite::schema_version);
    CHECK(vouch::sqlite::queue_names(db).empty());
    const vouch::outbox outbox(store);
    for (const std::string queue : {"b", "a", "c", "b", "\xc3\xa4", "b"}) {
        outbox.emit({.queue = queue, .topic = "t"});
    }
    CHECK(vouch::sqlite::queue_names(db) == std::vector<std::string>{"a", "b", "c", "\xc3\xa4"});
    const auto counts = vouch::sqlite::counts_of_any_schema(db);
    CHECK(counts.size() == 4);
    CHECK(counts.at("b")[state::pending] == 3);
    CHECK(counts.at("b") == store.counts("b"));
}

TEST_CASE("sqlite: a transaction's connection is for what is to be part of it, and gone with it") {
    const sqlite_test::folder in;
    sqlite_store store(in.fresh_path());
    worker_statement(store, "CREATE TABLE mine (x)");
    {
        auto tx = store.begin();
        REQUIRE(sqlite3_exec(tx.connection(), "INSERT INTO mine VALUES (1)", nullptr, nullptr, nullptr) == SQLITE_OK);
    }
    CHECK(worker_rows(store, "SELECT count(*) FROM mine") == std::vector<std::string>{"0"});
    auto tx = store.begin();
    tx.commit();
    bool misused = false;
    try {
        std::ignore = tx.connection();
    } catch (const vouch::error& e) {
        misused = e.kind() == vouch::error_kind::misuse;
    }
    CHECK(misused);
}

TEST_CASE("sqlite start: entries claimed behind a slow handler are handed back, and idle workers start them at once") {
    const sqlite_test::folder in;
    const auto p99 = start_delay::best_percentile(0.99, 300, [&] {
        sqlite_store store(in.fresh_path(), {.synchronous = vouch::sqlite::synchronous::normal});
        return start_delay::delays_beside_a_slow_handler(store);
    });
    CAPTURE(p99.count());
    CHECK(p99 < 50ms);
}

TEST_CASE("sqlite start: workers that lose the race for an entry do not sleep through the next one") {
    const sqlite_test::folder in;
    const auto p90 = start_delay::best_percentile(0.90, 40, [&] {
        sqlite_store store(in.fresh_path(), {.synchronous = vouch::sqlite::synchronous::normal});
        return start_delay::delays_of_idle_workers(store);
    });
    CAPTURE(p90.count());
    CHECK(p90 < 100ms);
}

} // namespace sqlite_worker_test
