// SPDX-License-Identifier: MIT
// What goes wrong below the SQLite store, each provoked for real: what kind it is, whether trying again may help,
// whether the commit may have happened, and that no message tells what is stored.
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include <sqlite3.h>

#include <vouch/sqlite.hpp>

#include "catch.hpp"
#include "sqlite/application.hpp"
#include "sqlite/faulty_vfs.hpp"
#include "sqlite/folder.hpp"
#include "unit/support.hpp"

namespace sqlite_errors_test {

using namespace support;
using sqlite_test::application;
using sqlite_test::faulty_vfs;
using sqlite_test::folder;
using vouch::error_kind;
using vouch::query;
namespace sqlite = vouch::sqlite;

namespace {

/// In everything that is stored here, and in no message.
const std::string secret = "hunter2";

vouch::draft secret_draft(std::uint64_t n) {
    auto d = draft_of(n);
    d.topic = d.key = d.group = d.lane = d.payload = d.progress = secret;
    d.key += std::to_string(n);
    d.lane += std::to_string(n);
    d.headers = {{secret, secret}};
    return d;
}

template <class Writer>
void put_secret(Writer& tx, std::uint64_t n) {
    tx.enqueue(std::array{secret_draft(n)}, t0);
}

/// What was thrown. It does not tell the secret.
template <class F>
std::optional<vouch::error> thrown_by(F&& f) {
    auto e = support::error_of(f);
    if (e) {
        CHECK(std::string_view(e->what()).find(secret) == std::string_view::npos);
    }
    return e;
}

struct expectation {
    error_kind kind{};
    int code = 0; ///< the first byte of it; 0: there is none
    bool in_doubt = false;
};

template <class F>
void expect(const expectation& expected, F&& f) {
    const auto e = thrown_by(f);
    REQUIRE(e);
    const std::string message = e->what();
    CAPTURE(message);
    CHECK(e->kind() == expected.kind);
    CHECK((e->code() & 0xff) == expected.code);
    CHECK(e->is_in_doubt() == expected.in_doubt);
    CHECK(message.rfind("sqlite: ", 0) == 0);
    const bool has_code = message.find(" (" + std::to_string(e->code()) + ")") != std::string::npos;
    CHECK(has_code == (expected.code != 0));
}

/// What `f` does in a transaction fails and closes it; nothing of it is there afterwards.
template <class F>
void expect_in_transaction(const expectation& expected, sqlite::store& store, F&& f) {
    auto tx = store.begin();
    expect(expected, [&] { f(tx); });
    CHECK(kind_of([&] { std::ignore = tx.next_due("q"); }) == error_kind::misuse);
    CHECK(kind_of([&] { put_secret(tx, 99); }) == error_kind::misuse);
    CHECK(kind_of([&] { tx.commit(); }) == error_kind::misuse);
}

/// The store takes and shows an entry.
bool is_working(sqlite::store& store, std::uint64_t n) {
    const auto receipt = vouch::enqueue(store, std::array{secret_draft(n)}, t0).front();
    return receipt.what == vouch::receipt::kind::inserted && store.find(id_of(n));
}

/// A store on a file that can fail.
struct on_disk {
    folder files{};
    std::string path = files.fresh_path();
    faulty_vfs vfs{"faulty"};
    sqlite::store store{path, {.busy_limit = 30ms, .vfs = vfs.name()}};

    /// The next such call fails, once.
    void fail(faulty_vfs::call which, int code) {
        vfs.matters = [=](faulty_vfs::call c, std::string_view) { return c == which; };
        vfs.code = [=](faulty_vfs::call) { return code; };
        vfs.next = {.nth = 1};
    }
};

/// A store on a connection of the application's.
struct on_connection {
    folder files{};
    std::string path = files.fresh_path();
    application app{path};
    sqlite::store store{make(app), {.busy_limit = 30ms}};

    static sqlite3* make(application& app) {
        app.execute("PRAGMA journal_mode = WAL");
        return app.connection();
    }
};

void overwrite(const std::string& path, std::streamoff at, std::size_t size) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(at);
    file << std::string(size, '\xaa');
    REQUIRE(file.good());
}

} // namespace

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

TEST_CASE("errors: who waits for another's lock longer than the limit is told busy, and may try again") {
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
    CHECK(!at.store.find(id_of(1))); // reading waits for nobody
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

TEST_CASE("errors: a file system nobody has heard of is a wrong argument") {
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

TEST_CASE("errors: an application that ends the store's transaction under it is told of its mistake") {
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
