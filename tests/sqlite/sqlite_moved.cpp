// SPDX-License-Identifier: MIT
// A database file that is moved away, deleted or replaced while a store has it open, in the middle of a transaction.
#include <array>
#include <filesystem>
#include <string>
#include <tuple>

#include <sqlite3.h>

#include <vouch/sqlite.hpp>

#include "catch.hpp"
#include "sqlite/application.hpp"
#include "sqlite/folder.hpp"
#include "unit/support.hpp"

namespace sqlite_moved_test {

using namespace support;
using sqlite_test::application;
using sqlite_test::folder;
using vouch::error_kind;
using vouch::sqlite::store;
namespace fs = std::filesystem;

namespace {

/// With everything SQLite keeps beside it, as `mv work.db* elsewhere` does.
void move_database(const std::string& from, const std::string& to) {
    for (const std::string suffix : {"", "-wal", "-shm"}) {
        if (fs::exists(from + suffix)) {
            fs::rename(from + suffix, to + suffix);
        }
    }
}

vouch::receipt put_into(store& s, std::uint64_t n) { return vouch::enqueue(s, std::array{draft_of(n)}, t0).front(); }

} // namespace

TEST_CASE("commit: nothing is acknowledged into a file that was moved away during the transaction") {
    const bool is_owned = GENERATE(true, false);
    CAPTURE(is_owned);
    const folder in;
    const auto path = in.fresh_path();
    application app(path);
    app.execute("PRAGMA journal_mode = WAL");
    auto s = is_owned ? store(path) : store(app.connection());
    REQUIRE(put_into(s, 1).what == vouch::receipt::kind::inserted);

    auto tx = s.begin();
    std::ignore = tx.enqueue(std::array{draft_of(2)}, t0);
    move_database(path, in.file("elsewhere.db"));
    const auto refused = error_of([&] { tx.commit(); });
    REQUIRE(refused);
    CHECK(refused->kind() == error_kind::io);
    CHECK_FALSE(refused->is_in_doubt());
    CHECK(std::string(refused->what()).find("moved") != std::string::npos);
    CHECK(kind_of([&] { tx.commit(); }) == error_kind::misuse);
    CHECK(kind_of([&] { put_into(s, 3); }) == error_kind::io);

    move_database(in.file("elsewhere.db"), path);
    CHECK_FALSE(s.find(id_of(2)));
    CHECK(put_into(s, 2).what == vouch::receipt::kind::inserted);
    CHECK(s.counts("q").total() == 2);
}

TEST_CASE("commit: nothing is acknowledged into a file that was deleted or replaced during the transaction") {
    const bool is_replaced = GENERATE(true, false);
    CAPTURE(is_replaced);
    const folder in;
    const auto path = in.fresh_path();
    store s(path);
    REQUIRE(put_into(s, 1).what == vouch::receipt::kind::inserted);
    const auto other = in.fresh_path();
    { store empty(other); }

    auto tx = s.begin();
    std::ignore = tx.enqueue(std::array{draft_of(2)}, t0);
    for (const std::string suffix : {"", "-wal", "-shm"}) {
        fs::remove(path + suffix);
    }
    if (is_replaced) {
        move_database(other, path);
    }
    const auto refused = error_of([&] { tx.commit(); });
    REQUIRE(refused);
    CHECK(refused->kind() == error_kind::io);
    CHECK_FALSE(refused->is_in_doubt());
    if (is_replaced) {
        CHECK(put_into(s, 2).what == vouch::receipt::kind::inserted); // into the one that is there now
        CHECK(store(path).counts("q").total() == 1);
    } else {
        CHECK(kind_of([&] { put_into(s, 2); }) == error_kind::io);
    }
}

} // namespace sqlite_moved_test
