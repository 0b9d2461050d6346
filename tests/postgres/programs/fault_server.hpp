// SPDX-License-Identifier: MIT
// A server that a program starts, stops and kills, and a plain connection to it, so that the store is not used to check
// the store. `tests/postgres/cluster run PROGRAM` starts the first server; its folder has room for others.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <libpq-fe.h>

namespace fault_program {

/// The folder of the server that `cluster run` has started. Ends the program with 77, skipped, if there is none.
[[nodiscard]] inline std::string server_folder() {
    const char* const set = std::getenv("VOUCH_POSTGRES_FOLDER");
    if (set == nullptr) {
        std::printf("skipped: no server; run this program with tests/postgres/cluster run\n");
        std::exit(77);
    }
    return set;
}

/// A server in a folder, ruled by the script `cluster`.
class server {
  public:
    explicit server(std::string folder) : folder_(std::move(folder)) {}

    [[nodiscard]] const std::string& folder() const noexcept { return folder_; }
    [[nodiscard]] std::string conninfo() const { return "host=" + folder_ + " dbname=postgres user=postgres"; }

    /// Settings as `name=value`.
    void start(const std::string& settings = "") const { run("start", settings); }
    void stop(const std::string& how) const { run("stop", how); }
    void promote() const { run("promote", ""); }
    void remove() const { run("remove", ""); }
    /// Copies the primary and follows it.
    void follow(const server& primary, const std::string& settings = "") const {
        run("follow", primary.folder() + ' ' + settings);
    }

  private:
    void run(const std::string& what, const std::string& more) const {
        const auto command = std::string(VOUCH_CLUSTER) + ' ' + what + ' ' + folder_ + ' ' + more + " > /dev/null";
        if (std::system(command.c_str()) != 0) {
            throw std::runtime_error("failed: " + command);
        }
    }

    std::string folder_;
};

/// A connection beside the store. It waits for a server that cannot be reached.
class direct {
  public:
    using table = std::vector<std::vector<std::string>>;

    explicit direct(std::string conninfo) : conninfo_(std::move(conninfo)) {}

    /// The rows of the last statement. A lost connection is replaced, and the statements are repeated.
    table run(const std::string& statements) {
        constexpr int tries = 600;
        for (int i = 0; i < tries; ++i) {
            connect();
            const result answer(PQexec(db_.get(), statements.c_str()), &PQclear);
            const auto status = PQresultStatus(answer.get());
            if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK) {
                return rows_of(answer.get());
            }
            if (PQstatus(db_.get()) == CONNECTION_OK && PQresultErrorField(answer.get(), PG_DIAG_SQLSTATE) != nullptr) {
                throw std::runtime_error(statements + ": " + PQerrorMessage(db_.get()));
            }
            db_.reset();
            std::this_thread::sleep_for(std::chrono::milliseconds{50});
        }
        throw std::runtime_error("no server answers");
    }
    [[nodiscard]] long number(const std::string& query) { return std::stol(run(query).at(0).at(0)); }

  private:
    using result = std::unique_ptr<PGresult, void (*)(PGresult*)>;

    void connect() {
        if (!db_) {
            db_.reset(PQconnectdb(conninfo_.c_str()));
            PQsetNoticeProcessor(
                db_.get(), [](void*, const char*) {}, nullptr);
        }
    }
    [[nodiscard]] static table rows_of(const PGresult* answer) {
        table out(static_cast<std::size_t>(PQntuples(answer)));
        for (std::size_t i = 0; i < out.size(); ++i) {
            for (int column = 0; column < PQnfields(answer); ++column) {
                out[i].emplace_back(PQgetvalue(answer, static_cast<int>(i), column));
            }
        }
        return out;
    }

    std::string conninfo_;
    std::unique_ptr<PGconn, void (*)(PGconn*)> db_{nullptr, &PQfinish};
};

} // namespace fault_program
