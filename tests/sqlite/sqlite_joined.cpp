// SPDX-License-Identifier: MIT
// Entries inside the application's own transaction: both are there, or neither.
#include <array>
#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>

#include <vouch/sqlite.hpp>

#include "catch.hpp"
#include "sqlite/application.hpp"
#include "sqlite/folder.hpp"
#include "unit/support.hpp"

namespace sqlite_joined_test {

using namespace support;
using sqlite_test::application;
using sqlite_test::folder;
using vouch::error_kind;
using vouch::sqlite::joined;
using kind = vouch::receipt::kind;

static_assert(vouch::writer<joined>);
static_assert(!vouch::transaction<joined>, "it must not be able to commit");

namespace {

/// An application with orders, in WAL mode, and the store's tables beside them.
struct shop {
    folder files{};
    std::string path = files.fresh_path();
    vouch::sqlite::store store{path};
    application app{path};
    joined outbox{app.connection()};

    shop() { app.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY)"); }

    kind put(std::uint64_t n, std::string topic = "t") {
        auto d = draft_of(n);
        d.topic = std::move(topic);
        return outbox.enqueue(std::span(&d, 1), t0).front().what;
    }
    [[nodiscard]] auto orders() const { return app.number("SELECT count(*) FROM orders"); }
    [[nodiscard]] auto entries() const { return store.counts("q").total(); }
};

} // namespace

TEST_CASE("joined: an order and its entry are committed together") {
    shop s;
    s.app.execute("BEGIN IMMEDIATE; INSERT INTO orders VALUES (1)");
    CHECK(s.put(1) == kind::inserted);
    CHECK(s.entries() == 0);
    CHECK(s.outbox.find(id_of(1)));
    s.app.execute("COMMIT");
    CHECK(s.orders() == 1);
    CHECK(s.entries() == 1);
}

TEST_CASE("joined: a rollback takes both back, and one object serves many transactions") {
    shop s;
    for (std::uint64_t n = 1; n <= 3; ++n) {
        s.app.execute("BEGIN IMMEDIATE; INSERT INTO orders VALUES (1)");
        CHECK(s.put(1) == kind::inserted);
        s.app.execute("ROLLBACK");
        CHECK(s.orders() == 0);
        CHECK(s.entries() == 0);
    }
}

TEST_CASE("joined: sequences go on from what others have committed in between") {
    shop s;
    for (std::uint64_t n = 1; n <= 6; n += 2) {
        s.app.execute("BEGIN");
        CHECK(s.put(n) == kind::inserted);
        s.app.execute("COMMIT");
        const auto d = draft_of(n + 1);
        CHECK(vouch::enqueue(s.store, std::span(&d, 1), t0).front().what == kind::inserted);
        CHECK(s.store.find(id_of(n))->sequence < s.store.find(id_of(n + 1))->sequence);
    }
}

TEST_CASE("joined: every operation of a writer works inside the application's transaction") {
    shop s;
    s.app.execute("BEGIN");
    CHECK(s.put(1) == kind::inserted);
    CHECK(s.put(2) == kind::inserted);
    const auto claimed = s.outbox.claim(request(t0, {.limit = 1}));
    REQUIRE(numbers(claimed) == list{1});
    const auto ticket = ticket_of(claimed.front());
    CHECK(s.outbox.extend(std::span(&ticket, 1), t0, 1h).front() == vouch::verdict::applied);
    CHECK(s.outbox.nudge(id_of(1), t0) == vouch::verdict::applied);
    CHECK(settle_in(s.outbox, ticket, vouch::succeed{"r"}, t0).verdict == vouch::verdict::applied);
    CHECK(s.outbox.cancel(id_of(2), "no", t0) == vouch::verdict::applied);
    CHECK(vouch::requeue(s.outbox, {.dead = id_of(2), .successor = id_of(3), .now = t0}).what == kind::inserted);
    CHECK(s.outbox.list(vouch::query::all("q")).size() == 3);
    CHECK(s.outbox.counts("q").total() == 3);
    CHECK(s.outbox.next_due("q") == t0);
    CHECK(s.outbox.purge({.queue = "q", .before = t0 + tick}) == 1);
    s.app.execute("COMMIT");
    CHECK(s.entries() == 2);
}

TEST_CASE("joined: without an open transaction every call is misuse and writes nothing") {
    shop s;
    const auto refused = error_of([&] { s.put(1); });
    REQUIRE(refused);
    CHECK(refused->kind() == error_kind::misuse);
    CHECK(kind_of([&] { std::ignore = s.outbox.find(id_of(1)); }) == error_kind::misuse);
    CHECK(s.entries() == 0);
    s.app.execute("BEGIN");
    CHECK(s.put(1) == kind::inserted);
    s.app.execute("COMMIT");
    CHECK(kind_of([&] { s.put(2); }) == error_kind::misuse);
    CHECK(s.entries() == 1);
}

TEST_CASE("joined: a call that fails is taken back alone; what came before it stays") {
    shop s;
    s.app.execute("CREATE TRIGGER trouble BEFORE INSERT ON vouch_entries WHEN new.topic = 'boom'"
                  " BEGIN SELECT raise(ABORT, 'no'); END");
    s.app.execute("BEGIN; INSERT INTO orders VALUES (1)");
    CHECK(s.put(1) == kind::inserted);
    auto fine = draft_of(2);
    auto bad = draft_of(3);
    bad.topic = "boom";
    CHECK(kind_of([&] { s.outbox.enqueue(std::array{fine, bad}, t0); }) == error_kind::corrupt);
    CHECK_FALSE(s.outbox.find(id_of(2)));
    CHECK(s.put(4) == kind::inserted);
    s.app.execute("COMMIT");
    CHECK(s.orders() == 1);
    CHECK(numbers(s.store.list(vouch::query::all("q"))) == list{1, 4});
}

TEST_CASE("joined: an invalid draft is refused before anything is written") {
    shop s;
    s.app.execute("BEGIN");
    CHECK(kind_of([&] {
              s.outbox.enqueue(std::array{draft_of(1), draft_of(2, "")}, t0);
          }) == error_kind::invalid_argument);
    s.app.execute("COMMIT");
    CHECK(s.entries() == 0);
}

TEST_CASE("joined: savepoints of the caller take entries back, or keep them") {
    shop s;
    s.app.execute("SAVEPOINT outer_one"); // opens a transaction, too
    CHECK(s.put(1) == kind::inserted);
    s.app.execute("SAVEPOINT inner_one; INSERT INTO orders VALUES (1)");
    CHECK(s.put(2) == kind::inserted);
    s.app.execute("ROLLBACK TO inner_one; RELEASE inner_one; SAVEPOINT vouch_call");
    CHECK(s.put(3) == kind::inserted);
    s.app.execute("RELEASE vouch_call; RELEASE outer_one");
    CHECK(s.orders() == 0);
    CHECK(numbers(s.store.list(vouch::query::all("q"))) == list{1, 3});
}

TEST_CASE("joined: a transaction that began by reading and was overtaken is a conflict; its repeat gets through") {
    shop s;
    s.app.execute("BEGIN");
    CHECK(s.orders() == 0); // its snapshot begins here
    const auto d = draft_of(9);
    vouch::enqueue(s.store, std::span(&d, 1), t0);
    const auto refused = error_of([&] { s.put(1); });
    REQUIRE(refused);
    CHECK(refused->kind() == error_kind::conflict);
    CHECK(refused->is_transient());
    CHECK(refused->code() == SQLITE_BUSY_SNAPSHOT);
    s.app.execute("ROLLBACK; BEGIN IMMEDIATE");
    CHECK(s.put(1) == kind::inserted);
    s.app.execute("COMMIT");
    CHECK(s.entries() == 2);
}

TEST_CASE("joined: begin on the same thread and file says so at once instead of waiting for ever") {
    shop s;
    s.app.execute("BEGIN IMMEDIATE");
    CHECK(s.put(1) == kind::inserted);
    const auto before = std::chrono::steady_clock::now();
    const auto refused = error_of([&] { std::ignore = s.store.begin(); });
    CHECK(std::chrono::steady_clock::now() - before < 1s);
    REQUIRE(refused);
    CHECK(refused->kind() == error_kind::misuse);
    CHECK(std::string(refused->what()).find("joined") != std::string::npos);

    // A runner is no exception.
    const vouch::outbox work(s.store);
    vouch::router router(work);
    router.on("t", [](vouch::delivery&) {});
    vouch::runner runner(work, router, {.queue = "q"});
    CHECK(kind_of([&] { runner.run_once(); }) == error_kind::misuse);

    s.app.execute("COMMIT");
    CHECK(runner.run_once().succeeded == 1);
}

TEST_CASE("joined: on another thread begin waits until the application has committed") {
    shop s;
    s.app.execute("BEGIN IMMEDIATE");
    CHECK(s.put(1) == kind::inserted);
    std::thread other([store = s.store]() mutable {
        const auto d = draft_of(2);
        vouch::enqueue(store, std::span(&d, 1), t0);
    });
    std::this_thread::sleep_for(30ms);
    s.app.execute("COMMIT");
    other.join();
    CHECK(s.entries() == 2);
}

TEST_CASE("joined: its end changes nothing, and the connection can be closed afterwards") {
    const folder files;
    application app(files.fresh_path());
    vouch::sqlite::migrate(app.connection());
    app.execute("BEGIN");
    {
        joined first(app.connection());
        joined outbox(std::move(first));
        const auto d = draft_of(1);
        CHECK(outbox.enqueue(std::span(&d, 1), t0).front().what == kind::inserted);
    }
    CHECK(sqlite3_get_autocommit(app.connection()) == 0);
    app.execute("COMMIT");
    CHECK(app.number("SELECT count(*) FROM vouch_entries") == 1);
    CHECK(app.close());
}

TEST_CASE("joined: without its tables it says what to do") {
    const folder files;
    application app(files.fresh_path());
    app.execute("CREATE TABLE orders (id)");
    const auto refused = error_of([&] { joined(app.connection()); });
    REQUIRE(refused);
    CHECK(refused->kind() == error_kind::unsupported);
    CHECK(std::string(refused->what()).find("migrate") != std::string::npos);
    CHECK(kind_of([&] { joined(app.connection(), "x; DROP TABLE orders"); }) == error_kind::invalid_argument);
    CHECK(app.number("SELECT count(*) FROM sqlite_master") == 1);
}

} // namespace sqlite_joined_test
