// SPDX-License-Identifier: MIT
// The tables: created, described, migrated forward in one transaction, and left alone when they are newer.
#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <vouch/sqlite.hpp>

#include "catch.hpp"
#include "sqlite/application.hpp"
#include "sqlite/folder.hpp"
#include "unit/support.hpp"

namespace sqlite_schema_test {

using namespace support;
using sqlite_test::application;
using sqlite_test::folder;
using vouch::error_kind;
using store_type = vouch::sqlite::store;

namespace {

/// Everything SQLite knows of the tables and indexes, in one text.
std::string described(const application& app) {
    return app.text("SELECT group_concat(type || ' ' || name || ' ' || ifnull(sql, '') || char(10), '')"
                    " FROM (SELECT * FROM sqlite_master ORDER BY type, name)");
}

std::string bytes_of(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

constexpr std::string_view next_step = "ALTER TABLE @entries ADD COLUMN colour TEXT;\n"
                                       "CREATE INDEX @entries_colour ON @entries (colour);\n";

/// The released migrations, and these.
std::vector<std::string_view> with(std::initializer_list<std::string_view> more) {
    std::vector<std::string_view> steps(vouch::sqlite::detail::migrations.begin(),
                                        vouch::sqlite::detail::migrations.end());
    steps.insert(steps.end(), more);
    return steps;
}

} // namespace

TEST_CASE("schema: the printed statements make exactly what opening a store makes") {
    const folder folder;
    const auto opened = folder.fresh_path();
    std::ignore = store_type(opened, {.prefix = "jobs_"});
    const auto printed = folder.fresh_path();
    application by_hand(printed);
    by_hand.execute(vouch::sqlite::schema("jobs_"));
    CHECK(described(by_hand) == described(application(opened)));
    CHECK(described(by_hand).find("jobs_entries_gate") != std::string::npos);

    store_type store(printed, {.prefix = "jobs_", .create = false});
    const auto d = draft_of(1);
    CHECK(vouch::enqueue(store, std::span(&d, 1), t0).front().what == vouch::receipt::kind::inserted);
}

TEST_CASE("schema: the application's own version number is left alone") {
    const folder folder;
    const auto path = folder.fresh_path();
    application(path).execute("PRAGMA user_version = 7; PRAGMA application_id = 8");
    std::ignore = store_type(path);
    CHECK(application(path).number("PRAGMA user_version") == 7);
    CHECK(application(path).number("PRAGMA application_id") == 8);
    CHECK(application(path).number("SELECT value FROM vouch_meta WHERE name = 'schema_version'") ==
          vouch::sqlite::schema_version);
}

TEST_CASE("schema: where nothing is to be created, nothing is") {
    const folder folder;
    const auto path = folder.fresh_path();
    CHECK(error_of([&] { store_type(path, {.create = false}); }));
    CHECK_FALSE(std::filesystem::exists(path));

    application app(path);
    app.execute("CREATE TABLE orders (id)");
    const auto refused = error_of([&] { store_type(path, {.create = false}); });
    REQUIRE(refused);
    CHECK(refused->kind() == error_kind::unsupported);
    CHECK(app.number("SELECT count(*) FROM sqlite_master") == 1);
}

TEST_CASE("schema: a migration is carried out once, forward, with what is stored") {
    const folder folder;
    const auto path = folder.fresh_path();
    {
        store_type store(path);
        const auto d = draft_of(1);
        vouch::enqueue(store, std::span(&d, 1), t0);
    }
    application app(path);
    for (int i = 0; i < 2; ++i) {
        vouch::sqlite::detail::migrate(app.connection(), "vouch_", with({next_step}));
        CHECK(app.number("SELECT value FROM vouch_meta WHERE name = 'schema_version'") ==
              vouch::sqlite::schema_version + 1);
        CHECK(app.number("SELECT count(*) FROM vouch_entries WHERE colour IS NULL") == 1);
    }
}

TEST_CASE("schema: a migration that fails half-way leaves everything as it was") {
    const folder folder;
    application app(folder.fresh_path());
    app.execute(vouch::sqlite::schema());
    const auto before = described(app);
    const auto broken = with({next_step, "CREATE TABLE @more (id); CREATE NONSENSE;"});
    CHECK(kind_of([&] { vouch::sqlite::detail::migrate(app.connection(), "vouch_", broken); }) == error_kind::corrupt);
    CHECK(described(app) == before);
    CHECK(app.number("SELECT value FROM vouch_meta WHERE name = 'schema_version'") == vouch::sqlite::schema_version);
    CHECK(sqlite3_get_autocommit(app.connection()) != 0);
}

TEST_CASE("schema: inside the application's transaction a migration commits and rolls back with it") {
    const folder folder;
    application app(folder.fresh_path());
    app.execute("BEGIN; CREATE TABLE orders (id)");
    vouch::sqlite::migrate(app.connection());
    CHECK(app.number("SELECT count(*) FROM vouch_entries") == 0);
    CHECK(sqlite3_get_autocommit(app.connection()) == 0);
    app.execute("ROLLBACK");
    CHECK(described(app).empty());

    app.execute("BEGIN; CREATE TABLE orders (id)");
    CHECK(kind_of([&] { vouch::sqlite::detail::migrate(app.connection(), "vouch_", with({"CREATE NONSENSE"})); }) ==
          error_kind::corrupt);
    app.execute("COMMIT");
    CHECK(app.number("SELECT count(*) FROM sqlite_master") == 1);
}

TEST_CASE("schema: tables newer than the library are refused and not touched") {
    const folder folder;
    const auto path = folder.fresh_path();
    {
        application app(path);
        app.execute("PRAGMA journal_mode = WAL");
        vouch::sqlite::detail::migrate(app.connection(), "vouch_", with({next_step}));
    }
    const auto before = bytes_of(path);
    for (const bool create : {true, false}) {
        const auto refused = error_of([&] { store_type(path, {.create = create}); });
        REQUIRE(refused);
        CHECK(refused->kind() == error_kind::unsupported);
        CHECK(std::string(refused->what()).find("version " + std::to_string(vouch::sqlite::schema_version + 1)) !=
              std::string::npos);
    }
    CHECK(bytes_of(path) == before);
    application app(path);
    CHECK(kind_of([&] { vouch::sqlite::joined(app.connection()); }) == error_kind::unsupported);
}

TEST_CASE("schema: a database in UTF-16 is refused for that reason, and stays as it is") {
    for (const std::string encoding : {"UTF-16le", "UTF-16be"}) {
        const folder folder;
        const auto path = folder.fresh_path();
        application(path).execute("PRAGMA encoding = '" + encoding + "'; CREATE TABLE orders (id TEXT)");
        const auto before = bytes_of(path);
        const auto is_refused = [&](auto&& open) {
            const auto refused = error_of(open);
            REQUIRE(refused);
            CHECK(refused->kind() == error_kind::unsupported);
            CHECK(std::string(refused->what()).find("UTF-8") != std::string::npos);
            CHECK((bytes_of(path) == before));
        };
        for (const bool create : {true, false}) {
            is_refused([&] { std::ignore = store_type(path, {.create = create}); });
            application app(path);
            is_refused([&] { std::ignore = store_type(app.connection(), {.create = create}); });
        }
        application app(path);
        is_refused([&] { vouch::sqlite::joined(app.connection()); });
        is_refused([&] { vouch::sqlite::migrate(app.connection()); });
        REQUIRE(app.close());
        CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
    }
}

TEST_CASE("schema: a file that is refused keeps its journal mode") {
    const folder folder;
    const auto newer = folder.fresh_path();
    {
        application app(newer);
        vouch::sqlite::detail::migrate(app.connection(), "vouch_", with({next_step}));
    }
    const auto none = folder.fresh_path();
    application(none).execute("CREATE TABLE orders (id TEXT)");
    const auto before = bytes_of(newer) + bytes_of(none);
    CHECK(kind_of([&] { std::ignore = store_type(newer); }) == error_kind::unsupported);
    CHECK(kind_of([&] { std::ignore = store_type(newer, {.create = false}); }) == error_kind::unsupported);
    CHECK(kind_of([&] { std::ignore = store_type(none, {.create = false}); }) == error_kind::unsupported);
    CHECK((bytes_of(newer) + bytes_of(none) == before));
}

TEST_CASE("schema: tables without a version are foreign or broken, and refused") {
    const folder folder;
    const auto path = folder.fresh_path();
    application(path).execute("CREATE TABLE vouch_meta (name TEXT, value INTEGER)");
    CHECK(kind_of([&] { std::ignore = store_type(path); }) == error_kind::corrupt);
}

TEST_CASE("schema: many may open a fresh file at once") {
    const folder folder;
    const auto path = folder.fresh_path();
    std::vector<std::thread> threads;
    std::array<int, 6> opened{};
    for (auto& mine : opened) {
        threads.emplace_back([&] {
            mine = kind_of([&] {
                       const store_type store(path);
                       std::ignore = store.counts("q");
                   }) == std::nullopt
                       ? 1
                       : 0;
        });
    }
    for (auto& thread : threads) {
        thread.join();
    }
    CHECK(opened == std::array<int, 6>{1, 1, 1, 1, 1, 1});
    CHECK(application(path).text("PRAGMA integrity_check") == "ok");
}

} // namespace sqlite_schema_test
