// SPDX-License-Identifier: MIT
// Entries inside the application's own transaction: both are there, or neither.
#include <array>
#include <span>
#include <string>
#include <tuple>

#include <libpq-fe.h>

#include <vouch/postgres.hpp>

#include "catch.hpp"
#include "postgres/server.hpp"
#include "unit/support.hpp"

namespace postgres_joined_test {

using namespace support;
using postgres_test::application;
using postgres_test::conninfo;
using postgres_test::fresh_prefix;
using vouch::error_kind;
using vouch::postgres::joined;
using kind = vouch::receipt::kind;

static_assert(vouch::writer<joined>);
static_assert(!vouch::transaction<joined>, "it must not be able to commit");

namespace {

/// An application with orders, and the store's tables beside them.
struct shop {
    std::string prefix = fresh_prefix();
    vouch::postgres::store store{conninfo(), {.prefix = prefix}};
    application app{};
    joined outbox{app.connection(), prefix};

    shop() { app.execute("CREATE TABLE " + prefix + "orders (id bigint PRIMARY KEY)"); }

    kind put(std::uint64_t n, std::string lane = "") {
        auto d = draft_of(n);
        d.lane = std::move(lane);
        return outbox.enqueue(std::span(&d, 1), t0).front().what;
    }
    void order(int n) const { app.execute("INSERT INTO " + prefix + "orders VALUES (" + std::to_string(n) + ")"); }
    [[nodiscard]] auto orders() const { return app.number("SELECT count(*) FROM " + prefix + "orders"); }
    [[nodiscard]] auto entries() const { return store.counts("q").total(); }
};

} // namespace

TEST_CASE("postgres joined: an order and its entry are committed together") {
    shop s;
    s.app.execute("BEGIN");
    s.order(1);
    CHECK(s.put(1) == kind::inserted);
    CHECK(s.entries() == 0);
    CHECK(s.outbox.find(id_of(1)));
    s.app.execute("COMMIT");
    CHECK(s.orders() == 1);
    CHECK(s.entries() == 1);
}

TEST_CASE("postgres joined: an order and its entry are rolled back together") {
    shop s;
    s.app.execute("BEGIN");
    s.order(1);
    CHECK(s.put(1) == kind::inserted);
    s.app.execute("ROLLBACK");
    CHECK(s.orders() == 0);
    CHECK(s.entries() == 0);
}

TEST_CASE("postgres joined: every operation works, and leaves the connection to the application") {
    shop s;
    s.app.execute("BEGIN");
    CHECK(s.put(1, "lane") == kind::inserted);
    CHECK(s.put(2, "lane") == kind::inserted);
    const auto claimed = s.outbox.claim({.queue = "q", .limit = 9, .now = t0, .lease = tick});
    REQUIRE(numbers(claimed) == std::vector<std::uint64_t>{1});
    CHECK(PQpipelineStatus(s.app.connection()) == PQ_PIPELINE_OFF);
    CHECK(PQtransactionStatus(s.app.connection()) == PQTRANS_INTRANS);
    CHECK(s.outbox.extend(std::array{ticket_of(claimed[0])}, t0, tick).front() == vouch::verdict::applied);
    CHECK(s.outbox.nudge(id_of(1), t0) == vouch::verdict::applied);
    const std::array settles{vouch::settle{ticket_of(claimed[0]), vouch::succeed{}}};
    CHECK(s.outbox.settle(settles, t0).front().verdict == vouch::verdict::applied);
    CHECK(s.outbox.cancel(id_of(2), "e", t0) == vouch::verdict::applied);
    CHECK(s.outbox.purge({.queue = "q", .before = t0 + tick}) == 2);
    CHECK(s.outbox.counts("q").total() == 0);
    s.app.execute("COMMIT");
    CHECK(s.entries() == 0);
}

TEST_CASE("postgres joined: it works inside savepoints of the application") {
    shop s;
    s.app.execute("BEGIN");
    CHECK(s.put(1) == kind::inserted);
    s.app.execute("SAVEPOINT mine");
    CHECK(s.put(2) == kind::inserted);
    s.app.execute("ROLLBACK TO mine");
    CHECK(s.put(3) == kind::inserted);
    CHECK(s.put(2) == kind::inserted);
    s.app.execute("RELEASE mine; COMMIT");
    CHECK(s.entries() == 3);
}

TEST_CASE("postgres joined: it leaves no settings, statements or locks on the connection") {
    shop s;
    const std::string settings = "SELECT string_agg(name || '=' || setting, ',' ORDER BY name) FROM pg_settings "
                                 "WHERE source = 'session'";
    const std::string prepared = "SELECT count(*) FROM pg_prepared_statements WHERE name <> ''";
    const auto before = s.app.text(settings);
    s.app.execute("BEGIN");
    CHECK(s.put(1) == kind::inserted);
    s.app.execute("COMMIT");
    CHECK(s.app.text(settings) == before);
    CHECK(s.app.number(prepared) == 0);
    CHECK(s.app.number("SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'advisory'") == 0);
}

TEST_CASE("postgres joined: a call that fails is undone, and the application's transaction goes on") {
    shop s;
    s.app.execute("BEGIN");
    s.order(1);
    s.app.execute("ALTER TABLE " + s.prefix + "entries RENAME COLUMN lapses TO renamed");
    CHECK(kind_of([&] { s.put(1); }) == error_kind::corrupt);
    CHECK(PQtransactionStatus(s.app.connection()) == PQTRANS_INTRANS);
    s.app.execute("ALTER TABLE " + s.prefix + "entries RENAME COLUMN renamed TO lapses");
    CHECK(s.put(2) == kind::inserted);
    s.app.execute("COMMIT");
    CHECK(s.orders() == 1);
    CHECK(s.entries() == 1);
}

TEST_CASE("postgres joined: an invalid draft changes nothing, and the transaction stays open") {
    shop s;
    s.app.execute("BEGIN");
    CHECK(kind_of([&] { std::ignore = s.outbox.enqueue(std::array{vouch::draft{}}, t0); }) ==
          error_kind::invalid_argument);
    CHECK(s.put(1) == kind::inserted);
    s.app.execute("COMMIT");
    CHECK(s.entries() == 1);
}

TEST_CASE("postgres joined: without a transaction, or in one that has failed, it is misuse") {
    shop s;
    CHECK(kind_of([&] { s.put(1); }) == error_kind::misuse);
    s.app.execute("BEGIN");
    PQclear(PQexec(s.app.connection(), "SELECT 1 / 0"));
    CHECK(kind_of([&] { s.put(1); }) == error_kind::misuse);
    s.app.execute("ROLLBACK");
    CHECK(s.entries() == 0);
}

TEST_CASE("postgres joined: a REPEATABLE READ transaction is refused, a SERIALIZABLE one is not") {
    shop s;
    s.app.execute("BEGIN ISOLATION LEVEL REPEATABLE READ");
    CHECK(kind_of([&] { s.put(1); }) == error_kind::unsupported);
    s.app.execute("COMMIT; BEGIN ISOLATION LEVEL SERIALIZABLE");
    CHECK(s.put(1) == kind::inserted);
    s.app.execute("COMMIT");
    CHECK(s.entries() == 1);
}

TEST_CASE("postgres joined: tables that do not exist are refused") {
    const application app;
    CHECK(kind_of([&] { const joined writer(app.connection(), fresh_prefix()); }) == error_kind::unsupported);
}

TEST_CASE("postgres transaction: statements of the application on its connection are part of it") {
    shop s;
    for (const bool commits : {false, true}) {
        auto tx = s.store.begin();
        std::ignore = tx.enqueue(std::array{draft_of(1)}, t0);
        PGconn* const c = tx.connection();
        PQclear(PQexec(c, ("INSERT INTO " + s.prefix + "orders VALUES (1)").c_str()));
        CHECK(tx.nudge(id_of(1), t0) == vouch::verdict::repeated);
        if (commits) {
            tx.commit();
        }
    }
    CHECK(s.orders() == 1);
    CHECK(s.entries() == 1);
}

TEST_CASE("postgres transaction: if the application ends it, the next call is misuse") {
    shop s;
    for (const std::string how : {"COMMIT", "ROLLBACK"}) {
        CAPTURE(how);
        auto tx = s.store.begin();
        PQclear(PQexec(tx.connection(), how.c_str()));
        CHECK(kind_of([&] { std::ignore = tx.enqueue(std::array{draft_of(1)}, t0); }) == error_kind::misuse);
        auto other = s.store.begin();
        PQclear(PQexec(other.connection(), how.c_str()));
        CHECK(kind_of([&] { other.commit(); }) == error_kind::misuse);
    }
    CHECK(s.entries() == 0);
}

} // namespace postgres_joined_test
