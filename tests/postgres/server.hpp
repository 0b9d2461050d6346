// SPDX-License-Identifier: MIT
// The server of the tests, and an application's connection to it. `tests/postgres/cluster run` starts the server.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include <libpq-fe.h>

#include <vouch/postgres.hpp>

#include "catch.hpp"

namespace postgres_test {

[[nodiscard]] inline std::string conninfo() {
    const char* const set = std::getenv("VOUCH_POSTGRES");
    if (set == nullptr) {
        throw std::runtime_error("VOUCH_POSTGRES is not set; run the tests with tests/postgres/cluster run");
    }
    return set;
}

/// A prefix that no other test uses: a schema of its own.
[[nodiscard]] inline std::string fresh_prefix() {
    static std::atomic<int> last = 0;
    return "test" + std::to_string(++last) + ".";
}

/// A connection of the application.
class application {
  public:
    explicit application(const std::string& to = conninfo()) : db_(PQconnectdb(to.c_str()), &PQfinish) {
        REQUIRE(PQstatus(db_.get()) == CONNECTION_OK);
        PQsetNoticeProcessor(
            db_.get(), [](void*, const char*) {}, nullptr);
    }

    [[nodiscard]] PGconn* connection() const noexcept { return db_.get(); }

    void execute(const std::string& statements) const {
        const result r(PQexec(db_.get(), statements.c_str()), &PQclear);
        CAPTURE(statements, PQerrorMessage(db_.get()));
        const auto status = PQresultStatus(r.get());
        REQUIRE((status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK));
    }
    /// The first value of the first row.
    [[nodiscard]] std::string text(const std::string& query) const {
        const result r(PQexec(db_.get(), query.c_str()), &PQclear);
        CAPTURE(query, PQerrorMessage(db_.get()));
        REQUIRE(PQresultStatus(r.get()) == PGRES_TUPLES_OK);
        REQUIRE(PQntuples(r.get()) >= 1);
        return PQgetvalue(r.get(), 0, 0);
    }
    [[nodiscard]] std::int64_t number(const std::string& query) const { return std::stoll(text(query)); }
    /// All rows of a statement with one column.
    [[nodiscard]] std::string lines(const std::string& query) const {
        const result r(PQexec(db_.get(), query.c_str()), &PQclear);
        CAPTURE(query, PQerrorMessage(db_.get()));
        REQUIRE(PQresultStatus(r.get()) == PGRES_TUPLES_OK);
        std::string out;
        for (int i = 0; i < PQntuples(r.get()); ++i) {
            out.append(PQgetvalue(r.get(), i, 0)).append("\n");
        }
        return out;
    }

  private:
    using result = std::unique_ptr<PGresult, void (*)(PGresult*)>;
    std::unique_ptr<PGconn, void (*)(PGconn*)> db_;
};

/// The error is one sentence with this part, and does not show the password of the tests.
inline void expect_sentence(const std::optional<vouch::error>& e, vouch::error_kind kind, std::string_view part,
                            std::string_view code = "") {
    REQUIRE(e);
    const std::string message = e->what();
    CAPTURE(message);
    CHECK(e->kind() == kind);
    CHECK(e->text_code() == code);
    CHECK(message.rfind("postgres: ", 0) == 0);
    CHECK(message.find(part) != std::string::npos);
    CHECK(message.find("hunter2") == std::string::npos);
    CHECK(message.find('\n') == std::string::npos);
}

/// Runs `cluster WHAT FOLDER` for the server of the tests.
inline void cluster(const std::string& what, const std::string& more = "") {
    const char* const folder = std::getenv("VOUCH_POSTGRES_FOLDER");
    REQUIRE(folder != nullptr);
    const auto command = std::string(VOUCH_CLUSTER) + ' ' + what + ' ' + folder + ' ' + more + " > /dev/null";
    REQUIRE(std::system(command.c_str()) == 0);
}

} // namespace postgres_test
