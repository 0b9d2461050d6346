// SPDX-License-Identifier: MIT
// The ways to a SQLite store that backends/README.md shows, compiled and run.
#include <cstdio>
#include <filesystem>

#include <vouch/sqlite.hpp>

#include "catch.hpp"
#include "sqlite/application.hpp"
#include "sqlite/folder.hpp"

namespace readme_stores_test {

TEST_CASE("readme: every way to a SQLite store") {
    const sqlite_test::folder folder;
    const auto home = std::filesystem::current_path();
    std::filesystem::current_path(folder.path());
    {
        sqlite_test::application app("work.db");
        sqlite3* const connection = app.connection();
        // clang-format off
        vouch::sqlite::store store("work.db");                 // creates the file and the tables
        vouch::sqlite::store fast("work.db", {.synchronous = vouch::sqlite::synchronous::normal});
        vouch::sqlite::store mine(connection);                 // writes through a sqlite3* of yours
        vouch::sqlite::joined inside(connection);              // writes in a transaction of yours
        vouch::sqlite::migrate(connection, "jobs_");           // creates or updates tables under another prefix
        std::puts(vouch::sqlite::schema("jobs_").c_str());     // prints them for your migration tool
        // clang-format on
        CHECK(app.number("SELECT count(*) FROM sqlite_master WHERE name IN ('vouch_entries', 'jobs_entries')") == 2);
    }
    std::filesystem::current_path(home);
}

} // namespace readme_stores_test
