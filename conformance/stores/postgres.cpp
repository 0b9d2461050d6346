// SPDX-License-Identifier: MIT
// The suite for the PostgreSQL store. VOUCH_POSTGRES is the conninfo of a server for tests; `tests/postgres/cluster`
// starts one. Each location is a schema of its own. If VOUCH_POSTGRES leads to pgbouncer, as with
// `tests/postgres/pgbouncer`, VOUCH_POSTGRES_DIRECT is the conninfo of the server behind it.
//
// A crash is the death of the client in most cases, and every thirtieth time the death of the server: VOUCH_POSTGRES_FOLDER is
// the folder of its cluster. Without it, only clients die.
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <libpq-fe.h>
#include <sys/types.h>
#include <unistd.h>

#include <vouch/conformance.hpp>
#include <vouch/postgres.hpp>

#include "../../tests/postgres/libpq_faults.hpp"

namespace {

/// Empty if it is not set.
std::string environment(const char* name) {
    const char* const set = std::getenv(name);
    return set == nullptr ? "" : set;
}

std::string conninfo() { return environment("VOUCH_POSTGRES"); }

bool has_bouncer() { return !environment("VOUCH_POSTGRES_DIRECT").empty(); }

/// The conninfo of the server itself.
std::string direct() { return has_bouncer() ? environment("VOUCH_POSTGRES_DIRECT") : conninfo(); }

/// A connection of the fixture itself, beside those of the stores. Safe for any number of threads.
class administrator {
  public:
    administrator() = default;
    administrator(const administrator&) = delete;
    administrator& operator=(const administrator&) = delete;
    ~administrator() { disconnect(); }

    /// The number of rows that a statement finds, or -1 if it fails.
    int count_rows(const std::string& statement) {
        const std::lock_guard lock(mutex_);
        if (process_ != getpid()) { // a child process has a copy of its parent's connection, and leaves it alone
            connection_ = nullptr;
        }
        for (const bool is_last : {false, true}) {
            if (connection_ == nullptr) {
                connection_ = PQconnectdb((direct() + " options=-cclient_min_messages=error").c_str());
                process_ = getpid();
            }
            PGresult* const found = PQexec(connection_, statement.c_str());
            const auto status = PQresultStatus(found);
            const int count = status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK ? PQntuples(found) : -1;
            PQclear(found);
            if (is_last || PQstatus(connection_) == CONNECTION_OK) {
                return count;
            }
            disconnect(); // the server has been restarted
        }
        return -1;
    }

  private:
    void disconnect() {
        if (connection_ != nullptr && process_ == getpid()) {
            PQfinish(connection_);
        }
        connection_ = nullptr;
    }

    std::mutex mutex_{};
    PGconn* connection_ = nullptr;
    pid_t process_ = 0;
};

struct fixture {
    using location = vouch::conformance::location;
    using faults = postgres_test::faults;

    vouch::postgres::store open(const location& at) {
        reuse_schema(at.name());
        const auto name = " application_name=" + at.name();
        vouch::postgres::options how{.prefix = at.name() + '.'};
        if (has_bouncer()) {
            how.prepare = false;
            how.listen_conninfo = direct() + name;
        }
        return vouch::postgres::store(conninfo() + name, how);
    }
    /// Empties the schema and keeps it for another location: the server creates and drops one in 60 ms.
    void forget(const location& at) {
        const auto schema = '"' + at.name() + '"';
        std::string statements = "BEGIN; SET LOCAL lock_timeout = '1s'";
        for (const auto* const table : {"entries", "lanes", "groups", "listeners"}) {
            statements += "; DELETE FROM " + schema + '.' + table;
        }
        const auto spare = "spare_" + std::to_string(getpid()) + '_' + std::to_string(++spares_made_);
        statements += "; ALTER SCHEMA " + schema + " RENAME TO " + spare + "; COMMIT";
        if (admin_.count_rows(statements) >= 0) {
            spares_.push_back(spare);
        } else { // it was never opened, or its tables are not as they were made
            admin_.count_rows("ROLLBACK");
            admin_.count_rows("DROP SCHEMA IF EXISTS " + schema + " CASCADE");
        }
    }
    void crash(const location& at) {
        constexpr int clients_per_server = 29; // to end and start a server takes half a second
        if (!environment("VOUCH_POSTGRES_FOLDER").empty() && ++crashes_ > clients_per_server) {
            crashes_ = 0;
            end_server();
        } else {
            end_client(at);
        }
    }
    bool fail_at(std::size_t n) { return faults::all().fail_at(n); }
    void seam(faults::callback f) { faults::all().set_seam(std::move(f)); }

  private:
    /// Makes an empty schema of an earlier location the one of this location, if that has none.
    void reuse_schema(const std::string& name) {
        if (!spares_.empty() && admin_.count_rows("SELECT 1 FROM pg_namespace WHERE nspname = '" + name + '\'') == 0 &&
            admin_.count_rows("ALTER SCHEMA " + spares_.back() + " RENAME TO \"" + name + '"') >= 0) {
            spares_.pop_back();
        }
    }

    /// Leaves the connections without a goodbye, and waits until the server has noticed. pgbouncer keeps its own
    /// connections to the server, but not their transactions.
    void end_client(const location& at) {
        faults::all().cut_all(at.name());
        const auto left = "SELECT 1 FROM pg_stat_activity WHERE application_name = '" + at.name() + '\'' +
                          (has_bouncer() ? " AND xact_start IS NOT NULL" : "");
        while (admin_.count_rows(left) > 0) {
            std::this_thread::sleep_for(std::chrono::milliseconds{1});
        }
    }

    /// Ends the server without a shutdown, and starts it again: it recovers from its log.
    static void end_server() {
        const auto folder = environment("VOUCH_POSTGRES_FOLDER");
        for (const auto* const what : {"stop", "start"}) {
            const auto mode = std::string(what) == "stop" ? " immediate" : "";
            const auto command = std::string(VOUCH_CLUSTER) + ' ' + what + ' ' + folder + mode + " > /dev/null";
            if (std::system(command.c_str()) != 0) {
                throw std::runtime_error("the server of the tests cannot be restarted");
            }
        }
    }

    administrator admin_{};
    std::vector<std::string> spares_{}; ///< schemas with empty tables
    int spares_made_ = 0;
    int crashes_ = 0;
};

} // namespace

int main(int argc, char** argv) { return vouch::conformance::run<fixture>({"postgres", "0.1.0"}, argc, argv); }
