// SPDX-License-Identifier: MIT
// What an operator or a caller gets wrong, on a real server: one clear sentence each, and nothing is written.
#include <array>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <vector>

#include <dlfcn.h>
#include <libpq-fe.h>

#include <vouch/postgres.hpp>

#include "catch.hpp"
#include "postgres/server.hpp"
#include "unit/support.hpp"

namespace postgres_refusals_test {

using namespace support;
using namespace std::chrono_literals;
using postgres_test::application;
using postgres_test::conninfo;
using postgres_test::expect_sentence;
using vouch::error_kind;
namespace postgres = vouch::postgres;

namespace {

/// The prefixes of this file, so that a test can count what is there.
[[nodiscard]] std::string fresh_prefix() {
    static int last = 0;
    return "refusal" + std::to_string(++last) + ".";
}

/// What the server's version seems to be; 0: what it is. There is no server here that is old enough.
int pretended_version = 0;

std::optional<vouch::error> opening(const std::string& to, const postgres::options& how) {
    return error_of([&] { const postgres::store store(to, how); });
}

[[nodiscard]] bool has_schema(const application& app, const std::string& prefix) {
    return app.number("SELECT count(*) FROM pg_namespace WHERE nspname = '" + prefix.substr(0, prefix.size() - 1) +
                      "'") == 1;
}

/// Makes the server ask this role for its password.
void ask_for_password(const application& app, const std::string& role) {
    const auto path = std::string(std::getenv("VOUCH_POSTGRES_FOLDER")) + "/data/pg_hba.conf";
    std::ifstream in(path);
    const std::string before{std::istreambuf_iterator<char>(in), {}};
    std::ofstream(path) << "local all " << role << " scram-sha-256\n" << before; // the first line that fits counts
    app.execute("SELECT pg_reload_conf()");
    // The server reads the file a moment later; until then it lets the role in without a password.
    for (bool is_asked = false; !is_asked;) {
        const std::unique_ptr<PGconn, void (*)(PGconn*)> c(PQconnectdb((conninfo() + " user=" + role).c_str()),
                                                           &PQfinish);
        is_asked = PQstatus(c.get()) != CONNECTION_OK;
    }
}

} // namespace

/// In the place of libpq's, which it calls.
extern "C" int PQserverVersion(const PGconn* c) {
    static const auto real = reinterpret_cast<int (*)(const PGconn*)>(dlsym(RTLD_NEXT, "PQserverVersion"));
    return pretended_version != 0 ? pretended_version : real(c);
}

TEST_CASE("postgres refusals: a wrong password, and none") {
    const application app;
    app.execute("CREATE ROLE guarded SUPERUSER LOGIN PASSWORD 'right'");
    ask_for_password(app, "guarded");
    const auto prefix = fresh_prefix();
    const auto to = conninfo() + " user=guarded";
    expect_sentence(opening(to + " password=hunter2", {.prefix = prefix}), error_kind::invalid_argument,
                    "the password is wrong", "28P01");
    expect_sentence(opening(to, {.prefix = prefix}), error_kind::invalid_argument, "asks for a password", "");
    CHECK_FALSE(has_schema(app, prefix));
    CHECK_FALSE(opening(to + " password=right", {.prefix = prefix}));
}

TEST_CASE("postgres refusals: a statement that runs out of time is busy, and rolls back") {
    const application app;
    const auto prefix = fresh_prefix();
    postgres::store store(conninfo() + " options='-c statement_timeout=50ms'", {.prefix = prefix});
    vouch::enqueue(store, std::array{draft_of(1)}, t0);
    auto first = store.begin();
    std::ignore = first.nudge(id_of(1), t0);
    auto second = store.begin();
    std::ignore = second.enqueue(std::array{draft_of(2)}, t0);
    expect_sentence(error_of([&] { std::ignore = second.nudge(id_of(1), t0); }), error_kind::busy, "ran out of time",
                    "57014");
    CHECK(kind_of([&] { second.commit(); }) == error_kind::misuse);
    CHECK_FALSE(store.find(id_of(2)));
    first.commit();
}

TEST_CASE("postgres refusals: a transaction that is idle for too long is ended, and stores nothing") {
    postgres::store store(conninfo() + " options='-c idle_in_transaction_session_timeout=30ms'",
                          {.prefix = fresh_prefix()});
    auto tx = store.begin();
    std::ignore = tx.enqueue(std::array{draft_of(1)}, t0);
    std::this_thread::sleep_for(200ms);
    const auto e = error_of([&] { tx.commit(); });
    REQUIRE(e);
    CHECK(e->kind() == error_kind::io);
    CHECK_FALSE(e->is_in_doubt());
    CHECK_FALSE(store.find(id_of(1)));
    CHECK(vouch::enqueue(store, std::array{draft_of(1)}, t0).front().what == vouch::receipt::kind::inserted);
}

TEST_CASE("postgres refusals: a role without connections left is busy, and what is stored stays") {
    const application app;
    const auto prefix = fresh_prefix();
    app.execute("CREATE ROLE few LOGIN CONNECTION LIMIT 2; GRANT CREATE ON DATABASE postgres TO few");
    const auto to = conninfo() + " user=few";
    postgres::store store(to, {.prefix = prefix, .connect_limit = 100ms});
    vouch::enqueue(store, std::array{draft_of(1)}, t0);
    std::vector<postgres::transaction> open;
    open.push_back(store.begin());
    open.push_back(store.begin());
    expect_sentence(error_of([&] { std::ignore = store.begin(); }), error_kind::busy, "too many connections", "53300");
    expect_sentence(opening(to, {.prefix = prefix}), error_kind::busy, "too many connections", "53300");
    open.clear();
    CHECK(store.find(id_of(1)));
    CHECK(vouch::enqueue(store, std::array{draft_of(2)}, t0).front().what == vouch::receipt::kind::inserted);
}

TEST_CASE("postgres refusals: a role that may read but not write") {
    const application app;
    const auto prefix = fresh_prefix();
    postgres::store store(conninfo(), {.prefix = prefix});
    vouch::enqueue(store, std::array{draft_of(1)}, t0);
    const auto schema = prefix.substr(0, prefix.size() - 1);
    app.execute("CREATE ROLE looks LOGIN; GRANT USAGE ON SCHEMA " + schema +
                " TO looks; GRANT SELECT ON ALL TABLES IN SCHEMA " + schema + " TO looks");
    postgres::store reader(conninfo() + " user=looks", {.prefix = prefix, .create = false});
    CHECK(reader.find(id_of(1)));
    expect_sentence(error_of([&] { vouch::enqueue(reader, std::array{draft_of(2)}, t0); }), error_kind::read_only,
                    "the role lacks a permission", "42501");
    CHECK_FALSE(store.find(id_of(2)));
}

TEST_CASE("postgres refusals: a server that is too old") {
    const application app;
    const auto prefix = fresh_prefix();
    pretended_version = 110022;
    const auto e = opening(conninfo(), {.prefix = prefix});
    pretended_version = 120000;
    const auto oldest = opening(conninfo(), {.prefix = fresh_prefix()});
    pretended_version = 0;
    expect_sentence(e, error_kind::unsupported, "has version 11; the store needs PostgreSQL 12 or newer", "");
    CHECK_FALSE(has_schema(app, prefix));
    CHECK_FALSE(oldest);
}

TEST_CASE("postgres refusals: names that are not UTF-8, and texts that the server cannot store") {
    const auto prefix = fresh_prefix();
    postgres::store store(conninfo(), {.prefix = prefix});
    const std::string bad = "\xff\xfe";
    auto tx = store.begin();
    const auto refused = [&](auto member) {
        auto d = draft_of(1);
        d.*member = bad;
        const auto e = error_of([&] { std::ignore = tx.enqueue(std::array{d}, t0); });
        REQUIRE(e);
        CHECK(e->kind() == error_kind::invalid_argument);
        CHECK(std::string(e->what()).find("UTF-8") != std::string::npos);
        CHECK(std::string(e->what()).find(bad) == std::string::npos);
    };
    refused(&vouch::draft::queue);
    refused(&vouch::draft::topic);
    refused(&vouch::draft::key);
    refused(&vouch::draft::group);
    refused(&vouch::draft::lane);
    auto d = draft_of(1);
    d.payload = bad + std::string(1, '\0');                                              // bytes are not text
    CHECK(tx.enqueue(std::array{d}, t0).front().what == vouch::receipt::kind::inserted); // and the transaction is open
    tx.commit();
    CHECK(store.find(id_of(1))->payload == d.payload);
}

} // namespace postgres_refusals_test
