// SPDX-License-Identifier: MIT
// Commits whose answer was lost. What the store says of them is true: stored, not stored, or in doubt.
#include <array>
#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include <signal.h>
#include <sys/socket.h>

#include <vouch/postgres.hpp>

#include "catch.hpp"
#include "postgres/libpq_faults.hpp"
#include "postgres/server.hpp"
#include "unit/support.hpp"

namespace postgres_doubt_test {

using namespace support;
using namespace std::chrono_literals;
using postgres_test::application;
using postgres_test::conninfo;
using postgres_test::faults;
using postgres_test::fresh_prefix;
using vouch::error_kind;
namespace postgres = vouch::postgres;

namespace {

/// Open transactions whose server processes are stopped: they do not notice that their connection is lost.
class stopped_transactions {
  public:
    template <class Work>
    stopped_transactions(postgres::store& in, int count, const Work& work) {
        for (int i = 0; i < count; ++i) {
            open_.push_back(in.begin());
            work(open_.back());
            PGconn* const c = open_.back().connection();
            sockets_.push_back(PQsocket(c));
            processes_.push_back(PQbackendPID(c));
            REQUIRE(kill(processes_.back(), SIGSTOP) == 0);
        }
    }
    void lose() {
        for (std::size_t i = 0; i < open_.size(); ++i) {
            shutdown(sockets_[i], SHUT_RDWR);
            CHECK(kind_of([&] { std::ignore = open_[i].next_due("q"); }) == error_kind::io);
        }
    }
    void go_on() const {
        for (const int one : processes_) {
            kill(one, SIGCONT);
        }
    }

  private:
    std::vector<postgres::transaction> open_{};
    std::vector<int> sockets_{};
    std::vector<int> processes_{};
};

} // namespace

TEST_CASE("postgres doubt: a commit whose answer was lost, but that has happened, succeeds") {
    postgres::store store(conninfo(), {.prefix = fresh_prefix()});
    auto tx = store.begin();
    std::ignore = tx.enqueue(std::array{draft_of(1)}, t0);
    faults::all().fail_at(2);
    CHECK_FALSE(error_of([&] { tx.commit(); }));
    CHECK(faults::all().fail_at(0));
    CHECK(store.find(id_of(1)));
}

TEST_CASE("postgres doubt: a commit that was never sent is known not to have happened") {
    postgres::store store(conninfo(), {.prefix = fresh_prefix()});
    auto tx = store.begin();
    std::ignore = tx.enqueue(std::array{draft_of(1)}, t0);
    faults::all().fail_at(1);
    const auto e = error_of([&] { tx.commit(); });
    CHECK(faults::all().fail_at(0));
    REQUIRE(e);
    CHECK(e->kind() == error_kind::io);
    CHECK_FALSE(e->is_in_doubt());
    CHECK_FALSE(store.find(id_of(1)));
}

TEST_CASE("postgres doubt: if the server has had another life since, a commit that it calls committed is in doubt") {
    const application app;
    const auto prefix = fresh_prefix();
    postgres::store store(conninfo(), {.prefix = prefix});
    auto tx = store.begin();
    std::ignore = tx.enqueue(std::array{draft_of(1)}, t0);
    app.execute("TRUNCATE " + prefix + "server"); // what a recovery does
    faults::all().fail_at(2);
    const auto e = error_of([&] { tx.commit(); });
    CHECK(faults::all().fail_at(0));
    REQUIRE(e);
    CHECK(e->kind() == error_kind::io);
    CHECK(e->is_in_doubt());
    CHECK(store.find(id_of(1)));
}

TEST_CASE("postgres doubt: if no server answers, the commit is in doubt") {
    const auto prefix = fresh_prefix();
    const application app;
    app.execute("DROP ROLE IF EXISTS shortlived; CREATE ROLE shortlived SUPERUSER LOGIN");
    postgres::store store(conninfo() + " user=shortlived", {.prefix = prefix});
    auto tx = store.begin();
    std::ignore = tx.enqueue(std::array{draft_of(1)}, t0);
    app.execute("ALTER ROLE shortlived NOLOGIN");
    faults::all().fail_at(2);
    const auto e = error_of([&] { tx.commit(); });
    CHECK(faults::all().fail_at(0));
    REQUIRE(e);
    CHECK(e->is_in_doubt());
    CHECK(app.number("SELECT count(*) FROM " + prefix + "entries") == 1);
}

TEST_CASE("postgres doubt: a commit of statements that only the application ran is resolved, too") {
    const application app;
    const auto prefix = fresh_prefix();
    postgres::store store(conninfo(), {.prefix = prefix});
    app.execute("CREATE TABLE " + prefix + "orders (number integer)");
    for (const std::size_t n : {1U, 2U}) { // cut before COMMIT is sent, and after it was answered
        CAPTURE(n);
        auto tx = store.begin();
        PQclear(PQexec(tx.connection(), ("INSERT INTO " + prefix + "orders VALUES (1)").c_str()));
        faults::all().fail_at(n);
        const auto e = error_of([&] { tx.commit(); });
        CHECK(faults::all().fail_at(0));
        CHECK(e.has_value() == (n == 1));
        CHECK(app.number("SELECT count(*) FROM " + prefix + "orders") == (n == 1 ? 0 : 1));
    }
}

TEST_CASE("postgres doubt: a claim finds what a lost connection had locked") {
    postgres::store store(conninfo(), {.prefix = fresh_prefix()});
    vouch::enqueue(store, std::array{draft_of(1)}, t0);
    stopped_transactions lost(store, 1, [](auto& tx) { CHECK(tx.claim({.queue = "q", .now = t0}).size() == 1); });
    lost.lose();
    std::jthread later([&] {
        std::this_thread::sleep_for(300ms);
        lost.go_on();
    });
    CHECK(vouch::claim(store, {.queue = "q", .now = t0}).size() == 1);
}

TEST_CASE("postgres doubt: lost connections whose server processes stay delay the next one only once") {
    postgres::store store(conninfo(), {.prefix = fresh_prefix()});
    stopped_transactions lost(store, 8, [](auto& tx) { CHECK_FALSE(tx.next_due("q")); });
    lost.lose();
    const auto begin = std::chrono::steady_clock::now();
    CHECK_FALSE(store.find(id_of(1)));
    CHECK(std::chrono::steady_clock::now() - begin < 5s); // a second in all, not for each
    lost.go_on();
}

TEST_CASE("postgres doubt: vouch::enqueue stores once, whichever round trip is lost") {
    for (std::size_t n = 1;; ++n) {
        CAPTURE(n);
        postgres::store store(conninfo(), {.prefix = fresh_prefix()});
        faults::all().fail_at(n);
        const auto e = error_of([&] { vouch::enqueue(store, std::array{draft_of(1)}, t0); });
        const bool has_failed = faults::all().fail_at(0);
        CHECK(store.find(id_of(1)).has_value() == !e);
        if (!has_failed) {
            CHECK(n == 3); // one round trip, before and after
            break;
        }
    }
}

TEST_CASE("postgres doubt: what is said of commits is true while server processes are ended") {
    const application app;
    const auto prefix = fresh_prefix();
    const auto name = "doubt_" + prefix.substr(0, prefix.size() - 1);
    postgres::store store(conninfo() + " application_name=" + name, {.prefix = prefix});
    std::atomic<bool> is_over = false;
    std::atomic<int> lost = 0;
    struct said {
        bool is_stored = false;
        bool is_in_doubt = false;
    };
    constexpr std::uint64_t each = 60;
    std::vector<std::vector<said>> all(2, std::vector<said>(each));
    {
        std::jthread killer([&] {
            while (!is_over) {
                app.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = '" + name +
                            "' AND query LIKE 'COMMIT%'");
                std::this_thread::sleep_for(1ms);
            }
        });
        std::vector<std::jthread> writers;
        for (std::uint64_t w = 0; w < all.size(); ++w) {
            writers.emplace_back([&, w] {
                for (std::uint64_t i = 0; i < each; ++i) {
                    const auto e = error_of([&] {
                        auto tx = store.begin();
                        std::ignore = tx.enqueue(std::array{draft_of(1 + w * each + i)}, t0);
                        tx.commit();
                    });
                    all[w][i] = {!e, e && e->is_in_doubt()};
                    lost += e ? 1 : 0;
                }
            });
        }
        writers.clear();
        is_over = true;
    }
    CAPTURE(lost.load());
    for (std::uint64_t w = 0; w < all.size(); ++w) {
        for (std::uint64_t i = 0; i < each; ++i) {
            CHECK_FALSE(all[w][i].is_in_doubt); // the server lives, so every commit can be resolved
            CHECK(store.find(id_of(1 + w * each + i)).has_value() == all[w][i].is_stored);
        }
    }
}

} // namespace postgres_doubt_test
