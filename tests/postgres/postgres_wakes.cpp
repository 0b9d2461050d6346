// SPDX-License-Identifier: MIT
// Wake-ups between processes. Two conninfos with different application names have nothing in common but the server, as two
// processes have.
#include <array>
#include <chrono>
#include <cstdint>
#include <stop_token>
#include <string>
#include <thread>

#include <vouch/postgres.hpp>

#include "catch.hpp"
#include "postgres/server.hpp"
#include "unit/support.hpp"

namespace postgres_wakes_test {

using namespace support;
using namespace std::chrono_literals;
using postgres_test::application;
using postgres_test::conninfo;
using postgres_test::fresh_prefix;
namespace postgres = vouch::postgres;

namespace {

constexpr auto patience = 20s;

struct two_processes {
    std::string prefix = fresh_prefix();
    std::string listens = conninfo() + " application_name=listens_" + prefix.substr(0, prefix.size() - 1);
    postgres::store mine{listens, {.prefix = prefix}};
    postgres::store theirs{conninfo() + " application_name=writes", {.prefix = prefix}};

    /// Whether a wait for the queue ends because its number has changed.
    [[nodiscard]] bool wakes_up(std::uint64_t seen, const std::string& queue = "q") const {
        return mine.wait(queue, seen, patience, std::stop_token{}) != seen;
    }
    [[nodiscard]] auto listeners(const application& app) const {
        return app.number("SELECT count(*) FROM " + prefix + "listeners");
    }
};

} // namespace

TEST_CASE("postgres wakes: a commit of another process ends a wait") {
    two_processes s;
    const auto seen = s.mine.wakes("q");
    vouch::enqueue(s.theirs, std::array{draft_of(1)}, t0);
    CHECK(s.wakes_up(seen));
}

TEST_CASE("postgres wakes: a commit of the application's own transaction ends a wait") {
    two_processes s;
    const application app;
    postgres::joined writer(app.connection(), s.prefix);
    const auto seen = s.mine.wakes("q");
    app.execute("BEGIN");
    writer.enqueue(std::array{draft_of(1)}, t0);
    app.execute("COMMIT");
    CHECK(s.wakes_up(seen));
}

TEST_CASE("postgres wakes: a commit wakes its own queue only") {
    two_processes s;
    const auto q = s.mine.wakes("q");
    const auto other = s.mine.wakes("other");
    vouch::enqueue(s.theirs, std::array{draft_of(1)}, t0);
    REQUIRE(s.wakes_up(q));
    CHECK(s.mine.wakes("other") == other);
}

TEST_CASE("postgres wakes: NOTIFY is sent only while a process listens") {
    const application app;
    auto prefix = std::string();
    {
        two_processes s;
        prefix = s.prefix;
        CHECK(s.listeners(app) == 0);
        static_cast<void>(s.mine.wakes("q"));
        CHECK(s.listeners(app) == 1);
        const auto copy = s.mine;
        static_cast<void>(copy.wakes("q"));
        CHECK(s.listeners(app) == 1);
    }
    CHECK(app.number("SELECT count(*) FROM " + prefix + "listeners") == 0);
}

TEST_CASE("postgres wakes: a lost connection is replaced, and wakes every queue") {
    const application app;
    two_processes s;
    const auto seen = s.mine.wakes("q");
    app.execute("SELECT pg_terminate_backend(pid) FROM " + s.prefix + "listeners");
    CHECK(s.wakes_up(seen));
    const auto again = s.mine.wakes("q");
    vouch::enqueue(s.theirs, std::array{draft_of(1)}, t0);
    CHECK(s.wakes_up(again));
    CHECK(s.listeners(app) == 1); // the row of the lost one is gone
}

TEST_CASE("postgres wakes: without listen, commits of this process still end a wait, and no connection listens") {
    const application app;
    const auto prefix = fresh_prefix();
    postgres::store store(conninfo(), {.prefix = prefix, .listen = false});
    const auto seen = store.wakes("q");
    vouch::enqueue(store, std::array{draft_of(1)}, t0);
    CHECK(store.wait("q", seen, patience, std::stop_token{}) != seen);
    CHECK(app.number("SELECT count(*) FROM " + prefix + "listeners") == 0);
}

TEST_CASE("postgres wakes: LISTEN can take another way than the store's statements") {
    const application app;
    const auto prefix = fresh_prefix();
    const postgres::store store(
        conninfo(), {.prefix = prefix, .prepare = false, .listen_conninfo = conninfo() + " application_name=direct"});
    static_cast<void>(store.wakes("q"));
    CHECK(app.text("SELECT application_name FROM pg_stat_activity JOIN " + prefix + "listeners USING (pid)") ==
          "direct");
}

TEST_CASE("postgres wakes: a wait ends when a stop is requested") {
    two_processes s;
    std::stop_source stop;
    const auto seen = s.mine.wakes("q");
    std::jthread other([&] { stop.request_stop(); });
    CHECK(s.mine.wait("q", seen, 1h, stop.get_token()) == seen);
}

} // namespace postgres_wakes_test
