// SPDX-License-Identifier: MIT
// What backends/postgres/README.md says to the people who run the server: every SQL statement of that page is run here,
// and a dump is restored.
#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <vouch/postgres.hpp>
#include <vouch/vouch.hpp>

#include "catch.hpp"
#include "postgres/server.hpp"
#include "unit/support.hpp"

namespace postgres_operating_test {

namespace {

using namespace std::chrono_literals;
using support::draft_of;
using support::id_of;
using vouch::postgres::access;

/// The statements in the ```sql blocks of the page, in their order.
[[nodiscard]] std::vector<std::string> documented_statements() {
    const auto root = std::filesystem::path(VOUCH_CLUSTER).parent_path().parent_path().parent_path();
    std::ifstream page(root / "backends/postgres/README.md");
    std::vector<std::string> out;
    std::string statement;
    bool is_sql = false;
    for (std::string line; std::getline(page, line);) {
        if (line.starts_with("```")) {
            CHECK(statement.empty()); // every statement ends with a semicolon
            is_sql = line == "```sql";
        } else if (is_sql) {
            statement += line + '\n';
            if (line.ends_with(';')) {
                out.push_back(std::exchange(statement, {}));
            }
        }
    }
    return out;
}

/// Three entries that are due, of which one has a lease that has expired; a dead one, and one that has succeeded.
void fill(vouch::postgres::store& store) {
    const auto now = vouch::system_now();
    std::vector<vouch::draft> drafts;
    for (std::uint64_t i = 1; i <= 5; ++i) {
        drafts.push_back(draft_of(i, "watched"));
        drafts.back().due_at = now - 1min;
    }
    vouch::enqueue(store, drafts, now - 1min);
    const auto take = [&](std::uint64_t n) {
        return ticket_of(
            vouch::claim(store, {.queue = "watched", .now = now - 1min, .lease = 1s, .worker = "w", .only = id_of(n)})
                .at(0));
    };
    static_cast<void>(take(3));
    const std::array settles{vouch::settle{take(4), vouch::bury{.error = "no_good"}},
                             vouch::settle{take(5), vouch::succeed{}}};
    vouch::transact(store, [&](auto& tx) { return tx.settle(settles, now); });
}

[[nodiscard]] std::string with(const std::vector<std::string>& statements, std::string_view words) {
    for (const auto& one : statements) {
        if (one.find(words) != std::string::npos) {
            return one.substr(0, one.rfind(';'));
        }
    }
    FAIL("no statement with " << words);
    return {};
}

} // namespace

TEST_CASE("README: every SQL statement of the PostgreSQL page runs, those that look as a role that may only look") {
    const postgres_test::application owner;
    owner.execute("DROP TABLE IF EXISTS vouch_audit; DROP ROLE IF EXISTS web; DROP ROLE IF EXISTS watcher");
    vouch::postgres::store store(postgres_test::conninfo());
    owner.execute("TRUNCATE vouch_entries, vouch_groups, vouch_lanes");
    owner.execute(vouch::postgres::roles());
    owner.execute("CREATE ROLE watcher LOGIN; GRANT vouch_look TO watcher");
    fill(store);
    const auto statements = documented_statements();
    CHECK(statements.size() > 10);
    const postgres_test::application watcher(postgres_test::conninfo() + " user=watcher");
    for (const auto& one : statements) {
        (one.starts_with("SELECT") ? watcher : owner).execute(one);
    }

    const auto row = [&](std::string_view words, const std::string& columns) {
        return watcher.lines("SELECT concat_ws(' ', " + columns + ") FROM (" + with(statements, words) + ") r");
    };
    CHECK(row("AS oldest_seconds", "queue, due, oldest_seconds BETWEEN 60 AND 600") == "watched 2 t\n");
    CHECK(row("SELECT queue, worker", "queue, worker, count") == "watched w 1\n");
    CHECK(row("SELECT queue, state", "queue, state, count") == "watched 0 2\nwatched 2 1\nwatched 3 1\nwatched 4 1\n");
    CHECK(row("SELECT queue, last_error", "queue, last_error, count, newest > now() - interval '1 hour'") ==
          "watched no_good 1 t\n");
    CHECK(row("age(backend_xmin)", "usename").find("watcher\n") != std::string::npos);
    CHECK(row("FROM pg_stat_user_tables", "relname").find("vouch_entries\n") != std::string::npos);
    CHECK(row("FROM pg_stat_user_indexes", "indexrelname").find("vouch_entries_gate\n") != std::string::npos);
    owner.execute("DROP OWNED BY web, watcher; DROP ROLE web; DROP ROLE watcher");
    owner.execute("ALTER TABLE vouch_entries RESET (autovacuum_vacuum_threshold, autovacuum_vacuum_cost_delay)");
}

TEST_CASE("README: a held snapshot and a blocked transaction are what the statements of the page find") {
    const auto statements = documented_statements();
    const postgres_test::application looks;
    const postgres_test::application holds;
    holds.execute("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1; SELECT pg_advisory_lock(1)");
    const auto pid = holds.text("SELECT pg_backend_pid()");
    CHECK(looks.lines("SELECT pid || ' ' || state FROM (" + with(statements, "age(backend_xmin)") + ") r")
              .find(pid + " idle in transaction\n") != std::string::npos);
    const postgres_test::application waits;
    REQUIRE(PQsendQuery(waits.connection(), "SELECT pg_advisory_lock(1)") == 1);
    std::string found;
    for (int i = 0; found.empty() && i < 500; ++i) {
        std::this_thread::sleep_for(10ms);
        found = looks.lines("SELECT waits_for::text FROM (" + with(statements, "pg_blocking_pids(pid)") + ") r");
    }
    CHECK(found == '{' + pid + "}\n");
}

TEST_CASE("README: a dump that was made while a store was open is restored with all entries and none of its server") {
    const auto prefix = postgres_test::fresh_prefix();
    const auto schema = prefix.substr(0, prefix.size() - 1);
    vouch::postgres::store store(postgres_test::conninfo(), {.prefix = prefix});
    const vouch::postgres::audit_table audit(store, prefix);
    fill(store);
    static_cast<void>(store.wakes("watched")); // there is a listener
    const postgres_test::application app;
    CHECK(app.number("SELECT count(*) FROM " + prefix + "server") == 1);
    app.execute("DROP DATABASE IF EXISTS restored");
    app.execute("CREATE DATABASE restored");
    const auto there = postgres_test::conninfo() + " dbname=restored";
    const auto command = "pg_dump --no-unlogged-table-data -n " + schema + " -d '" + postgres_test::conninfo() +
                         "' | psql -q -v ON_ERROR_STOP=1 -d '" + there + "' > /dev/null";
    REQUIRE(std::system(("bash -o pipefail -c \"" + command + '"').c_str()) == 0);
    {
        const postgres_test::application restored(there);
        CHECK(restored.number("SELECT count(*) FROM " + prefix + "server") == 0);
        CHECK(restored.number("SELECT count(*) FROM " + prefix + "listeners") == 0);
        vouch::postgres::store copy(there, {.prefix = prefix, .create = false});
        for (std::uint64_t i = 1; i <= 5; ++i) {
            CHECK(copy.find(id_of(i)) == store.find(id_of(i)));
        }
        const auto now = vouch::system_now();
        CHECK(vouch::claim(copy, {.queue = "watched", .limit = 10, .now = now, .lease = 1min}).size() == 3);
        // The sequence goes on where it was, so the order stays.
        vouch::enqueue(copy, std::array{draft_of(6, "watched")}, now);
        CHECK(copy.find(id_of(6))->sequence > store.find(id_of(5))->sequence);
    }
    app.execute("DROP DATABASE restored");
}

} // namespace postgres_operating_test
