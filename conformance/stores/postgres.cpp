// SPDX-License-Identifier: MIT
// The suite for the PostgreSQL store. VOUCH_POSTGRES is the conninfo of a server for tests; `tests/postgres/cluster`
// starts one. Each location is a schema of its own. If VOUCH_POSTGRES leads to pgbouncer, as with
// `tests/postgres/pgbouncer`, VOUCH_POSTGRES_DIRECT is the conninfo of the server behind it.
//
// A crash is the death of the client in most cases, and every tenth time the death of the server: VOUCH_POSTGRES_FOLDER is
// the folder of its cluster. Without it, only clients die.
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>

#include <libpq-fe.h>

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

/// The number of rows that a statement finds.
int count_rows(const std::string& statement) {
    PGconn* const c = PQconnectdb(direct().c_str());
    PGresult* const found = PQexec(c, statement.c_str());
    const int count = PQntuples(found);
    PQclear(found);
    PQfinish(c);
    return count;
}

struct fixture {
    using location = vouch::conformance::location;
    using faults = postgres_test::faults;

    vouch::postgres::store open(const location& at) {
        const auto name = " application_name=" + at.name();
        vouch::postgres::options how{.prefix = at.name() + '.'};
        if (has_bouncer()) {
            how.prepare = false;
            how.listen_conninfo = direct() + name;
        }
        return vouch::postgres::store(conninfo() + name, how);
    }
    void forget(const location& at) {
        static_cast<void>(
            count_rows("SET client_min_messages = error; DROP SCHEMA IF EXISTS \"" + at.name() + "\" CASCADE"));
    }
    void crash(const location& at) {
        constexpr int clients_per_server = 9;
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
    /// Leaves the connections without a goodbye, and waits until the server has noticed. pgbouncer keeps its own
    /// connections to the server, but not their transactions.
    static void end_client(const location& at) {
        faults::all().cut_all(at.name());
        const auto left = "SELECT 1 FROM pg_stat_activity WHERE application_name = '" + at.name() + '\'' +
                          (has_bouncer() ? " AND xact_start IS NOT NULL" : "");
        while (count_rows(left) > 0) {
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

    int crashes_ = 0;
};

} // namespace

int main(int argc, char** argv) { return vouch::conformance::run<fixture>({"postgres", "0.1.0"}, argc, argv); }
