// SPDX-License-Identifier: MIT
// The code in the comments of the PostgreSQL store's public headers, compiled and run. `checks/comment_code.py` finds it
// here: change both.
#include <array>
#include <string>

#include <vouch/postgres.hpp>
#include <vouch/vouch.hpp>
#include <vouch/worker.hpp>

#include "catch.hpp"
#include "postgres/server.hpp"

namespace postgres_comment_code_test {

namespace postgres = vouch::postgres;

TEST_CASE("comments: a joined writer enqueues in the application's PostgreSQL transaction") {
    const postgres_test::application app;
    PGconn* const connection = app.connection();
    app.execute("DROP TABLE IF EXISTS orders; CREATE TABLE orders (number bigint)");
    postgres::migrate(connection);
    const auto now = vouch::system_now();
    const std::array drafts{vouch::draft{.id = {0, 1}, .queue = "mail", .topic = "order.placed"}};
    const auto exec = [&](PGconn*, const std::string& sql) {
        app.execute(sql == "INSERT INTO orders ..." ? "INSERT INTO orders VALUES (1)" : sql);
    };

    postgres::joined writer(connection);
    exec(connection, "BEGIN");
    exec(connection, "INSERT INTO orders ...");
    writer.enqueue(drafts, now);
    exec(connection, "COMMIT");

    CHECK(app.number("SELECT count(*) FROM orders") == 1);
    CHECK(postgres::store(postgres_test::conninfo()).counts("mail").total() == 1);
}

TEST_CASE("comments: a worker writes an audit table of PostgreSQL") {
    vouch::postgres::store store(postgres_test::conninfo(), {.prefix = postgres_test::fresh_prefix()});
    const vouch::outbox outbox(store);
    vouch::worker worker(outbox);

    vouch::postgres::audit_table audit(store);
    worker.audit(audit);
    CHECK(store.counts("mail").total() == 0);
}

TEST_CASE("comments: a worker writes a history table of PostgreSQL") {
    vouch::postgres::store store(postgres_test::conninfo(), {.prefix = postgres_test::fresh_prefix()});
    const vouch::outbox outbox(store);
    vouch::worker worker(outbox);

    vouch::postgres::history_table history(store);
    worker.history(history);
    CHECK(store.counts("mail").total() == 0);
}

} // namespace postgres_comment_code_test
