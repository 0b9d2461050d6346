// SPDX-License-Identifier: MIT
// Damaged files and tables are `corrupt`, and no message tells what is stored.
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <optional>
#include <string>
#include <tuple>

#include <sqlite3.h>

#include <vouch/sqlite.hpp>

#include "catch.hpp"
#include "sqlite/application.hpp"
#include "sqlite/expected_error.hpp"
#include "sqlite/folder.hpp"
#include "unit/support.hpp"

namespace sqlite_errors_test {

TEST_CASE("errors: a file that is no database is corrupt, and stays as it is") {
    const folder files;
    const auto path = files.fresh_path();
    std::string text;
    for (int i = 0; i < 1000; ++i) {
        text += secret + " is what this file says. ";
    }
    std::ofstream(path) << text;
    expect({error_kind::corrupt, SQLITE_NOTADB}, [&] { sqlite::store store(path); });
    std::ifstream file(path);
    CHECK(std::string(std::istreambuf_iterator<char>(file), {}) == text);
}

TEST_CASE("errors: a page of garbage is corrupt") {
    const folder files;
    const auto path = files.fresh_path();
    std::int64_t page = 0;
    std::int64_t size = 0;
    {
        sqlite::store store(path);
        for (std::uint64_t n = 1; n <= 30; ++n) {
            REQUIRE(is_working(store, n));
        }
        const application app(path);
        page = app.number("SELECT rootpage FROM sqlite_master WHERE name = 'vouch_entries'");
        size = app.number("PRAGMA page_size");
    }
    overwrite(path, (page - 1) * size, static_cast<std::size_t>(size));
    sqlite::store store(path);
    expect({error_kind::corrupt, SQLITE_CORRUPT}, [&] { std::ignore = store.find(id_of(1)); });
    expect({error_kind::corrupt, SQLITE_CORRUPT}, [&] { std::ignore = store.list(query::all("q")); });
    expect_in_transaction({error_kind::corrupt, SQLITE_CORRUPT}, store, [&](auto& tx) { put_secret(tx, 90); });
    expect_in_transaction({error_kind::corrupt, SQLITE_CORRUPT}, store,
                          [&](auto& tx) { std::ignore = tx.claim(request(t0)); });
    CHECK(store.begin().next_due("r") == std::nullopt); // the index of gates is whole
}

TEST_CASE("errors: tables that were dropped under the store are corrupt, and may come back") {
    on_disk at;
    REQUIRE(is_working(at.store, 1));
    {
        application vandal(at.path);
        vandal.execute("DROP TABLE vouch_queues; DROP TABLE vouch_entries; DROP TABLE vouch_dead; DROP TABLE"
                       " vouch_payloads; DROP TABLE vouch_relations; DROP TABLE vouch_groups; DROP TABLE vouch_meta");
    }
    expect_in_transaction({error_kind::corrupt, SQLITE_ERROR}, at.store, [&](auto& tx) { put_secret(tx, 2); });
    expect({error_kind::corrupt, SQLITE_ERROR}, [&] { std::ignore = at.store.counts("q"); });
    {
        application mender(at.path);
        sqlite::migrate(mender.connection());
    }
    CHECK(is_working(at.store, 2));
}

TEST_CASE("errors: a rule of the database that refuses a row is corrupt, and is not quoted") {
    on_connection at;
    at.app.execute(
        "CREATE TRIGGER no BEFORE INSERT ON vouch_entries BEGIN SELECT RAISE(ABORT, 'no hunter2 here'); END");
    expect_in_transaction({error_kind::corrupt, SQLITE_CONSTRAINT}, at.store, [&](auto& tx) { put_secret(tx, 1); });
    CHECK(std::string(sqlite3_errmsg(at.app.connection())).size() > 0);
    at.app.execute("DROP TRIGGER no");
    CHECK(is_working(at.store, 1));
}

TEST_CASE("errors: rows that the store cannot have written are corrupt") {
    for (const std::string change :
         {"entries SET state = 9", "entries SET state = -1", "entries SET id = x'0102'", "relations SET parent = x'01'",
          "entries SET trail = x'0102'", "entries SET headers = x'0102'", "entries SET headers = x'ffffffff'",
          "entries SET headers = CAST('hunter2' AS BLOB)"}) {
        CAPTURE(change);
        on_connection at;
        REQUIRE(is_working(at.store, 1));
        at.app.execute("UPDATE vouch_" + change);
        expect({error_kind::corrupt}, [&] { std::ignore = at.store.list(query::all("q")); });
        expect_in_transaction({error_kind::corrupt}, at.store,
                              [&](auto& tx) { std::ignore = tx.list(query::all("q")); });
        expect_in_transaction({error_kind::corrupt}, at.store,
                              [&](auto& tx) { std::ignore = tx.list(query::all("q")); });
        CHECK(is_working(at.store, 2));
    }
}

TEST_CASE("errors: a member of a group that is not counted is corrupt") {
    on_connection at;
    REQUIRE(is_working(at.store, 1));
    at.app.execute("DELETE FROM vouch_groups");
    expect_in_transaction({error_kind::corrupt}, at.store,
                          [&](auto& tx) { std::ignore = tx.cancel(id_of(1), "e", t0); });
    CHECK(at.store.find(id_of(1))->state == vouch::state::pending);
}

// What is asked for.

} // namespace sqlite_errors_test
