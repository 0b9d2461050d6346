// SPDX-License-Identifier: MIT
// Connections that die, idle or in use, and servers that restart.
#include <array>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <tuple>
#include <utility>

#include <signal.h>

#include <vouch/postgres.hpp>

#include "catch.hpp"
#include "postgres/programs/cutting_proxy.hpp"
#include "postgres/server.hpp"
#include "unit/support.hpp"

namespace postgres_connections_test {

using namespace support;
using namespace std::chrono_literals;
using postgres_test::application;
using postgres_test::conninfo;
using postgres_test::fresh_prefix;
using vouch::error_kind;
namespace postgres = vouch::postgres;

namespace {

/// A store whose connections can be told from others.
struct named_store {
    explicit named_store(std::chrono::milliseconds connect_limit = 10s)
        : store(conninfo() + " application_name=" + name, {.prefix = prefix, .connect_limit = connect_limit}) {}

    std::string prefix = fresh_prefix();
    std::string name = "app_" + prefix.substr(0, prefix.size() - 1);
    postgres::store store;

    [[nodiscard]] std::string of_store() const {
        return "FROM pg_stat_activity WHERE application_name = '" + name + "'";
    }
    [[nodiscard]] auto connections(const application& app) const { return app.number("SELECT count(*) " + of_store()); }

    /// Ends the server's processes of this store, and waits until they have ended.
    void terminate(const application& app) const {
        app.execute("SELECT pg_terminate_backend(pid) " + of_store());
        while (connections(app) != 0) {
            std::this_thread::sleep_for(1ms);
        }
    }
};

} // namespace

TEST_CASE("postgres connections: an idle one that has died is replaced before it is used") {
    const application app;
    named_store s;
    vouch::enqueue(s.store, std::array{draft_of(1)}, t0);
    REQUIRE(s.connections(app) >= 1);
    s.terminate(app);
    CHECK(s.store.find(id_of(1)));
    s.terminate(app);
    CHECK(vouch::enqueue(s.store, std::array{draft_of(2)}, t0).front().what == vouch::receipt::kind::inserted);
}

TEST_CASE(
    "postgres connections: one that dies in a transaction is an io error, nothing is stored, and the next one works") {
    const application app;
    named_store s;
    auto tx = s.store.begin();
    std::ignore = tx.enqueue(std::array{draft_of(1)}, t0);
    s.terminate(app);
    const auto e = error_of([&] { std::ignore = tx.nudge(id_of(1), t0); });
    REQUIRE(e);
    CHECK(e->kind() == error_kind::io);
    CHECK_FALSE(e->is_in_doubt());
    CHECK(kind_of([&] { tx.commit(); }) == error_kind::misuse);
    CHECK_FALSE(s.store.find(id_of(1)));
    CHECK(vouch::enqueue(s.store, std::array{draft_of(1)}, t0).front().what == vouch::receipt::kind::inserted);
}

TEST_CASE("postgres connections: a commit on a connection that has died is known not to have happened") {
    const application app;
    named_store s;
    auto tx = s.store.begin();
    std::ignore = tx.enqueue(std::array{draft_of(1)}, t0);
    s.terminate(app);
    const auto e = error_of([&] { tx.commit(); });
    REQUIRE(e);
    CHECK(e->kind() == error_kind::io);
    CHECK_FALSE(e->is_in_doubt());
    CHECK_FALSE(s.store.find(id_of(1)));
}

TEST_CASE("postgres connections: transactions share the pool's, and return them") {
    const application app;
    named_store s;
    for (int i = 0; i < 20; ++i) {
        auto tx = s.store.begin();
        std::ignore = tx.next_due("q");
    }
    CHECK(s.connections(app) == 1);
    const auto copy = s.store;
    CHECK(copy.counts("q").total() == 0);
    CHECK(s.connections(app) == 1);
}

TEST_CASE("postgres connections: when all are in use, begin waits for one and then is busy") {
    named_store s;
    postgres::store store(conninfo(), {.prefix = s.prefix, .connections_max = 1, .busy_limit = 30ms});
    std::optional tx(store.begin());
    std::optional<error_kind> other;
    std::jthread([&] { other = kind_of([&] { std::ignore = store.begin(); }); }).join();
    CHECK(other == error_kind::busy);
    tx.reset();
    std::jthread([&] { other = kind_of([&] { std::ignore = store.begin(); }); }).join();
    CHECK_FALSE(other);
}

TEST_CASE("postgres connections: a transaction that is rolled back leaves its connection clean") {
    named_store s;
    {
        auto tx = s.store.begin();
        std::ignore = tx.enqueue(std::array{draft_of(1)}, t0);
    }
    CHECK_FALSE(s.store.find(id_of(1)));
    {
        auto tx = s.store.begin();
        CHECK(tx.claim({.queue = "q", .limit = 0, .now = t0}).empty()); // begun, and nothing was sent
    }
    CHECK(vouch::enqueue(s.store, std::array{draft_of(1)}, t0).front().what == vouch::receipt::kind::inserted);
}

TEST_CASE("postgres connections: without prepared statements nothing stays on the connection") {
    const application app;
    const auto prefix = fresh_prefix();
    postgres::store store(conninfo(), {.prefix = prefix, .prepare = false});
    auto d = draft_of(1);
    d.lane = "lane";
    d.group = "group";
    vouch::enqueue(store, std::array{d}, t0);
    const auto claimed = vouch::claim(store, {.queue = "q", .now = t0});
    REQUIRE(claimed.size() == 1);
    auto tx = store.begin();
    const std::array settles{vouch::settle{ticket_of(claimed[0]), vouch::succeed{}}};
    const auto answer = tx.settle(settles, t0).front();
    CHECK(answer.verdict == vouch::verdict::applied);
    CHECK(answer.group_completed);
    PGresult* const found =
        PQexec(tx.connection(), "SELECT (SELECT count(*) FROM pg_prepared_statements) + "
                                "(SELECT count(*) FROM pg_settings WHERE source = 'session' "
                                "AND name NOT IN ('client_encoding', 'application_name', "
                                "'lock_timeout', 'transaction_isolation', 'transaction_read_only', 'jit') "
                                "AND name NOT LIKE 'enable_%')"); // which end with the transaction
    CHECK(std::string(PQgetvalue(found, 0, 0)) == "0");
    PQclear(found);
    tx.commit();
}

TEST_CASE("postgres connections: a host that is silent does not keep the next one from being tried") {
    const std::string folder = std::getenv("VOUCH_POSTGRES_FOLDER");
    const auto silent = fault_program::listening_in(folder + "/silent");
    const auto prefix = fresh_prefix();
    const auto to = "dbname=postgres user=postgres host=" + folder + "/silent," + folder;
    postgres::store store(to, {.prefix = prefix, .connect_limit = 4s});
    CHECK(vouch::enqueue(store, std::array{draft_of(1)}, t0).front().what == vouch::receipt::kind::inserted);
    const auto e = error_of(
        [&] { const postgres::store alone("host=" + folder + "/silent", {.prefix = prefix, .connect_limit = 100ms}); });
    REQUIRE(e);
    CHECK(e->kind() == error_kind::io);
    CHECK(std::string(e->what()).find("did not answer within connect_limit") != std::string::npos);
}

TEST_CASE("postgres connections: lists of hosts, addresses and ports are tried one by one") {
    const auto texts = [](const std::string& to) {
        std::string out;
        for (const auto& one : postgres::detail::endpoints_of(to)) {
            out += one.host + '/' + one.address + '/' + one.port + ' ';
        }
        return out;
    };
    CHECK(texts("host=a") == "// ");
    CHECK(texts("host=a,b") == "a//5432 b//5432 ");
    CHECK(texts("host=a,b port=1") == "a//1 b//1 ");
    CHECK(texts("host=a,b port=1,2") == "a//1 b//2 ");
    CHECK(texts("postgresql://a:1,b:2/db") == "a//1 b//2 ");
    CHECK(texts("hostaddr=1.1.1.1,2.2.2.2 host=a,b") == "a/1.1.1.1/5432 b/2.2.2.2/5432 ");
    CHECK(texts("host=a,b port=1,2,3") == "// "); // libpq says what is wrong
    CHECK(texts("host=a,,b") == "// ");
    CHECK(texts("host=a,b service=x") == "// ");
}

TEST_CASE("postgres connections: a wait and the end of a store do not wait for a silent server") {
    const std::string folder = std::getenv("VOUCH_POSTGRES_FOLDER");
    const auto silent = fault_program::listening_in(folder + "/mute");
    const auto prefix = fresh_prefix();
    const auto done = in_time([=] {
        const postgres::store store(
            conninfo(), {.prefix = prefix, .connect_limit = 1h, .listen_conninfo = "host=" + folder + "/mute"});
        std::stop_source stop;
        store.wait("q", 0, 10ms, stop.get_token());
        stop.request_stop();
        store.wait("q", 0, 1h, stop.get_token());
        return true;
    });
    CHECK(done);
}

TEST_CASE("postgres connections: the end of a store does not wait for a server process that is silent") {
    const application app;
    auto s = std::make_unique<named_store>();
    std::ignore = s->store.wakes("q");
    const auto process = static_cast<int>(app.number("SELECT pid " + s->of_store() + " AND query LIKE 'INSERT%'"));
    REQUIRE(kill(process, SIGSTOP) == 0);
    const auto done = in_time([all = std::move(s)]() mutable {
        all.reset();
        return true;
    });
    kill(process, SIGCONT);
    CHECK(done);
}

// The last ones, because other tests lose their connections with them.

TEST_CASE("postgres connections: a server that is restarted is found again, with everything that was committed") {
    named_store s(200ms);
    vouch::enqueue(s.store, std::array{draft_of(1)}, t0);
    for (const std::string how : {"fast", "immediate"}) {
        CAPTURE(how);
        postgres_test::cluster("stop", how);
        const auto e = error_of([&] { std::ignore = s.store.find(id_of(1)); });
        REQUIRE(e);
        CHECK(e->kind() == error_kind::io);
        CHECK(e->is_transient());
        postgres_test::cluster("start");
        CHECK(s.store.find(id_of(1)));
        auto tx = s.store.begin();
        CHECK(tx.nudge(id_of(1), t0) == vouch::verdict::repeated);
        tx.commit();
    }
}

TEST_CASE("postgres connections: a server that is restarted meanwhile is waited for") {
    named_store s(60s);
    vouch::enqueue(s.store, std::array{draft_of(1)}, t0);
    postgres_test::cluster("stop", "immediate");
    std::optional<bool> found;
    std::jthread reads([&] { found = s.store.find(id_of(1)).has_value(); });
    std::this_thread::sleep_for(100ms); // to be refused at least once; if it is not, the test is weaker, not wrong
    postgres_test::cluster("start");
    reads.join();
    CHECK(found == true);
}

TEST_CASE("postgres connections: a read-only replica is refused") {
    named_store s(1s);
    vouch::enqueue(s.store, std::array{draft_of(1)}, t0);
    postgres_test::cluster("standby");
    const auto opening = error_of([&] { const postgres::store again(conninfo(), {.prefix = s.prefix}); });
    const auto reading = error_of([&] { std::ignore = s.store.find(id_of(1)); });
    const auto by_libpq = error_of(
        [&] { const postgres::store again(conninfo() + " target_session_attrs=read-write", {.prefix = s.prefix}); });
    postgres_test::cluster("promote");
    REQUIRE(by_libpq);
    CHECK(by_libpq->kind() == error_kind::read_only);
    for (const auto& e : {opening, reading}) {
        REQUIRE(e);
        CHECK(e->kind() == error_kind::read_only);
        CHECK(std::string(e->what()).find("read-only replica") != std::string::npos);
    }
    CHECK(s.store.find(id_of(1)));
}

TEST_CASE("postgres connections: a server that is starting up is waited for, within connect_limit") {
    const auto prefix = fresh_prefix();
    postgres_test::cluster("standby", "hot_standby=off"); // it answers as one that is starting up
    const auto e =
        error_of([&] { const postgres::store store(conninfo(), {.prefix = prefix, .connect_limit = 100ms}); });
    REQUIRE(e);
    CHECK(e->kind() == error_kind::busy);
    CHECK(e->text_code() == "57P03");
    std::optional<vouch::error> waited;
    std::jthread opens([&] {
        waited = error_of([&] { const postgres::store store(conninfo(), {.prefix = prefix, .connect_limit = 60s}); });
    });
    std::this_thread::sleep_for(100ms); // to be refused at least once; if it is not, the test is weaker, not wrong
    postgres_test::cluster("promote");
    opens.join();
    CHECK_FALSE(waited);
}

} // namespace postgres_connections_test
