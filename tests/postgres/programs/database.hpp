// SPDX-License-Identifier: MIT
// A connection for the programs: runs statements as text, and throws if one fails.
#pragma once

#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <libpq-fe.h>

namespace postgres_test {

[[nodiscard]] inline std::string server() {
    const char* const set = std::getenv("VOUCH_POSTGRES");
    if (set == nullptr) {
        throw std::runtime_error("VOUCH_POSTGRES is not set; start the program with tests/postgres/cluster run");
    }
    return set;
}

/// Runs a statement on a connection, which may be in a transaction. Returns the first row.
inline std::vector<std::string> run(PGconn* c, const std::string& statement) {
    const std::unique_ptr<PGresult, void (*)(PGresult*)> r(PQexec(c, statement.c_str()), &PQclear);
    const auto status = PQresultStatus(r.get());
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) {
        throw std::runtime_error(statement.substr(0, 80) + ": " + PQerrorMessage(c));
    }
    std::vector<std::string> row;
    for (int i = 0; PQntuples(r.get()) > 0 && i < PQnfields(r.get()); ++i) {
        row.emplace_back(PQgetvalue(r.get(), 0, i));
    }
    return row;
}

class database {
  public:
    database() : db_(PQconnectdb(server().c_str()), &PQfinish) {
        if (PQstatus(db_.get()) != CONNECTION_OK) {
            throw std::runtime_error("no connection to the server of the tests");
        }
        PQsetNoticeProcessor(
            db_.get(), [](void*, const char*) {}, nullptr);
    }
    [[nodiscard]] PGconn* connection() const noexcept { return db_.get(); }
    std::vector<std::string> execute(const std::string& statement) const { return run(db_.get(), statement); }
    [[nodiscard]] long long number(const std::string& query) const { return std::stoll(execute(query).at(0)); }

  private:
    std::unique_ptr<PGconn, void (*)(PGconn*)> db_;
};

} // namespace postgres_test
