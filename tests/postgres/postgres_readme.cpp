// SPDX-License-Identifier: MIT
// The code of backends/postgres/README.md.
#include <array>
#include <cstdio>
#include <string>

#include <vouch/postgres.hpp>

#include "catch.hpp"
#include "postgres/server.hpp"
#include "unit/support.hpp"

namespace postgres_readme_test {

TEST_CASE("README: the ways to a PostgreSQL store") {
    const postgres_test::application app;
    PGconn* const connection = app.connection();
    const auto conninfo = postgres_test::conninfo();
    // clang-format off
    vouch::postgres::store store(conninfo);                        // connects, and creates the tables
    vouch::postgres::store jobs(conninfo, {.prefix = "billing.jobs_"}); // other tables, in the schema billing
    vouch::postgres::joined inside(connection);                    // writes in a transaction of yours
    vouch::postgres::migrate(connection, "billing.");              // creates or updates tables
    std::puts(vouch::postgres::schema("billing.").c_str());        // prints them for your migration tool
    vouch::postgres::audit_table audit(store);                     // for `worker.audit(audit)`: a row per ended entry
    // clang-format on
    vouch::enqueue(jobs, std::array{support::draft_of(1)}, support::t0);
    CHECK(jobs.find(support::id_of(1)));
    CHECK_FALSE(store.find(support::id_of(1)));
    app.execute("BEGIN");
    CHECK_FALSE(inside.find(support::id_of(1)));
    app.execute("COMMIT");
    CHECK(app.number("SELECT count(*) FROM vouch_audit") == 0);
}

} // namespace postgres_readme_test
