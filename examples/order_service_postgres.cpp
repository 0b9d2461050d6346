// SPDX-License-Identifier: MIT
// The order service on PostgreSQL: an order and its mail are one commit; processes are killed, and nothing is lost.
//
// `examples/run postgres` starts a server for it. With a server of yours: order_service_postgres CONNINFO. Everything is in
// the schema vouch_example, which is dropped at the start and at the end.
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>

#include <libpq-fe.h>
#include <sys/wait.h>
#include <unistd.h>

#include <vouch/postgres.hpp>
#include <vouch/vouch.hpp>

namespace {

using namespace std::chrono_literals;

/// Where everything of this example is: the shop's orders and vouch's tables.
constexpr auto tables = "vouch_example.";

/// A connection of the application.
class database {
  public:
    explicit database(const std::string& conninfo) : db_(PQconnectdb(conninfo.c_str())) {
        if (PQstatus(db_) != CONNECTION_OK) {
            const std::string why = PQerrorMessage(db_);
            PQfinish(db_);
            throw std::runtime_error(why);
        }
        PQsetNoticeProcessor(
            db_, [](void*, const char*) {}, nullptr);
    }
    database(const database&) = delete;
    database& operator=(const database&) = delete;
    ~database() { PQfinish(db_); }

    [[nodiscard]] PGconn* connection() const { return db_; }

    /// Returns the first value of the first row, if there is one.
    std::string execute(const std::string& sql) const {
        PGresult* const result = PQexec(db_, sql.c_str());
        const bool has_failed = PQresultStatus(result) != PGRES_COMMAND_OK && PQresultStatus(result) != PGRES_TUPLES_OK;
        std::string value = PQntuples(result) > 0 ? PQgetvalue(result, 0, 0) : "";
        PQclear(result);
        if (has_failed) {
            throw std::runtime_error(PQerrorMessage(db_));
        }
        return value;
    }

  private:
    PGconn* db_;
};

/// The application. vouch's tables are in the same database as its orders.
class shop {
  public:
    explicit shop(const std::string& conninfo) : db_(conninfo) {
        vouch::postgres::migrate(db_.connection(), tables); // creates the schema, too
        db_.execute("CREATE TABLE IF NOT EXISTS vouch_example.orders (number integer PRIMARY KEY)");
    }

    /// Stores the order and the work it causes in one transaction of the shop.
    void place_order(int number, bool power_fails = false) {
        vouch::postgres::joined work(db_.connection(), tables);
        db_.execute("BEGIN");
        db_.execute("INSERT INTO vouch_example.orders VALUES (" + std::to_string(number) + ")");
        emitter_.emit(work, {.queue = "mail", .topic = "order.placed", .payload = std::to_string(number)});
        if (power_fails) {
            std::printf("  order %d: killed before the commit\n", number);
            std::fflush(stdout);
            std::raise(SIGKILL);
        }
        db_.execute("COMMIT");
        std::printf("  order %d: placed\n", number);
    }

    [[nodiscard]] std::string orders() const { return db_.execute("SELECT count(*) FROM vouch_example.orders"); }

  private:
    database db_;
    vouch::emitter emitter_{};
};

/// Sends a mail for every order until no work is left. Dies at the order `dies_over`, after the mail is sent and before
/// the entry is settled.
void run_mailer(const std::string& conninfo, const std::string& dies_over = "") {
    vouch::postgres::store store(conninfo, {.prefix = tables});
    const vouch::outbox outbox(store);
    vouch::router router(outbox);
    router.on("order.placed", [&](vouch::delivery& d) {
        std::printf("  order %s: mail sent, attempt %u\n", d.payload().c_str(), d.attempt());
        if (d.payload() == dies_over) {
            std::printf("  order %s: killed before it was settled\n", d.payload().c_str());
            std::fflush(stdout);
            std::raise(SIGKILL);
        }
    });
    vouch::runner runner(outbox, router, {.queue = "mail", .batch_size = 1, .lease = 2s});
    while (store.counts("mail").live() > 0) {
        if (runner.run_until_idle().claimed == 0) {
            std::this_thread::sleep_for(20ms); // the lease of the killed mailer is still running
        }
    }
}

void show(const std::string& conninfo) {
    const vouch::postgres::store store(conninfo, {.prefix = tables});
    const auto counts = store.counts("mail");
    std::printf("  %s orders; %zu entries: %zu pending, %zu claimed, %zu succeeded, %zu dead\n",
                shop(conninfo).orders().c_str(), counts.total(), counts[vouch::state::pending],
                counts[vouch::state::claimed], counts[vouch::state::succeeded], counts[vouch::state::dead]);
}

/// Runs `work` in a child process.
template <class Work>
void in_a_process(const char* what, Work&& work) {
    std::printf("%s\n", what);
    std::fflush(stdout);
    if (const auto child = fork(); child == 0) {
        work();
        std::fflush(stdout);
        std::_Exit(0);
    } else {
        waitpid(child, nullptr, 0);
    }
}

} // namespace

int main(int argc, char** argv) {
    const char* const server = argc > 1 ? argv[1] : std::getenv("VOUCH_POSTGRES");
    if (server == nullptr) {
        std::fputs("usage: order_service_postgres CONNINFO; or `examples/run postgres`, which starts a server\n",
                   stderr);
        return 2;
    }
    const std::string conninfo = server;
    database(conninfo).execute("DROP SCHEMA IF EXISTS vouch_example CASCADE");

    // Connections must not be shared with a child process, so none is open here.
    in_a_process("the shop takes orders and is killed during the third", [&] {
        shop shop(conninfo);
        shop.place_order(1);
        shop.place_order(2);
        shop.place_order(3, true);
    });
    show(conninfo); // neither the third order nor its entry is stored
    in_a_process("the mailer is killed at order 2", [&] { run_mailer(conninfo, "2"); });
    show(conninfo);
    in_a_process("the shop is started again", [&] { shop(conninfo).place_order(3); });
    in_a_process("the mailer is started again and claims order 2 when the lease of the killed one expires",
                 [&] { run_mailer(conninfo); });
    show(conninfo);

    database(conninfo).execute("DROP SCHEMA vouch_example CASCADE");
}
