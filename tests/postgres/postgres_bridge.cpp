// SPDX-License-Identifier: MIT
// Entries in a transaction of libpqxx. Compiled if libpqxx is installed; the code is in backends/postgres/README.md.
#include <string>

#include <vouch/postgres.hpp>
#include <vouch/vouch.hpp>

#include "catch.hpp"
#include "postgres/server.hpp"

#ifdef VOUCH_HAS_PQXX

#include <pqxx/pqxx>

namespace postgres_bridge_test {

namespace {

/// libpqxx 6 and 7 keep the PGconn private, but hand it to classes derived from `largeobject`, for large objects of your
/// own.
struct raw_connection : pqxx::largeobject {
    [[nodiscard]] static PGconn* of(const pqxx::dbtransaction& tx) { return largeobject::raw_connection(tx); }
};

struct shop {
    std::string prefix = postgres_test::fresh_prefix();
    vouch::postgres::store store{postgres_test::conninfo(), {.prefix = prefix}};
    pqxx::connection connection{postgres_test::conninfo()};

    shop() {
        pqxx::work tx(connection);
        tx.exec("CREATE TABLE " + prefix + "orders (number bigint PRIMARY KEY)");
        tx.commit();
    }
    [[nodiscard]] int orders() {
        pqxx::work tx(connection);
        return tx.exec1("SELECT count(*) FROM " + prefix + "orders")[0].as<int>();
    }
};

} // namespace

TEST_CASE("bridge: an order and its entry are one transaction of libpqxx") {
    shop s;
    auto& connection = s.connection;
    const auto& prefix = s.prefix;
    const vouch::emitter emitter;
    {
        // clang-format off
        pqxx::work tx(connection);
        tx.exec("INSERT INTO " + prefix + "orders VALUES (7)");
        vouch::postgres::joined writer(raw_connection::of(tx), prefix);
        emitter.emit(writer, {.queue = "mail", .topic = "order.placed", .payload = "7"});
        tx.commit(); // the order and the work it causes, or neither
        // clang-format on
    }
    CHECK(s.orders() == 1);
    CHECK(s.store.counts("mail").total() == 1);
}

TEST_CASE("bridge: a rollback of libpqxx takes both back, also in a subtransaction, and the connection stays usable") {
    shop s;
    const vouch::emitter emitter;
    {
        pqxx::work tx(s.connection);
        vouch::postgres::joined writer(raw_connection::of(tx), s.prefix);
        tx.exec("INSERT INTO " + s.prefix + "orders VALUES (1)");
        emitter.emit(writer, {.queue = "mail", .topic = "t"});
    } // without a commit
    CHECK(s.orders() == 0);
    CHECK(s.store.counts("mail").total() == 0);

    pqxx::work tx(s.connection);
    vouch::postgres::joined writer(raw_connection::of(tx), s.prefix);
    emitter.emit(writer, {.queue = "mail", .topic = "kept"});
    {
        pqxx::subtransaction inner(tx);
        inner.exec("INSERT INTO " + s.prefix + "orders VALUES (2)");
        emitter.emit(writer, {.queue = "mail", .topic = "dropped"});
        inner.abort();
    }
    tx.exec_params("INSERT INTO " + s.prefix + "orders VALUES ($1)", 3);
    tx.commit();
    CHECK(s.store.list(vouch::query::all("mail")).at(0).topic == "kept");
    CHECK(s.store.counts("mail").total() == 1);
}

TEST_CASE("bridge: an entry that is refused leaves the transaction of libpqxx usable") {
    shop s;
    pqxx::work tx(s.connection);
    vouch::postgres::joined writer(raw_connection::of(tx), s.prefix);
    const vouch::emitter emitter;
    CHECK_THROWS_AS(emitter.emit(writer, {.queue = "", .topic = "t"}), vouch::error);
    tx.exec("INSERT INTO " + s.prefix + "orders VALUES (1)");
    tx.commit();
}

} // namespace postgres_bridge_test

#else

TEST_CASE("bridge: libpqxx") {
    WARN("skipped here: libpqxx is not installed (Debian and Ubuntu: libpqxx-dev)");
    SUCCEED();
}

#endif
