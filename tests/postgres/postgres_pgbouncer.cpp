// SPDX-License-Identifier: MIT
// The store through pgbouncer in transaction mode, where a connection may lead to another server process after each commit.
// The suite runs through it as well: `conformance.postgres_pgbouncer`.
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include <libpq-fe.h>
#include <sys/wait.h>

#include <vouch/postgres.hpp>
#include <vouch/worker.hpp>

#include "catch.hpp"
#include "postgres/server.hpp"
#include "unit/support.hpp"

namespace postgres_pgbouncer_test {

using namespace support;
using postgres_test::application;
using postgres_test::conninfo;
using postgres_test::fresh_prefix;
namespace postgres = vouch::postgres;
using kind = vouch::receipt::kind;

namespace {

constexpr auto patience = 20s;

/// Runs `pgbouncer WHAT FOLDER` in front of the server of the tests. Returns its exit code and the line that it prints.
std::pair<int, std::string> run_pgbouncer(const std::string& what) {
    const char* const folder = std::getenv("VOUCH_POSTGRES_FOLDER");
    REQUIRE(folder != nullptr);
    std::FILE* const out = popen((std::string(VOUCH_PGBOUNCER) + ' ' + what + ' ' + folder).c_str(), "r");
    REQUIRE(out != nullptr);
    std::array<char, 500> line{};
    const bool has_line = std::fgets(line.data(), static_cast<int>(line.size()), out) != nullptr;
    const int status = pclose(out);
    std::string text(has_line ? line.data() : "");
    return {WEXITSTATUS(status), text.substr(0, text.find('\n'))};
}

/// A pgbouncer for one test, and a store behind it.
struct bouncer {
    bouncer() : bouncer(run_pgbouncer("start")) {}
    bouncer(const bouncer&) = delete;
    bouncer& operator=(const bouncer&) = delete;
    ~bouncer() { run_pgbouncer("stop"); }

    explicit operator bool() const {
        if (!is_installed) {
            WARN("pgbouncer is not installed, so the store is not tested behind it (Debian and Ubuntu: pgbouncer)");
        }
        return is_installed;
    }
    [[nodiscard]] postgres::store open(bool listen = true) const {
        return postgres::store(to + " application_name=bounced",
                               {.prefix = prefix, .prepare = false, .listen = listen, .listen_conninfo = conninfo()});
    }

    bool is_installed;
    std::string to; ///< conninfo of pgbouncer
    std::string prefix = fresh_prefix();

  private:
    explicit bouncer(const std::pair<int, std::string>& started)
        : is_installed(started.first != 77), to(started.second) {
        CHECK((!is_installed || started.first == 0));
    }
};

} // namespace

TEST_CASE("postgres pgbouncer: transactions of one connection may run in different server processes") {
    const bouncer between;
    if (!between) {
        return;
    }
    // If that were not so, the other tests would show nothing: the store would not notice pgbouncer.
    auto store = between.open();
    std::set<std::string> processes;
    const application one(between.to);
    const application other(between.to);
    processes.insert(one.text("SELECT pg_backend_pid()"));
    other.execute("BEGIN"); // takes the server process that was used last
    processes.insert(one.text("SELECT pg_backend_pid()"));
    other.execute("COMMIT");
    CHECK(processes.size() == 2);
}

TEST_CASE("postgres pgbouncer: nothing of the store stays on a connection") {
    const bouncer between;
    if (!between) {
        return;
    }
    auto store = between.open();
    std::ignore = vouch::enqueue(store, std::array{draft_of(1)}, t0);
    CHECK(vouch::claim(store, request(t0)).size() == 1);
    const application app(between.to);
    CHECK(app.number("SELECT count(*) FROM pg_prepared_statements") == 0);
    CHECK(app.text("SHOW lock_timeout") == "0");
    CHECK(app.text("SHOW enable_seqscan") == "on");
}

TEST_CASE("postgres pgbouncer: a statement waits for a lock no longer than busy_limit") {
    const bouncer between;
    if (!between) {
        return;
    }
    postgres::store store(between.to,
                          {.prefix = between.prefix, .busy_limit = 50ms, .prepare = false, .listen = false});
    std::ignore = vouch::enqueue(store, std::array{draft_of(1)}, t0);
    auto first = store.begin();
    auto second = store.begin();
    CHECK(first.nudge(id_of(1), t0) == vouch::verdict::repeated);
    CHECK(kind_of([&] { std::ignore = second.nudge(id_of(1), t0); }) == vouch::error_kind::busy);
}

TEST_CASE("postgres pgbouncer: an application's transaction and its entry are committed together, or neither") {
    const bouncer between;
    if (!between) {
        return;
    }
    const auto store = between.open();
    const application app(between.to);
    app.execute("CREATE TABLE " + between.prefix + "orders (id bigint PRIMARY KEY)");
    postgres::joined writer(app.connection(), between.prefix);
    for (const std::string end : {"ROLLBACK", "COMMIT"}) {
        app.execute("BEGIN; INSERT INTO " + between.prefix + "orders VALUES (1)");
        CHECK(writer.enqueue(std::array{draft_of(1)}, t0).front().what == kind::inserted);
        app.execute(end);
        const auto expected = end == "COMMIT" ? 1 : 0;
        CHECK(app.number("SELECT count(*) FROM " + between.prefix + "orders") == expected);
        CHECK(store.counts("q").total() == static_cast<std::size_t>(expected));
    }
}

TEST_CASE("postgres pgbouncer: a commit of another process ends a wait, if LISTEN goes directly to the server") {
    const bouncer between;
    if (!between) {
        return;
    }
    const auto mine = between.open();
    postgres::store theirs(between.to, {.prefix = between.prefix, .prepare = false, .listen = false});
    const auto seen = mine.wakes("q");
    vouch::enqueue(theirs, std::array{draft_of(1)}, t0);
    CHECK(mine.wait("q", seen, patience, std::stop_token{}) != seen);
}

TEST_CASE("postgres pgbouncer: without listen, commits of this process end a wait, and no process listens") {
    const bouncer between;
    if (!between) {
        return;
    }
    auto store = between.open(false);
    const auto seen = store.wakes("q");
    vouch::enqueue(store, std::array{draft_of(1)}, t0);
    CHECK(store.wait("q", seen, patience, std::stop_token{}) != seen);
    CHECK(application().number("SELECT count(*) FROM " + between.prefix + "listeners") == 0);
}

TEST_CASE("postgres pgbouncer: a worker works through it, also if pgbouncer is started again meanwhile") {
    const bouncer between;
    if (!between) {
        return;
    }
    constexpr int entries = 200;
    const bool listen = GENERATE(true, false);
    auto store = between.open(listen);
    const vouch::outbox outbox(store);
    std::atomic<int> handled = 0;
    vouch::router routes(outbox);
    routes.on("t", [&] { ++handled; });
    vouch::worker worker(outbox, {.log = vouch::log_level::off, .poll_interval = 100ms});
    worker.serve(routes, {.queue = "q", .concurrency = 4, .lease = 2s});
    std::jthread running([&](const std::stop_token& stop) { worker.run(stop); });
    const std::vector<vouch::emission> half(entries / 2, {.queue = "q", .topic = "t"});
    outbox.emit(half);
    run_pgbouncer("stop");
    REQUIRE(run_pgbouncer("start").first == 0);
    outbox.emit(half);
    const auto end = std::chrono::steady_clock::now() + patience;
    while (store.counts("q").live() > 0 && std::chrono::steady_clock::now() < end) {
        std::this_thread::sleep_for(5ms);
    }
    running.request_stop();
    running.join();
    CHECK(store.counts("q")[vouch::state::succeeded] == entries);
    CHECK(handled >= entries); // at least once: a claim may have been lost with pgbouncer
}

} // namespace postgres_pgbouncer_test
