// SPDX-License-Identifier: MIT
// Wrong arguments, and applications that misuse the connection.
#include <array>
#include <filesystem>
#include <string>
#include <string_view>
#include <tuple>

#include <sqlite3.h>

#include <vouch/sqlite.hpp>

#include "catch.hpp"
#include "sqlite/application.hpp"
#include "sqlite/expected_error.hpp"
#include "sqlite/faulty_vfs.hpp"
#include "sqlite/folder.hpp"
#include "unit/support.hpp"

namespace sqlite_errors_test {

TEST_CASE("errors: a prefix that could be more than a name is refused, and nothing is written") {
    const folder files;
    application app(files.file("application.db"));
    for (const std::string& prefix :
         {std::string(), std::string(41, 'a'), std::string("1st_"), std::string("a\"b"), std::string("a'b"),
          std::string("a;b"), std::string("a b"), std::string("a-b"), std::string("a\0b", 3), std::string("\xc3\xa4_"),
          std::string("sqlite_"), std::string("SQLite_x"), std::string("x; DROP TABLE orders; --")}) {
        CAPTURE(prefix);
        const auto path = files.file("refused.db");
        CHECK(kind_of([&] { sqlite::store store(path, {.prefix = prefix}); }) == error_kind::invalid_argument);
        CHECK(kind_of([&] { sqlite::store store(app.connection(), {.prefix = prefix}); }) ==
              error_kind::invalid_argument);
        CHECK(kind_of([&] { sqlite::joined joined(app.connection(), prefix); }) == error_kind::invalid_argument);
        CHECK(kind_of([&] { sqlite::migrate(app.connection(), prefix); }) == error_kind::invalid_argument);
        CHECK(kind_of([&] { std::ignore = sqlite::schema(prefix); }) == error_kind::invalid_argument);
        CHECK(!std::filesystem::exists(path));
        CHECK(app.number("SELECT count(*) FROM sqlite_master") == 0);
    }
    for (const std::string& prefix :
         {std::string(40, 'a'), std::string("_"), std::string("Z9_"), std::string("sqlit")}) {
        CAPTURE(prefix);
        sqlite::store store(files.file("accepted.db"), {.prefix = prefix});
        CHECK(is_working(store, 1));
    }
}

TEST_CASE("errors: what is no file of a name is refused") {
    const folder files;
    CHECK(kind_of([&] { sqlite::store store(files.file("a") + '\0' + "b"); }) == error_kind::invalid_argument);
    for (const std::string path : {":memory:", ""}) {
        CAPTURE(path);
        CHECK(kind_of([&] { sqlite::store store(path); }) == error_kind::unsupported);
        application app(path);
        CHECK(kind_of([&] { sqlite::store store(app.connection()); }) == error_kind::unsupported);
        CHECK(kind_of([&] { sqlite::joined joined(app.connection()); }) == error_kind::unsupported);
        CHECK(app.number("SELECT count(*) FROM sqlite_master") == 0);
    }
    CHECK(kind_of([] { sqlite::store store(static_cast<sqlite3*>(nullptr)); }) == error_kind::invalid_argument);
    CHECK(kind_of([] { sqlite::joined joined(nullptr); }) == error_kind::invalid_argument);
    CHECK(std::filesystem::is_empty(files.path()));
}

TEST_CASE("errors: an unknown VFS name is an invalid argument") {
    const folder files;
    CHECK(kind_of([&] { sqlite::store store(files.fresh_path(), {.vfs = "no such"}); }) ==
          error_kind::invalid_argument);
    CHECK(std::filesystem::is_empty(files.path()));
}

TEST_CASE("errors: a wrong argument leaves the transaction open, and is not quoted") {
    on_disk at;
    auto tx = at.store.begin();
    auto nameless = secret_draft(1);
    nameless.queue = "";
    const auto e = thrown_by([&] { tx.enqueue(std::array{nameless}, t0); });
    REQUIRE(e);
    CHECK(e->kind() == error_kind::invalid_argument);
    put_secret(tx, 1);
    tx.commit();
    CHECK(at.store.find(id_of(1)));
}

TEST_CASE("errors: an application that ends the store's transaction gets misuse") {
    on_connection at;
    for (const std::string ending : {"ROLLBACK", "COMMIT"}) {
        CAPTURE(ending);
        auto tx = at.store.begin();
        put_secret(tx, 1);
        at.app.execute(ending);
        const auto e = thrown_by([&] { tx.commit(); });
        REQUIRE(e);
        const std::string message = e->what();
        CAPTURE(message);
        CHECK(e->kind() == error_kind::misuse);
        CHECK(e->is_in_doubt()); // who knows how it was ended
    }
    CHECK(is_working(at.store, 2));
}

TEST_CASE("errors: on the application's connection the extended code is kept as well") {
    const folder files;
    const auto path = files.fresh_path();
    faulty_vfs vfs("faulty");
    { sqlite::store store(path, {.vfs = vfs.name()}); }
    sqlite3* db = nullptr;
    REQUIRE(sqlite3_open_v2(path.c_str(), &db, SQLITE_OPEN_READWRITE, vfs.name().c_str()) == SQLITE_OK);
    vfs.matters = [](faulty_vfs::call which, std::string_view) { return which == faulty_vfs::call::read; };
    for (const long nth : {1L, 2L, 3L}) { // while the tables are looked for, and while statements are prepared
        vfs.next = {.nth = nth};
        const auto e = thrown_by([&] { sqlite::store store(db, {.vfs = vfs.name()}); });
        REQUIRE(vfs.next.has_fired);
        REQUIRE(e);
        CHECK(e->code() == SQLITE_IOERR_READ);
    }
    {
        sqlite::store store(db, {.vfs = vfs.name()});
        CHECK(is_working(store, 1));
    }
    CHECK(sqlite3_close(db) == SQLITE_OK);
}

} // namespace sqlite_errors_test
