// SPDX-License-Identifier: MIT
// Every SQLSTATE that the store knows becomes the right kind of error, and each mistake of an operator one clear sentence.
#include <array>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>

#include <libpq-fe.h>

#include <vouch/postgres.hpp>

#include "catch.hpp"
#include "postgres/server.hpp"
#include "unit/support.hpp"

namespace postgres_errors_test {

using namespace support;
using namespace std::chrono_literals;
using postgres_test::application;
using postgres_test::conninfo;
using postgres_test::expect_sentence;
using postgres_test::fresh_prefix;
using vouch::error_kind;
namespace postgres = vouch::postgres;

namespace {

struct meaning {
    std::string_view code;
    error_kind kind;
};

// Written a second time, from PostgreSQL's list of error codes.
constexpr std::array meanings{
    meaning{"40001", error_kind::conflict},
    meaning{"40P01", error_kind::conflict},
    meaning{"23505", error_kind::conflict},
    meaning{"40002", error_kind::conflict},
    meaning{"55P03", error_kind::busy},
    meaning{"57014", error_kind::busy},
    meaning{"57P03", error_kind::busy},
    meaning{"53300", error_kind::busy},
    meaning{"53100", error_kind::full},
    meaning{"53200", error_kind::full},
    meaning{"25006", error_kind::read_only},
    meaning{"42501", error_kind::read_only},
    meaning{"28P01", error_kind::invalid_argument},
    meaning{"28000", error_kind::invalid_argument},
    meaning{"3D000", error_kind::invalid_argument},
    meaning{"0A000", error_kind::unsupported},
    meaning{"54000", error_kind::unsupported},
    meaning{"25P02", error_kind::misuse},
    meaning{"25P01", error_kind::misuse},
    meaning{"3B001", error_kind::misuse},
    meaning{"2D000", error_kind::misuse},
    meaning{"25P03", error_kind::io},
    meaning{"42P01", error_kind::corrupt},
    meaning{"42703", error_kind::corrupt},
    meaning{"3F000", error_kind::corrupt},
    meaning{"22003", error_kind::corrupt},
    meaning{"23502", error_kind::corrupt},
    meaning{"XX001", error_kind::corrupt},
    meaning{"XX002", error_kind::corrupt},
    meaning{"08006", error_kind::io},
    meaning{"57P01", error_kind::io},
    meaning{"57P02", error_kind::io},
    meaning{"58030", error_kind::io},
    meaning{"XX000", error_kind::io},
    meaning{"", error_kind::io},
};

/// The error of the store with this conninfo and these options.
std::optional<vouch::error> opening(const std::string& to, const postgres::options& how = {}) {
    return error_of([&] { const postgres::store store(to, how); });
}

} // namespace

TEST_CASE("postgres errors: every SQLSTATE has one kind, and keeps its code") {
    for (const auto& one : meanings) {
        CAPTURE(one.code);
        const auto e = postgres::detail::error_of(one.code, "claim");
        CHECK(e.kind() == one.kind);
        CHECK(e.text_code() == one.code);
        CHECK_FALSE(e.is_in_doubt());
    }
    // Every row of the table is looked at above, by its code or by a code of its class.
    for (const auto& row : postgres::detail::sqlstates) {
        CAPTURE(row.code);
        bool is_covered = false;
        for (const auto& one : meanings) {
            const auto found = postgres::detail::meaning_of(one.code);
            is_covered = is_covered || found.text == row.text;
        }
        CHECK(is_covered);
    }
}

TEST_CASE("postgres errors: a conninfo that cannot be read") {
    expect_sentence(opening("host"), error_kind::invalid_argument, "conninfo is not valid");
    expect_sentence(opening("password=hunter2 x"), error_kind::invalid_argument, "conninfo is not valid");
}

TEST_CASE("postgres errors: a server that is not there") {
    expect_sentence(opening("host=/nowhere password=hunter2"), error_kind::io, "no server answers at host /nowhere");
}

TEST_CASE("postgres errors: a database and a role that do not exist") {
    expect_sentence(opening(conninfo() + " dbname=absent"), error_kind::invalid_argument, "the database does not exist",
                    "3D000");
    expect_sentence(opening(conninfo() + " user=absent password=hunter2"), error_kind::invalid_argument,
                    "does not let the role in", "28000");
}

TEST_CASE("postgres errors: a role without permissions creates and reads nothing") {
    const application app;
    app.execute("DROP ROLE IF EXISTS powerless; CREATE ROLE powerless LOGIN");
    const auto prefix = fresh_prefix();
    expect_sentence(opening(conninfo() + " user=powerless", {.prefix = prefix}), error_kind::read_only,
                    "the role lacks a permission", "42501");
    const postgres::store store(conninfo(), {.prefix = prefix});
    expect_sentence(opening(conninfo() + " user=powerless", {.prefix = prefix}), error_kind::read_only,
                    "the role lacks a permission", "42501");
}

TEST_CASE("postgres errors: a database in another encoding is refused") {
    const application app;
    app.execute("DROP DATABASE IF EXISTS latin");
    app.execute("CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'");
    expect_sentence(opening(conninfo() + " dbname=latin"), error_kind::unsupported, "is not encoded in UTF8");
    app.execute("DROP DATABASE latin");
}

TEST_CASE("postgres errors: tables that are missing, older or newer are named, and left alone") {
    const application app;
    const auto prefix = fresh_prefix();
    expect_sentence(opening(conninfo(), {.prefix = prefix, .create = false}), error_kind::unsupported,
                    "there are no tables with the prefix " + prefix);
    postgres::migrate(app.connection(), prefix);
    app.execute("UPDATE " + prefix + "meta SET value = 99");
    for (const bool create : {true, false}) {
        expect_sentence(opening(conninfo(), {.prefix = prefix, .create = create}), error_kind::unsupported,
                        "schema version 99");
    }
    CHECK(kind_of([&] { const postgres::joined writer(app.connection(), prefix); }) == error_kind::unsupported);
    CHECK(app.number("SELECT value FROM " + prefix + "meta") == 99);
    app.execute("UPDATE " + prefix + "meta SET value = 0");
    expect_sentence(opening(conninfo(), {.prefix = prefix, .create = false}), error_kind::unsupported,
                    "call vouch::postgres::migrate");
}

TEST_CASE("postgres errors: a prefix is letters, digits and underscores, after a schema or not") {
    for (const std::string good : {"vouch_", "a", "_", "billing.vouch_", "billing.", "a1.b2"}) {
        CAPTURE(good);
        CHECK_FALSE(error_of([&] { postgres::validate_prefix(good); }));
    }
    for (const std::string bad :
         {"", ".", ".x", "1x", "x.1", "x y", "x\"", "x;", "Vouch_", "a.b.c", "pg_x.", "x-", "x'"}) {
        CAPTURE(bad);
        CHECK(kind_of([&] { postgres::validate_prefix(bad); }) == error_kind::invalid_argument);
        CHECK(kind_of([&] { std::ignore = postgres::schema(bad); }) == error_kind::invalid_argument);
        expect_sentence(opening(conninfo(), {.prefix = bad}), error_kind::invalid_argument, "options: prefix");
    }
    CHECK_FALSE(error_of([&] { postgres::validate_prefix(std::string(63, 's') + '.' + std::string(40, 't')); }));
    CHECK(error_of([&] { postgres::validate_prefix(std::string(64, 's') + '.'); }));
    CHECK(error_of([&] { postgres::validate_prefix(std::string(41, 't')); }));
}

TEST_CASE("postgres errors: options out of range") {
    expect_sentence(opening(conninfo(), {.connections_max = 0}), error_kind::invalid_argument, "connections_max");
    expect_sentence(opening(conninfo(), {.busy_limit = 0ms}), error_kind::invalid_argument, "busy_limit");
    expect_sentence(opening(conninfo(), {.connect_limit = -1ms}), error_kind::invalid_argument, "connect_limit");
}

TEST_CASE("postgres errors: a lock that is not granted in time is busy") {
    const auto prefix = fresh_prefix();
    postgres::store store(conninfo(), {.prefix = prefix, .busy_limit = 50ms});
    vouch::enqueue(store, std::array{draft_of(1)}, t0);
    auto first = store.begin();
    std::ignore = first.nudge(id_of(1), t0);
    auto second = store.begin();
    expect_sentence(error_of([&] { std::ignore = second.nudge(id_of(1), t0); }), error_kind::busy,
                    "a lock was not granted in time", "55P03");
    CHECK(kind_of([&] { second.commit(); }) == error_kind::misuse);
    first.commit();
}

TEST_CASE("postgres errors: two transactions that wait for each other: one is told so, the other succeeds") {
    const auto prefix = fresh_prefix();
    postgres::store store(conninfo() + " options='-c deadlock_timeout=20ms'", {.prefix = prefix});
    vouch::enqueue(store, std::array{draft_of(1), draft_of(2)}, t0);
    auto first = store.begin();
    auto second = store.begin();
    std::ignore = first.nudge(id_of(1), t0);
    std::ignore = second.nudge(id_of(2), t0);
    std::optional<vouch::error> other;
    std::jthread waits([&] {
        other = error_of([&] {
            std::ignore = second.nudge(id_of(1), t0);
            second.commit();
        });
    });
    const auto mine = error_of([&] {
        std::ignore = first.nudge(id_of(2), t0);
        first.commit();
    });
    waits.join();
    REQUIRE(mine.has_value() != other.has_value());
    expect_sentence(mine ? mine : other, error_kind::conflict, "transactions waited for each other", "40P01");
}

TEST_CASE("postgres errors: one thread that holds all connections would wait for itself") {
    postgres::store store(conninfo(), {.prefix = fresh_prefix(), .connections_max = 1});
    auto tx = store.begin();
    std::ignore = tx.next_due("q");
    expect_sentence(error_of([&] { std::ignore = store.begin(); }), error_kind::misuse, "would wait for itself");
    CHECK(store.counts("q").total() == 0); // reads do not wait for transactions
}

TEST_CASE("postgres errors: a damaged table is corrupt, and no message tells a payload") {
    const application app;
    const auto prefix = fresh_prefix();
    postgres::store store(conninfo(), {.prefix = prefix});
    auto d = draft_of(1);
    d.payload = d.key = "hunter2";
    vouch::enqueue(store, std::array{d}, t0);
    app.execute("UPDATE " + prefix + "entries SET state = 9");
    expect_sentence(error_of([&] { std::ignore = store.find(id_of(1)); }), error_kind::corrupt, "no known state");
    app.execute("ALTER TABLE " + prefix + "entries DROP COLUMN payload");
    const postgres::store other(conninfo(), {.prefix = prefix});
    expect_sentence(error_of([&] { std::ignore = other.find(id_of(1)); }), error_kind::corrupt, "column", "42703");
}

} // namespace postgres_errors_test
