// SPDX-License-Identifier: MIT
// The code in the comments of the SQLite store's public headers, compiled and run. `checks/comment_code.py` finds it here:
// change both.
#include <array>
#include <string>

#include <vouch/observe.hpp>
#include <vouch/sqlite.hpp>
#include <vouch/testing.hpp>
#include <vouch/vouch.hpp>
#include <vouch/worker.hpp>

#include "catch.hpp"
#include "sqlite/application.hpp"
#include "sqlite/folder.hpp"

namespace sqlite_comment_code_test {

namespace sqlite = vouch::sqlite;

TEST_CASE("comments: a joined writer enqueues in the application's transaction") {
    const sqlite_test::folder folder;
    const auto path = folder.fresh_path();
    sqlite_test::application app(path);
    sqlite3* const connection = app.connection();
    app.execute("CREATE TABLE orders (number INTEGER)");
    sqlite::migrate(connection);
    const auto now = vouch::system_now();
    const std::array drafts{vouch::draft{.id = {0, 1}, .queue = "mail", .topic = "order.placed"}};
    const auto exec = [&](sqlite3*, const std::string& sql) {
        app.execute(sql == "INSERT INTO orders ..." ? "INSERT INTO orders VALUES (1)" : sql);
    };

    sqlite::joined writer(connection);
    exec(connection, "BEGIN IMMEDIATE");
    exec(connection, "INSERT INTO orders ...");
    writer.enqueue(drafts, now);
    exec(connection, "COMMIT");

    CHECK(app.number("SELECT count(*) FROM orders") == 1);
    CHECK(sqlite::store(path).counts("mail").total() == 1);
}

TEST_CASE("comments: a worker writes an audit table") {
    const sqlite_test::folder folder;
    vouch::sqlite::store store(folder.fresh_path());
    const vouch::outbox outbox(store);
    vouch::worker worker(outbox);

    vouch::sqlite::audit_table audit(store);
    worker.audit(audit);
    CHECK(store.counts("mail").total() == 0);
}

TEST_CASE("comments: a worker writes a history table") {
    const sqlite_test::folder folder;
    vouch::sqlite::store store(folder.fresh_path());
    const vouch::outbox outbox(store);
    vouch::worker worker(outbox);

    vouch::sqlite::history_table history(store);
    worker.history(history);
    CHECK(store.counts("mail").total() == 0);
}

TEST_CASE("comments: a sandbox over a store of one's own") {
    const sqlite_test::folder folder;
    const auto path = folder.fresh_path();

    vouch::sqlite::store store(path);
    vouch::testing::basic_sandbox box(store);
    box.emit({.topic = "user.created"});
    CHECK(store.counts("test").total() == 1);
}

} // namespace sqlite_comment_code_test
