// SPDX-License-Identifier: MIT
// A commit in doubt: its frames may be in the log though no reader sees them, and a recovery would find them. What the
// store answers after such a commit stays true, whatever crashes then.
#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include <sqlite3.h>

#include <vouch/sqlite.hpp>

#include "catch.hpp"
#include "sqlite/application.hpp"
#include "sqlite/faulty_vfs.hpp"
#include "sqlite/folder.hpp"
#include "unit/support.hpp"

namespace sqlite_doubt_test {

using namespace support;
using sqlite_test::application;
using sqlite_test::fault;
using sqlite_test::faulty_vfs;
using sqlite_test::folder;
using vouch::error_kind;
using call = faulty_vfs::call;
namespace sqlite = vouch::sqlite;

namespace {

/// A store on a file that can fail, and a second one that only reads.
struct scene {
    folder files{};
    std::string path = files.fresh_path();
    faulty_vfs vfs{"faulty"};
    sqlite::store store{path, {.busy_limit = 30ms, .vfs = vfs.name()}};
    sqlite::store other{path, {.busy_limit = 30ms, .vfs = vfs.name()}};

    scene() {
        put(1);
        CHECK(other.find(id_of(1)));
    }

    void put(std::uint64_t n) { vouch::enqueue(store, std::array{draft_of(n)}, t0); }

    /// The n-th call of this kind that concerns the log fails, and so do all up to `length` after it.
    void fail(call which, long nth, long length = 1) {
        vfs.matters = [=](call c, std::string_view at) { return c == which && at.ends_with("-wal"); };
        vfs.next = {.nth = nth, .length = length};
    }
    void heal() { vfs.next = {}; }

    /// Commits an entry while calls fail; says whether the commit was in doubt.
    bool commit_in_doubt(std::uint64_t n, call which, long nth, long length = 1) {
        auto tx = store.begin();
        auto d = draft_of(n);
        d.payload.assign(20'000, 'x'); // several frames
        tx.enqueue(std::array{d}, t0);
        fail(which, nth, length);
        const auto e = error_of([&] { tx.commit(); });
        return e && e->is_in_doubt();
    }

    /// Whether the entry is there for a process that comes after all others have crashed: what the log has is
    /// recovered.
    [[nodiscard]] bool is_there_after_a_crash(std::uint64_t n) const {
        const auto copy = files.fresh_path();
        std::filesystem::copy_file(path, copy);
        std::filesystem::copy_file(path + "-wal", copy + "-wal");
        return sqlite::store(copy).find(id_of(n)).has_value();
    }
};

} // namespace

TEST_CASE("doubt: what readers see after a commit in doubt is what is there after a crash") {
    int doubts = 0;
    for (const auto which : {call::write, call::sync}) {
        for (long nth = 1; nth < 20; ++nth) {
            CAPTURE(which, nth);
            scene at;
            if (!at.commit_in_doubt(2, which, nth)) {
                break; // there are no more such calls in a commit
            }
            doubts += 1;
            const bool seen = at.other.find(id_of(2)).has_value();
            CHECK(at.store.find(id_of(2)).has_value() == seen);
            CHECK(at.is_there_after_a_crash(2) == seen);
            at.put(2); // as one does with a commit in doubt
            CHECK(at.other.find(id_of(2)));
            CHECK(at.is_there_after_a_crash(2));
        }
    }
    CHECK(doubts >= 4);
}

TEST_CASE("doubt: while a commit in doubt is unresolved every call throws; after that answers are true") {
    scene at;
    REQUIRE(at.commit_in_doubt(2, call::sync, 1, fault::for_ever));
    for (const auto* const reader : {&at.store, &at.other}) {
        const auto refused = error_of([&] { std::ignore = reader->find(id_of(2)); });
        REQUIRE(refused);
        CHECK(refused->kind() == error_kind::io);
        CHECK_FALSE(refused->is_in_doubt());
        CHECK(std::string(refused->what()).find("commit is in doubt") != std::string::npos);
        CHECK(kind_of([&] { std::ignore = reader->list(vouch::query::all("q")); }) == error_kind::io);
        CHECK(kind_of([&] { std::ignore = reader->counts("q"); }) == error_kind::io);
        CHECK(kind_of([&] { std::ignore = reader->next_due("q"); }) == error_kind::io);
    }
    CHECK(kind_of([&] { std::ignore = at.other.begin(); }) == error_kind::io);
    {
        const sqlite::store opened_later(at.path, {.busy_limit = 30ms, .vfs = at.vfs.name()});
        CHECK(kind_of([&] { std::ignore = opened_later.find(id_of(2)); }) == error_kind::io);
    }
    at.heal();
    const bool seen = at.other.find(id_of(2)).has_value();
    CHECK(at.other.find(id_of(2)).has_value() == seen);
    CHECK(at.is_there_after_a_crash(2) == seen);
    CHECK(at.store.begin().find(id_of(2)).has_value() == seen);
    at.put(3);
    CHECK(at.is_there_after_a_crash(3));
}

TEST_CASE("doubt: a transaction that is begun settles it first") {
    scene at;
    REQUIRE(at.commit_in_doubt(2, call::sync, 1, fault::for_ever));
    at.heal();
    const bool seen = at.store.begin().find(id_of(2)).has_value(); // and rolled back
    CHECK(at.is_there_after_a_crash(2) == seen);
}

TEST_CASE("doubt: closing all stores does not settle it while another process has the file open") {
    const folder files;
    const auto path = files.fresh_path();
    faulty_vfs vfs("faulty");
    application another(path); // as another process would, it keeps the log
    {
        sqlite::store store(path, {.vfs = vfs.name()});
        another.execute("BEGIN; SELECT * FROM vouch_entries"); // a reader of the whole log
        auto tx = store.begin();
        tx.enqueue(std::array{draft_of(1)}, t0);
        vfs.matters = [](call c, std::string_view) { return c == call::sync; };
        vfs.next = {.nth = 1, .length = fault::for_ever};
        const auto e = error_of([&] { tx.commit(); });
        REQUIRE(e);
        CHECK(e->is_in_doubt());
    }
    const sqlite::store again(path, {.vfs = vfs.name()});
    CHECK(kind_of([&] { std::ignore = again.find(id_of(1)); }) == error_kind::io);
    vfs.next = {};
    CHECK_FALSE(again.find(id_of(1)));
}

TEST_CASE("doubt: a joined transaction that only reads gets no answer before it is settled") {
    scene at;
    application app(at.path);
    sqlite::joined joined(app.connection());
    REQUIRE(at.commit_in_doubt(2, call::sync, 1, fault::for_ever));
    app.execute("BEGIN");
    CHECK(kind_of([&] { std::ignore = joined.find(id_of(2)); }) == error_kind::io);
    app.execute("ROLLBACK");
    at.heal();
    const bool seen = at.store.find(id_of(2)).has_value();
    app.execute("BEGIN");
    CHECK(joined.find(id_of(2)).has_value() == seen);
    app.execute("ROLLBACK");
}

TEST_CASE("doubt: a read of a store on the application's connection leaves that connection alone, and is refused") {
    const folder files;
    application app(files.fresh_path());
    app.execute("PRAGMA journal_mode = WAL; CREATE TABLE orders (n)");
    sqlite::store store(app.connection());
    const auto registry = sqlite::detail::file_registry::of(app.connection());
    registry->set_doubt(true);
    app.execute("BEGIN; INSERT INTO orders VALUES (1)");
    CHECK(kind_of([&] { std::ignore = store.find(id_of(1)); }) == error_kind::io);
    app.execute("COMMIT");
    CHECK(app.number("SELECT count(*) FROM orders") == 1);
    { auto settles = store.begin(); }
    CHECK_FALSE(store.find(id_of(1)));
    CHECK_FALSE(registry->is_in_doubt());
}

} // namespace sqlite_doubt_test
