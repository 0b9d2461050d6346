// SPDX-License-Identifier: MIT
// The connections of a SQLite store and the files it accepts.
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <sys/stat.h>

#include <vouch/sqlite.hpp>

#include "catch.hpp"
#include "sqlite/application.hpp"
#include "sqlite/folder.hpp"
#include "unit/support.hpp"

namespace sqlite_connections_test {

using namespace support;
using sqlite_test::application;
using sqlite_test::folder;
using vouch::error_kind;
using vouch::state;
using store_type = vouch::sqlite::store;

namespace {

vouch::receipt put_one_in(store_type& store, const vouch::draft& d) {
    return vouch::enqueue(store, std::span(&d, 1), t0).front();
}

/// The connections opened while it lives, in order.
class opened_connections {
  public:
    opened_connections() {
        seen().clear();
        sqlite3_auto_extension(reinterpret_cast<void (*)()>(&note));
    }
    opened_connections(const opened_connections&) = delete;
    opened_connections& operator=(const opened_connections&) = delete;
    ~opened_connections() { sqlite3_cancel_auto_extension(reinterpret_cast<void (*)()>(&note)); }

    [[nodiscard]] static std::vector<sqlite3*>& seen() {
        static std::vector<sqlite3*> connections;
        return connections;
    }

  private:
    static int note(sqlite3* db, const char**, const struct sqlite3_api_routines*) {
        seen().push_back(db);
        return SQLITE_OK;
    }
};

std::int64_t pragma(sqlite3* db, const std::string& name) {
    const vouch::sqlite::detail::statement statement(db, "PRAGMA " + name);
    vouch::sqlite::detail::run row(statement);
    REQUIRE(row.step());
    return row.integer(0);
}

} // namespace

TEST_CASE("sqlite store: its connections use WAL and wait for the disk, or for the system only if told so") {
    using vouch::sqlite::synchronous;
    const folder folder;
    for (const auto& [given, number] : {std::pair{synchronous::full, 2}, std::pair{synchronous::normal, 1}}) {
        const opened_connections opened;
        const store_type store(folder.fresh_path(), {.synchronous = given});
        CHECK(pragma(opened.seen().front(), "synchronous") == number);
    }
    const opened_connections opened;
    const store_type store(folder.fresh_path());
    CHECK(pragma(opened.seen().front(), "synchronous") == 2);
    CHECK(store.counts("q").total() == 0);
    CHECK(pragma(opened.seen().back(), "query_only") == 1);
    CHECK(application(folder.file("store-3.db")).text("PRAGMA journal_mode") == "wal");
}

TEST_CASE("sqlite store: the application's connection is neither configured nor closed") {
    const folder folder;
    application app(folder.fresh_path());
    app.execute("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA busy_timeout = 123;"
                "PRAGMA user_version = 42; CREATE TABLE orders (id INTEGER PRIMARY KEY)");
    {
        store_type store(app.connection());
        CHECK(put_one_in(store, draft_of(1)).what == vouch::receipt::kind::inserted);
        CHECK(store.find(id_of(1)));

        app.execute("BEGIN");
        const auto refused = error_of([&] { std::ignore = store.begin(); });
        REQUIRE(refused);
        CHECK(refused->kind() == error_kind::misuse);
        CHECK(std::string(refused->what()).find("joined") != std::string::npos);
        app.execute("COMMIT");

        {
            auto tx = store.begin();
            app.execute("INSERT INTO orders VALUES (1)"); // part of it
        }
        CHECK(app.number("SELECT count(*) FROM orders") == 0);
    }
    CHECK(app.number("PRAGMA synchronous") == 1);
    CHECK(app.number("PRAGMA busy_timeout") == 123);
    CHECK(app.number("PRAGMA user_version") == 42);
    CHECK(app.number("SELECT count(*) FROM vouch_entries") == 1);
    CHECK(app.close());
}

TEST_CASE("sqlite store: closing the application's connection first does no harm if it is closed as zombies are") {
    const folder folder;
    const auto path = folder.fresh_path();
    auto app = std::make_unique<application>(path);
    {
        store_type store(app->connection());
        put_one_in(store, draft_of(1));
        app.reset(); // sqlite3_close_v2
    }
    CHECK(store_type(path).find(id_of(1)));
}

TEST_CASE("sqlite store: a database without a file is refused") {
    CHECK(kind_of([] { store_type(":memory:"); }) == error_kind::unsupported);
    CHECK(kind_of([] { store_type(""); }) == error_kind::unsupported);
    application app(":memory:");
    CHECK(kind_of([&] { store_type(app.connection()); }) == error_kind::unsupported);
    CHECK(kind_of([&] { store_type(static_cast<sqlite3*>(nullptr)); }) == error_kind::invalid_argument);
}

TEST_CASE("sqlite store: a database in UTF-16 is refused, because it would change names") {
    const folder folder;
    application app(folder.fresh_path());
    app.execute("PRAGMA encoding = 'UTF-16'; CREATE TABLE orders (id)");
    CHECK(kind_of([&] { store_type(app.connection()); }) == error_kind::unsupported);
    CHECK(app.number("SELECT count(*) FROM sqlite_master") == 1);
}

TEST_CASE("sqlite store: a path may have spaces and any letters") {
    const folder folder;
    const auto path = folder.file("Aufträge für die \xe6\x97\xa5\xe6\x9c\xac ?#%20.db");
    {
        store_type store(path);
        put_one_in(store, draft_of(1));
    }
    CHECK(std::filesystem::exists(path));
    CHECK(store_type(path).find(id_of(1)));
}

TEST_CASE("sqlite store: permissions of the file stay as they are, and its log gets the same") {
    const folder folder;
    const auto path = folder.fresh_path();
    std::ignore = store_type(path);
    REQUIRE(chmod(path.c_str(), 0640) == 0);
    store_type store(path);
    put_one_in(store, draft_of(1));
    for (const auto& file : {path, path + "-wal", path + "-shm"}) {
        struct stat found {};
        CAPTURE(file);
        REQUIRE(stat(file.c_str(), &found) == 0);
        CHECK((found.st_mode & 0777) == 0640);
    }
}

TEST_CASE("sqlite store: two prefixes in one file are two stores") {
    const folder folder;
    const auto path = folder.fresh_path();
    store_type a(path, {.prefix = "a_"});
    store_type b(path, {.prefix = "b_"});
    put_one_in(a, draft_of(1));
    put_one_in(b, draft_of(2));
    CHECK_FALSE(a.find(id_of(2)));
    CHECK_FALSE(b.find(id_of(1)));
    CHECK(a.counts("q").total() == 1);
    CHECK(b.counts("q").total() == 1);
}

TEST_CASE("sqlite store: what a long reader makes the log grow to is given back when it has gone") {
    const folder folder;
    const auto path = folder.fresh_path();
    store_type store(path, {.synchronous = vouch::sqlite::synchronous::normal});
    const auto fill = [&](std::uint64_t from, std::uint64_t to) {
        for (auto n = from; n < to; ++n) {
            auto d = draft_of(n);
            d.payload = std::string(1024 * 1024, 'x');
            put_one_in(store, d);
        }
    };
    const auto log = [&] { return std::filesystem::file_size(path + "-wal"); };
    constexpr std::uintmax_t limit = 8'388'608;

    fill(1, 12);
    CHECK(log() <= limit); // our own readers never stay
    application reader(path);
    reader.execute("BEGIN");
    CHECK(reader.number("SELECT count(*) FROM vouch_entries") == 11);
    fill(12, 26);
    CHECK(log() > limit);
    reader.execute("COMMIT");
    fill(26, 29);
    CHECK(log() <= limit);
}

namespace {

/// Lets another connection commit when this one begins certain statements, each once.
class between_statements {
  public:
    using sql = vouch::sqlite::detail::sql;

    between_statements(sqlite3* db, std::vector<std::pair<sql, std::function<void()>>> what) {
        for (auto& [which, commit] : what) {
            left_.emplace_back(vouch::sqlite::detail::text_of(which, "vouch_"), std::move(commit));
        }
        sqlite3_trace_v2(db, SQLITE_TRACE_STMT, &begins, this);
    }

    /// Those that never came.
    [[nodiscard]] std::size_t left() const noexcept { return left_.size(); }

  private:
    static int begins(unsigned, void* self, void* statement, void*) {
        auto& left = static_cast<between_statements*>(self)->left_;
        const auto found = std::find_if(left.begin(), left.end(), [&](const auto& one) {
            return one.first == sqlite3_sql(static_cast<sqlite3_stmt*>(statement));
        });
        if (found != left.end()) {
            const auto commit = std::move(found->second);
            left.erase(found);
            commit();
        }
        return 0;
    }

    std::vector<std::pair<std::string, std::function<void()>>> left_{};
};

} // namespace

TEST_CASE("sqlite store: a list that takes several statements shows one moment, whatever is committed in between") {
    const folder folder;
    const auto path = folder.fresh_path();
    store_type other(path);
    for (std::uint64_t n = 1; n <= 5; ++n) {
        put_one_in(other, draft_of(n));
    }
    const auto cancel = [&](std::uint64_t n) {
        return [&other, n] {
            REQUIRE(vouch::transact(other, [n](auto& tx) { return tx.cancel(id_of(n), "gone", t0); }) ==
                    vouch::verdict::applied);
        };
    };
    const store_type store(path);
    const opened_connections opened;
    REQUIRE(store.find(id_of(1)));
    REQUIRE(opened.seen().size() == 1); // the one that reads
    using sql = between_statements::sql;
    const between_statements hooked(opened.seen().front(), {{sql::list_far, cancel(2)}, {sql::at, cancel(3)}});
    const auto states = [&] {
        std::vector<std::pair<std::uint64_t, state>> out;
        for (const auto& e : store.list(vouch::query::live("q"))) {
            out.emplace_back(e.id.low, e.state);
        }
        return out;
    };
    const auto during = states();
    CHECK(hooked.left() == 0);
    CHECK(during ==
          std::vector<std::pair<std::uint64_t, state>>{
              {1, state::pending}, {2, state::pending}, {3, state::pending}, {4, state::pending}, {5, state::pending}});
    CHECK(states().size() == 3);
}

} // namespace sqlite_connections_test
