// SPDX-License-Identifier: MIT
// What an application may do on the connection of a transaction of ours: write beside it, join it, and even end it,
// which is noticed before anything else of ours is written.
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include <sqlite3.h>

#include <vouch/sqlite.hpp>
#include <vouch/vouch.hpp>

#include "catch.hpp"
#include "sqlite/application.hpp"
#include "sqlite/folder.hpp"
#include "unit/support.hpp"

namespace sqlite_shared_connection_test {

using namespace support;
using sqlite_test::application;
using sqlite_test::folder;
using vouch::error_kind;
using vouch::state;
using kind = vouch::receipt::kind;
using store_type = vouch::sqlite::store;

namespace {

int statement(sqlite3* db, const std::string& sql) { return sqlite3_exec(db, sql.c_str(), nullptr, nullptr, nullptr); }

/// A store with a table of payments, in which a second payment of the same number rolls everything back.
struct till {
    folder files{};
    std::string path = files.fresh_path();
    store_type store{path};
    application app{path};

    till() {
        app.execute("CREATE TABLE payments (number INTEGER PRIMARY KEY ON CONFLICT ROLLBACK)");
        app.execute("INSERT INTO payments VALUES (1)");
    }

    [[nodiscard]] std::int64_t entries() const { return app.number("SELECT count(*) FROM vouch_entries"); }
};

/// Statements of an application that end the transaction, each with what is left to do beforehand.
struct ender {
    std::string name{};
    std::function<void(sqlite3*)> end{};
    bool commits = false;
};

/// A trigger of a statement that is interrupted while it writes.
void interrupt_a_write(sqlite3* db) {
    sqlite3_progress_handler(
        db, 10, [](void*) { return 1; }, nullptr);
    CHECK(statement(db, "INSERT INTO payments WITH RECURSIVE n(i) AS (VALUES (10) UNION ALL SELECT i + 1 FROM n "
                        "WHERE i < 100000) SELECT i FROM n") == SQLITE_INTERRUPT);
    sqlite3_progress_handler(db, 0, nullptr, nullptr);
}

const std::vector<ender>& enders() {
    static const std::vector<ender> all{
        {"a constraint", [](sqlite3* db) { CHECK(statement(db, "INSERT INTO payments VALUES (1)") != SQLITE_OK); }},
        {"an interrupt", interrupt_a_write},
        {"ROLLBACK", [](sqlite3* db) { CHECK(statement(db, "ROLLBACK") == SQLITE_OK); }},
        {"ROLLBACK; BEGIN", [](sqlite3* db) { CHECK(statement(db, "ROLLBACK; BEGIN IMMEDIATE") == SQLITE_OK); }},
        {"COMMIT", [](sqlite3* db) { CHECK(statement(db, "COMMIT") == SQLITE_OK); }, true},
        {"COMMIT; BEGIN", [](sqlite3* db) { CHECK(statement(db, "COMMIT; BEGIN IMMEDIATE") == SQLITE_OK); }, true},
    };
    return all;
}

/// Every operation of a transaction, on the queue of the tests.
const std::vector<std::function<void(vouch::sqlite::transaction&)>>& operations() {
    using transaction = vouch::sqlite::transaction;
    static const std::vector<std::function<void(transaction&)>> all{
        [](transaction& tx) { tx.enqueue(std::array{draft_of(9)}, t0); },
        [](transaction& tx) { std::ignore = tx.claim(request(t0)); },
        [](transaction& tx) {
            settle_in(tx, {id_of(1), 1}, vouch::succeed{}, t0);
        },
        [](transaction& tx) {
            std::ignore = tx.extend(std::array{vouch::ticket{id_of(1), 1}}, t0, 1h);
        },
        [](transaction& tx) { std::ignore = tx.nudge(id_of(1), t0); },
        [](transaction& tx) { std::ignore = tx.cancel(id_of(1), "e", t0); },
        [](transaction& tx) { tx.purge({.queue = "q", .before = t0 + 1h}); },
        [](transaction& tx) { std::ignore = tx.find(id_of(1)); },
        [](transaction& tx) { std::ignore = tx.counts("q"); },
        [](transaction& tx) { std::ignore = tx.connection(); },
    };
    return all;
}

/// Takes the entry's payment, and does not mind that it cannot.
struct careless_payment {
    static int work(vouch::delivery&) { return 1; }
    static void record(vouch::sqlite::transaction& tx, int number) {
        statement(tx.connection(), "INSERT INTO payments VALUES (" + std::to_string(number) + ")");
    }
};

} // namespace

TEST_CASE("shared connection: after the application has ended the transaction every call is refused and closes it") {
    for (const auto& how : enders()) {
        CAPTURE(how.name);
        for (std::size_t i = 0; i < operations().size(); ++i) {
            CAPTURE(i);
            till at;
            {
                auto tx = at.store.begin();
                tx.enqueue(std::array{draft_of(1), draft_of(2)}, t0);
                std::ignore = tx.claim(request(t0, {.only = id_of(1)}));
                how.end(tx.connection());
                const auto refused = error_of([&] { operations()[i](tx); });
                REQUIRE(refused);
                CHECK(refused->kind() == error_kind::misuse);
                CHECK_FALSE(refused->is_in_doubt());
                CHECK(std::string(refused->what()).find(how.commits ? "committed" : "rolled back") !=
                      std::string::npos);
                CHECK(kind_of([&] { operations()[i](tx); }) == error_kind::misuse);
                CHECK(kind_of([&] { tx.commit(); }) == error_kind::misuse);
            }
            CHECK(at.entries() == (how.commits ? 2 : 0));
            vouch::enqueue(at.store, std::array{draft_of(3)}, t0); // the next turn is free
            CHECK(at.entries() == (how.commits ? 3 : 1));
        }
    }
}

TEST_CASE("shared connection: a commit of what the application rolled back is no doubt, of what it committed it is") {
    for (const auto& how : enders()) {
        CAPTURE(how.name);
        till at;
        auto tx = at.store.begin();
        tx.enqueue(std::array{draft_of(1)}, t0);
        how.end(tx.connection());
        const auto refused = error_of([&] { tx.commit(); });
        REQUIRE(refused);
        CHECK(refused->kind() == error_kind::misuse);
        CHECK(refused->is_in_doubt() == how.commits);
        CHECK(at.entries() == (how.commits ? 1 : 0));
    }
}

TEST_CASE("shared connection: on a connection of the application's own an ended transaction is noticed, too") {
    const folder files;
    application app(files.fresh_path());
    app.execute("PRAGMA journal_mode = WAL");
    store_type store(app.connection());
    for (const std::string ending : {"ROLLBACK", "COMMIT"}) {
        CAPTURE(ending);
        auto tx = store.begin();
        app.execute(ending);
        const auto refused = error_of([&] { tx.enqueue(std::array{draft_of(1)}, t0); });
        REQUIRE(refused);
        CHECK(refused->kind() == error_kind::misuse);
    }
    CHECK(app.number("SELECT count(*) FROM vouch_entries") == 0);
}

TEST_CASE(
    "shared connection: a record that swallows its rolled-back payment has failed, and the entry is tried again") {
    till at;
    const vouch::manual_clock clock(t0);
    const vouch::outbox work(at.store, {.clock = clock, .ids = vouch::counting_ids{}});
    vouch::router routes(work);
    routes.on("t", careless_payment{});
    routes.on("other", [](vouch::delivery&) {});
    vouch::runner runner(work, routes, {.queue = "q", .lease = 1min});
    auto other = draft_of(2);
    other.topic = "other";
    vouch::enqueue(at.store, std::array{draft_of(1), other}, t0);

    const auto done = runner.run_once();
    CHECK(done.retried == 1);
    CHECK(done.succeeded == 1); // the neighbour has nothing to do with it
    CHECK(at.store.find(id_of(1))->state == state::retrying);
    CHECK(at.store.find(id_of(1))->last_error == "misuse");
    CHECK(at.store.find(id_of(2))->state == state::succeeded);

    at.app.execute("DELETE FROM payments"); // what was in the way has gone
    clock.pass(2min);
    CHECK(runner.run_once().succeeded == 1);
    CHECK(at.store.find(id_of(1))->state == state::succeeded);
    CHECK(at.app.number("SELECT count(*) FROM payments") == 1);
}

TEST_CASE("shared connection: a group callback that swallows a rollback leaves the entry unsettled") {
    till at;
    const vouch::manual_clock clock(t0);
    const vouch::outbox work(at.store, {.clock = clock, .ids = vouch::counting_ids{}});
    vouch::router routes(work);
    routes.on("t", [](vouch::delivery&) {});
    vouch::runner runner(work, routes, {.queue = "q"});
    runner.on_group_complete([](auto& tx, const std::string&, const vouch::entry&) {
        statement(tx.connection(), "INSERT INTO payments VALUES (1)");
    });
    auto member = draft_of(1);
    member.group = "g";
    vouch::enqueue(at.store, std::array{member}, t0);
    CHECK(runner.run_once().unsettled == 1);
    CHECK(at.store.find(id_of(1))->state == state::claimed);
}

TEST_CASE("shared connection: a joined writer on the connection of a transaction of ours is part of it") {
    till at;
    const auto put = [](auto& writer, std::uint64_t n) {
        return writer.enqueue(std::array{draft_of(n)}, t0).front().what;
    };
    {
        auto tx = at.store.begin();
        CHECK(put(tx, 1) == kind::inserted);
        vouch::sqlite::joined inside(tx.connection());
        CHECK(put(inside, 2) == kind::inserted);
        CHECK(put(tx, 3) == kind::inserted);
        CHECK(put(inside, 2) == kind::duplicate);
        CHECK(inside.claim(request(t0)).size() == 3);
        CHECK(settle_in(tx, {id_of(2), 1}, vouch::succeed{}, t0).verdict == vouch::verdict::applied);
        tx.commit();
    }
    CHECK(numbers(at.store.list(vouch::query::all("q"))) == list{1, 2, 3});
    CHECK(at.store.counts("q")[state::succeeded] == 1);
    {
        auto tx = at.store.begin();
        vouch::sqlite::joined inside(tx.connection());
        CHECK(put(inside, 4) == kind::inserted);
    }
    CHECK(at.entries() == 3);
}

TEST_CASE("shared connection: a joined writer of an ended transaction of ours holds up no other thread's turn") {
    till at;
    auto first = std::make_unique<vouch::sqlite::transaction>(at.store.begin());
    vouch::sqlite::joined inside(first->connection());
    inside.enqueue(std::array{draft_of(1)}, t0);
    first->commit();
    std::thread other([&] {
        auto tx = at.store.begin();
        tx.enqueue(std::array{draft_of(2)}, t0);
        std::this_thread::sleep_for(30ms);
        tx.commit();
    });
    std::this_thread::sleep_for(10ms);
    vouch::enqueue(at.store, std::array{draft_of(3)}, t0);
    other.join();
    CHECK(at.entries() == 3);
}

} // namespace sqlite_shared_connection_test
