// SPDX-License-Identifier: MIT
// The tables: as a migration creates them, and as text for a migration tool.
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include <vouch/postgres.hpp>

#include "catch.hpp"
#include "postgres/server.hpp"
#include "unit/support.hpp"

namespace postgres_schema_test {

using namespace support;
using postgres_test::application;
using postgres_test::conninfo;
using postgres_test::fresh_prefix;
namespace postgres = vouch::postgres;

namespace {

std::string schema_of(const std::string& prefix) { return prefix.substr(0, prefix.size() - 1); }

/// All columns and indexes of a schema, without its name.
std::string shape_of(const application& app, const std::string& prefix) {
    const auto schema = schema_of(prefix);
    return app.lines("SELECT replace(table_name || ' ' || column_name || ' ' || data_type || ' ' || is_nullable, '" +
                     schema + "', '') FROM information_schema.columns WHERE table_schema = '" + schema +
                     "' ORDER BY 1") +
           app.lines("SELECT replace(indexdef, '" + schema + "', '') FROM pg_indexes WHERE schemaname = '" + schema +
                     "' ORDER BY 1");
}

} // namespace

TEST_CASE("postgres schema: the printed statements create what migrate creates") {
    const application app;
    const auto migrated = fresh_prefix();
    const auto printed = fresh_prefix();
    postgres::migrate(app.connection(), migrated);
    app.execute(postgres::schema(printed));
    const auto shape = shape_of(app, migrated);
    CHECK(shape.find("entries payload bytea NO") != std::string::npos);
    CHECK(shape_of(app, printed) == shape);
    const postgres::store store(conninfo(), {.prefix = printed, .create = false});
    CHECK(store.counts("q").total() == 0);
}

TEST_CASE("postgres schema: migrate does nothing to tables that are current, and works in an open transaction") {
    const application app;
    const auto prefix = fresh_prefix();
    app.execute("BEGIN");
    postgres::migrate(app.connection(), prefix);
    app.execute("ROLLBACK");
    CHECK(app.text("SELECT to_regclass('" + prefix + "entries') IS NULL") == "t");
    app.execute("BEGIN");
    postgres::migrate(app.connection(), prefix);
    postgres::migrate(app.connection(), prefix);
    app.execute("COMMIT");
    CHECK(app.number("SELECT value FROM " + prefix + "meta WHERE name = 'schema_version'") == postgres::schema_version);
}

TEST_CASE("postgres schema: processes that create the same tables at the same time do not disturb each other") {
    const auto prefix = fresh_prefix();
    std::vector<std::jthread> threads;
    std::atomic<int> opened = 0;
    for (int i = 0; i < 4; ++i) {
        threads.emplace_back([&] {
            const postgres::store store(conninfo(), {.prefix = prefix});
            ++opened;
        });
    }
    threads.clear();
    CHECK(opened == 4);
}

TEST_CASE("postgres schema: stores with different prefixes in one schema are separate") {
    const auto schema = fresh_prefix();
    postgres::store first(conninfo(), {.prefix = schema + "a_"});
    postgres::store second(conninfo(), {.prefix = schema + "b_"});
    vouch::enqueue(first, std::array{draft_of(1)}, t0);
    CHECK(first.counts("q").total() == 1);
    CHECK(second.counts("q").total() == 0);
}

} // namespace postgres_schema_test
