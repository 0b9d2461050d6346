// SPDX-License-Identifier: MIT
// The README's words about one's own transaction, compiled and run.
#include <string>

#include <vouch/sqlite.hpp>
#include <vouch/vouch.hpp>

#include "catch.hpp"
#include "sqlite/application.hpp"
#include "sqlite/folder.hpp"

namespace readme_joined_test {

TEST_CASE("readme: an order and the work it causes are in one transaction") {
    const sqlite_test::folder folder;
    const auto path = folder.fresh_path();
    sqlite_test::application app(path);
    sqlite3* const connection = app.connection();
    const vouch::emitter emitter;
    const auto execute = [&](sqlite3*, const std::string& sql) { app.execute(sql); };
    app.execute("CREATE TABLE orders (number INTEGER)");
    vouch::sqlite::migrate(connection);

    // clang-format off
    vouch::sqlite::joined work(connection);      // your sqlite3*, your transaction
    execute(connection, "BEGIN IMMEDIATE");
    execute(connection, "INSERT INTO orders VALUES (1)");
    emitter.emit(work, {.queue = "mail", .topic = "order.placed", .payload = "1"});
    execute(connection, "COMMIT");               // the order and the work it causes, or neither
    // clang-format on

    CHECK(app.number("SELECT count(*) FROM orders") == 1);
    CHECK(vouch::sqlite::store(path).counts("mail").total() == 1);
}

TEST_CASE("readme: an outbox emits to a SQLite store and to its transactions") {
    const sqlite_test::folder folder;
    vouch::sqlite::store store(folder.fresh_path());
    const vouch::outbox outbox(store);
    outbox.emit({.queue = "mail", .topic = "order.placed", .payload = "1"});
    vouch::transact(store,
                    [&](auto& tx) { outbox.emit(tx, {.queue = "mail", .topic = "order.placed", .payload = "2"}); });
    CHECK(store.counts("mail").total() == 2);
}

} // namespace readme_joined_test
