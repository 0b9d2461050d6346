// SPDX-License-Identifier: MIT
// The kind of every SQLite error, and the errors of locks, each provoked for real: whether trying again may help, and
// whether the commit may have happened.
#include <array>
#include <chrono>
#include <cstddef>
#include <string>
#include <thread>
#include <tuple>

#include <sqlite3.h>

#include <vouch/sqlite.hpp>

#include "catch.hpp"
#include "sqlite/application.hpp"
#include "sqlite/expected_error.hpp"
#include "sqlite/folder.hpp"
#include "unit/support.hpp"

namespace sqlite_errors_test {

TEST_CASE("errors: every result code has one kind, and keeps its extended code") {
    struct row {
        int code;
        error_kind kind;
        bool is_transient;
    };
    using enum error_kind;
    const std::array rows{
        row{SQLITE_ERROR, corrupt, false},
        row{SQLITE_INTERNAL, io, true},
        row{SQLITE_PERM, read_only, false},
        row{SQLITE_ABORT, misuse, false},
        row{SQLITE_BUSY, busy, true},
        row{SQLITE_LOCKED, busy, true},
        row{SQLITE_NOMEM, full, true},
        row{SQLITE_READONLY, read_only, false},
        row{SQLITE_INTERRUPT, busy, true},
        row{SQLITE_IOERR, io, true},
        row{SQLITE_CORRUPT, corrupt, false},
        row{SQLITE_NOTFOUND, io, true},
        row{SQLITE_FULL, full, true},
        row{SQLITE_CANTOPEN, io, true},
        row{SQLITE_PROTOCOL, busy, true},
        row{SQLITE_EMPTY, io, true},
        row{SQLITE_SCHEMA, corrupt, false},
        row{SQLITE_TOOBIG, unsupported, false},
        row{SQLITE_CONSTRAINT, corrupt, false},
        row{SQLITE_MISMATCH, corrupt, false},
        row{SQLITE_MISUSE, misuse, false},
        row{SQLITE_NOLFS, unsupported, false},
        row{SQLITE_AUTH, read_only, false},
        row{SQLITE_FORMAT, io, true},
        row{SQLITE_RANGE, misuse, false},
        row{SQLITE_NOTADB, corrupt, false},

        row{SQLITE_BUSY_SNAPSHOT, conflict, true},
        row{SQLITE_BUSY_RECOVERY, busy, true},
        row{SQLITE_LOCKED_SHAREDCACHE, busy, true},
        row{SQLITE_IOERR_FSYNC, io, true},
        row{SQLITE_IOERR_SHORT_READ, io, true},
        row{SQLITE_CANTOPEN_ISDIR, io, true},
        row{SQLITE_READONLY_DBMOVED, read_only, false},
        row{SQLITE_CORRUPT_INDEX, corrupt, false},
        row{SQLITE_CONSTRAINT_UNIQUE, corrupt, false},
        row{SQLITE_ERROR_SNAPSHOT, corrupt, false},
    };
    for (int primary = SQLITE_ERROR; primary <= SQLITE_NOTADB; ++primary) {
        CHECK(rows[static_cast<std::size_t>(primary) - 1].code == primary); // none is missing
    }
    for (const auto& one : rows) {
        CAPTURE(one.code);
        CHECK(sqlite::detail::kind_of(one.code) == one.kind);
        const auto e = sqlite::detail::error_of(one.code, "test");
        CHECK(e.kind() == one.kind);
        CHECK(e.is_transient() == one.is_transient);
        CHECK(e.code() == one.code);
        CHECK(!e.is_in_doubt());
        CHECK(std::string(e.what()) ==
              std::string("sqlite: test: ") + sqlite3_errstr(one.code) + " (" + std::to_string(one.code) + ")");
        CHECK(sqlite::detail::error_of(one.code, "test", true).is_in_doubt());
    }
}

TEST_CASE("errors: this SQLite is new enough and built for threads") {
    sqlite::detail::check_library();
    CHECK(sqlite3_libversion_number() >= 3'035'000);
    CHECK(sqlite3_threadsafe() != 0);
}

// Locks.

TEST_CASE("errors: a wait for a lock that exceeds the limit throws busy, and may be repeated") {
    on_disk at;
    application other(at.path);
    other.execute("BEGIN IMMEDIATE");
    const auto since = std::chrono::steady_clock::now();
    const auto e = thrown_by([&] { std::ignore = at.store.begin(); });
    CHECK(std::chrono::steady_clock::now() - since >= 30ms);
    REQUIRE(e);
    CHECK(e->kind() == error_kind::busy);
    CHECK(e->is_transient());
    CHECK(!e->is_in_doubt());
    CHECK((e->code() & 0xff) == SQLITE_BUSY);
    CHECK(!at.store.find(id_of(1))); // a read does not wait
    other.execute("COMMIT");
    CHECK(is_working(at.store, 1));
}

TEST_CASE("errors: a transaction that began by reading meets a newer commit as a conflict") {
    on_connection at;
    sqlite::joined joined(at.app.connection());
    at.app.execute("BEGIN; SELECT * FROM vouch_entries");
    sqlite::store other(at.path);
    REQUIRE(is_working(other, 1));
    const auto e = thrown_by([&] { put_secret(joined, 2); });
    REQUIRE(e);
    CHECK(e->kind() == error_kind::conflict);
    CHECK(e->code() == SQLITE_BUSY_SNAPSHOT);
    CHECK(e->is_transient());
    at.app.execute("ROLLBACK");
    CHECK(is_working(at.store, 2));
}

TEST_CASE("errors: without a write-ahead log, a commit waits for readers to leave") {
    const folder files;
    const auto path = files.fresh_path();
    application app(path);
    REQUIRE(app.text("PRAGMA journal_mode = DELETE") == "delete");
    sqlite::store store(app.connection(), {.busy_limit = 20s});
    REQUIRE(is_working(store, 1));

    application reader(path);
    reader.execute("BEGIN; SELECT * FROM vouch_entries");
    auto tx = store.begin();
    put_secret(tx, 2);
    std::thread leaving([&] {
        std::this_thread::sleep_for(50ms);
        reader.execute("COMMIT");
    });
    const auto e = thrown_by([&] { tx.commit(); });
    leaving.join();
    CHECK(!e);
    CHECK(store.find(id_of(2)));
}

TEST_CASE("errors: a commit that a reader keeps out for too long is busy, rolled back, and not in doubt") {
    const folder files;
    const auto path = files.fresh_path();
    application app(path);
    REQUIRE(app.text("PRAGMA journal_mode = DELETE") == "delete");
    sqlite::store store(app.connection(), {.busy_limit = 30ms});
    REQUIRE(is_working(store, 1));

    application reader(path);
    reader.execute("BEGIN; SELECT * FROM vouch_entries");
    expect_in_transaction({error_kind::busy, SQLITE_BUSY}, store, [&](auto& tx) {
        put_secret(tx, 2);
        tx.commit();
    });
    CHECK(sqlite3_get_autocommit(app.connection()) == 1);
    reader.execute("COMMIT");
    CHECK(!store.find(id_of(2)));
    CHECK(is_working(store, 2));
}

TEST_CASE("errors: an interrupted statement is busy") {
    on_connection at;
    REQUIRE(is_working(at.store, 1));
    int left = 20;
    expect_in_transaction({error_kind::busy, SQLITE_INTERRUPT}, at.store, [&](auto& tx) {
        sqlite3_progress_handler(
            at.app.connection(), 1, [](void* count) { return (*static_cast<int*>(count))-- == 1 ? 1 : 0; }, &left);
        put_secret(tx, 2);
    });
    sqlite3_progress_handler(at.app.connection(), 0, nullptr, nullptr);
    CHECK(!at.store.find(id_of(2)));
    CHECK(is_working(at.store, 2));
}

// Room.

} // namespace sqlite_errors_test
