// SPDX-License-Identifier: MIT
// Errors of the disk, each provoked for real: no room, failed writes, commits in doubt, files that cannot be opened or
// written.
#include <array>
#include <filesystem>
#include <tuple>
#include <utility>
#include <vector>

#include <sqlite3.h>

#include <vouch/sqlite.hpp>

#include "catch.hpp"
#include "sqlite/application.hpp"
#include "sqlite/expected_error.hpp"
#include "sqlite/faulty_vfs.hpp"
#include "sqlite/folder.hpp"
#include "unit/support.hpp"

namespace sqlite_errors_test {

TEST_CASE("errors: a commit for which the disk has no room is rolled back and not in doubt") {
    on_disk at;
    REQUIRE(is_working(at.store, 1));
    expect_in_transaction({error_kind::full, SQLITE_FULL}, at.store, [&](auto& tx) {
        put_secret(tx, 2);
        at.fail(faulty_vfs::call::write, SQLITE_FULL);
        tx.commit();
    });
    CHECK(!at.store.find(id_of(2)));
    CHECK(is_working(at.store, 2));
}

TEST_CASE("errors: a database that may not grow is full") {
    on_connection at;
    REQUIRE(is_working(at.store, 1));
    at.app.execute("PRAGMA max_page_count = 1"); // means: as many as there are
    expect_in_transaction({error_kind::full, SQLITE_FULL}, at.store, [&](auto& tx) {
        auto large = secret_draft(2);
        large.payload.resize(200'000, 'x');
        tx.enqueue(std::array{large}, t0);
        tx.commit();
    });
    at.app.execute("PRAGMA max_page_count = 1000000");
    CHECK(!at.store.find(id_of(2)));
    CHECK(is_working(at.store, 2));
}

TEST_CASE("errors: an entry over the connection's own limit is not supported") {
    on_connection at;
    const int usual = sqlite3_limit(at.app.connection(), SQLITE_LIMIT_LENGTH, 3000);
    expect_in_transaction({error_kind::unsupported, SQLITE_TOOBIG}, at.store, [&](auto& tx) {
        auto large = secret_draft(1);
        large.payload.resize(4000, 'x');
        tx.enqueue(std::array{large}, t0);
    });
    sqlite3_limit(at.app.connection(), SQLITE_LIMIT_LENGTH, usual);
    CHECK(is_working(at.store, 1));
}

// The medium.

TEST_CASE("errors: a commit whose write fails is in doubt") {
    on_disk at;
    REQUIRE(is_working(at.store, 1));
    for (const auto& [which, code] : {std::pair{faulty_vfs::call::write, SQLITE_IOERR_WRITE},
                                      std::pair{faulty_vfs::call::sync, SQLITE_IOERR_FSYNC}}) {
        CAPTURE(code);
        auto tx = at.store.begin();
        put_secret(tx, 2);
        at.fail(which, code);
        const auto e = thrown_by([&] { tx.commit(); });
        REQUIRE(e);
        CHECK(e->kind() == error_kind::io);
        CHECK(e->code() == code);
        CHECK(e->is_in_doubt());
        CHECK(e->is_transient());
        CHECK(kind_of([&] { tx.commit(); }) == error_kind::misuse);
    }
    CHECK(is_working(at.store, 3));
}

TEST_CASE("errors: an enqueue in doubt is repeated until it is stored once") {
    on_disk at;
    at.fail(faulty_vfs::call::sync, SQLITE_IOERR_FSYNC);
    const std::vector drafts{secret_draft(1), secret_draft(2)};
    const auto receipts = vouch::enqueue(at.store, drafts, t0);
    CHECK(at.vfs.next.has_fired);
    CHECK(receipts.front().what == vouch::receipt::kind::inserted);
    CHECK(receipts.back().what == vouch::receipt::kind::inserted);
    CHECK(at.store.counts("q").total() == 2);
}

TEST_CASE("errors: what fails before the commit is not in doubt") {
    on_disk at;
    REQUIRE(is_working(at.store, 1));
    at.fail(faulty_vfs::call::shm_lock, SQLITE_IOERR_SHMLOCK);
    expect({error_kind::io, SQLITE_IOERR}, [&] { std::ignore = at.store.begin(); });
    at.fail(faulty_vfs::call::shm_lock, SQLITE_IOERR_SHMLOCK);
    expect({error_kind::io, SQLITE_IOERR}, [&] { std::ignore = at.store.counts("q"); });
    CHECK(is_working(at.store, 2));

    // A cache of its own has nothing yet, so that there is something to read.
    sqlite::store cold(at.path, {.vfs = at.vfs.name()});
    auto tx = cold.begin();
    at.fail(faulty_vfs::call::read, SQLITE_IOERR_READ);
    expect({error_kind::io, SQLITE_IOERR}, [&] { put_secret(tx, 3); });
    CHECK(kind_of([&] { tx.commit(); }) == error_kind::misuse);
    CHECK(is_working(cold, 3));
}

TEST_CASE("errors: a file in a folder that is not there cannot be opened") {
    const folder files;
    expect({error_kind::io, SQLITE_CANTOPEN}, [&] { sqlite::store store(files.file("no/such/folder/store.db")); });
    expect({error_kind::io, SQLITE_CANTOPEN}, [&] { sqlite::store store(files.path().string()); });
    expect({error_kind::io, SQLITE_CANTOPEN}, [&] { sqlite::store store(files.file("none.db"), {.create = false}); });
    CHECK(std::filesystem::is_empty(files.path()));
}

TEST_CASE("errors: what may not be written is read-only") {
    SECTION("the application's connection") {
        on_connection at;
        REQUIRE(is_working(at.store, 1));
        at.app.execute("PRAGMA query_only = 1");
        expect({error_kind::read_only, SQLITE_READONLY}, [&] { std::ignore = at.store.begin(); });
        CHECK(at.store.find(id_of(1)));
        at.app.execute("PRAGMA query_only = 0");
        CHECK(is_working(at.store, 2));
    }
    SECTION("the file, while another has it open") {
        on_disk at;
        REQUIRE(is_working(at.store, 1));
        at.vfs.is_read_only = true;
        sqlite::store reading(at.path, {.vfs = at.vfs.name()});
        expect_in_transaction({error_kind::read_only, SQLITE_READONLY}, reading, [&](auto& tx) { put_secret(tx, 2); });
        CHECK(reading.find(id_of(1)));
        at.vfs.is_read_only = false;
        CHECK(is_working(at.store, 2));
    }
    SECTION("a file without tables") {
        const folder files;
        const auto path = files.fresh_path();
        application(path).execute("CREATE TABLE orders (number INTEGER)");
        faulty_vfs vfs("faulty");
        vfs.is_read_only = true;
        expect({error_kind::read_only, SQLITE_READONLY}, [&] { sqlite::store store(path, {.vfs = vfs.name()}); });
    }
    SECTION("by decree of the application") {
        on_connection at;
        sqlite3_set_authorizer(
            at.app.connection(),
            [](void*, int action, const char*, const char*, const char*, const char*) {
                return action == SQLITE_INSERT ? SQLITE_DENY : SQLITE_OK;
            },
            nullptr);
        expect_in_transaction({error_kind::read_only, SQLITE_AUTH}, at.store, [&](auto& tx) { put_secret(tx, 1); });
        sqlite3_set_authorizer(at.app.connection(), nullptr, nullptr);
        CHECK(is_working(at.store, 1));
    }
}

// What is stored.

} // namespace sqlite_errors_test
