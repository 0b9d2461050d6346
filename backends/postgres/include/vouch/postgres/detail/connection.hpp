// SPDX-License-Identifier: MIT
// One connection in libpq's pipeline mode. Statements are added one by one and travel together: `exchange` sends them
// and reads all answers in one round trip. An error of a statement skips those after it and is thrown by `exchange`.
// Used by one thread at a time.
#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <libpq-fe.h>

#include <vouch/contract/error.hpp>
#include <vouch/contract/id.hpp>
#include <vouch/postgres/detail/parameters.hpp>
#include <vouch/postgres/detail/rows.hpp>
#include <vouch/postgres/detail/sql.hpp>
#include <vouch/postgres/detail/sqlstate.hpp>
#include <vouch/postgres/detail/table_names.hpp>

namespace vouch {
inline namespace v0 {
namespace postgres::detail {

struct connection_closer {
    void operator()(PGconn* c) const noexcept { PQfinish(c); }
};
using owned_connection = std::unique_ptr<PGconn, connection_closer>;

/// The SQLSTATE of a failed result; empty if the connection was lost.
[[nodiscard]] inline std::string_view sqlstate_of(const PGresult* result) noexcept {
    const char* const code = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    return code == nullptr ? std::string_view{} : code;
}

class connection {
  public:
    /// Whether statements are prepared. Without, nothing of the store stays on the connection.
    enum class statements_are : bool { sent_as_text, prepared };

    /// On a connection of the application, which stays open.
    connection(PGconn* db, table_names names) : db_(db), names_(std::move(names)) {}
    connection(owned_connection db, table_names names, statements_are how)
        : owned_(std::move(db)), db_(owned_.get()), names_(std::move(names)),
          is_preparing_(how == statements_are::prepared) {
        PQsetNoticeReceiver(db_, &connection::note_warning, this);
    }
    connection(const connection&) = delete; // libpq has its address
    connection& operator=(const connection&) = delete;

    [[nodiscard]] PGconn* handle() const noexcept { return db_; }
    [[nodiscard]] const table_names& names() const noexcept { return names_; }
    [[nodiscard]] bool is_lost() const noexcept { return is_lost_ || PQstatus(db_) != CONNECTION_OK; }

    [[nodiscard]] bool has_pending() const noexcept { return !pending_.empty(); }

    /// Adds a statement to the next round trip. Returns the place of its answer.
    std::size_t add(sql which, const parameters& values = parameters()) {
        pending_.reserve(pending_.size() + 2); // a COMMIT that libpq has must be known here
        enter_pipeline();
        const auto number = static_cast<std::size_t>(which);
        const auto name = "vouch_" + std::to_string(number);
        bool is_sent = true;
        if (is_preparing_ && !prepared_.test(number)) {
            is_sent = PQsendPrepare(db_, name.c_str(), text_of(which, names_).c_str(), 0, nullptr) == 1;
            pending_.push_back({number, true});
            prepared_.set(number);
        }
        const auto lists = values.for_libpq();
        constexpr int binary = 1;
        if (is_preparing_) {
            is_sent = is_sent && PQsendQueryPrepared(db_, name.c_str(), lists.size(), lists.values.data(),
                                                     lists.lengths.data(), lists.formats.data(), binary) == 1;
        } else {
            is_sent = PQsendQueryParams(db_, text_of(which, names_).c_str(), lists.size(), nullptr, lists.values.data(),
                                        lists.lengths.data(), lists.formats.data(), binary) == 1;
        }
        if (!is_sent) {
            lose();
            throw error_of({}, doing());
        }
        pending_.push_back({number, false});
        return statements_pending_++;
    }

    /// Sends what was added and returns all answers. Nothing is sent if nothing was added.
    std::vector<rows> exchange() {
        std::vector<rows> answers;
        if (pending_.empty()) {
            return answers;
        }
        const auto asked = std::exchange(pending_, {});
        statements_pending_ = 0;
        if (PQpipelineSync(db_) != 1) {
            lose();
            throw error_of({}, doing());
        }
        std::string failed;
        for (const auto& one : asked) {
            receive(one, answers, failed);
        }
        const auto end = receive_end();
        if (failed.empty() && !end.is_complete) {
            throw error_of(end.refused, doing());
        }
        if (!failed.empty()) {
            throw error_of(failed, doing());
        }
        return answers;
    }

    /// For a transaction that will be rolled back: sends what was added, because libpq may have sent a part of it already,
    /// and drops the answers.
    void abandon() noexcept {
        try {
            exchange();
        } catch (...) {
            // Only the rollback that follows counts.
        }
    }

    /// Adds a statement, exchanges and returns its answer.
    rows ask(sql which, const parameters& values = parameters()) {
        const auto place = add(which, values);
        return std::move(exchange()[place]);
    }

    /// The end of a transaction. If it is not known to have happened, the connection was lost, and the answers are those
    /// that came before.
    struct committed {
        std::vector<rows> answers{};
        bool is_known = false;
    };

    /// How a transaction ends. Without BEGIN, the server commits what was sent when it has carried out all of it.
    enum class ends : bool { by_itself, with_commit };

    /// Commits, with what was added before. Throws if it is known not to have happened.
    [[nodiscard]] committed commit(ends how = ends::with_commit) {
        committed out;
        out.answers.reserve(pending_.size() + 1); // before the COMMIT: after it nothing may throw
        std::string failed;
        const auto place = how == ends::with_commit ? add(sql::commit) : statements_pending_;
        has_warned_ = false;
        const auto asked = std::exchange(pending_, {});
        statements_pending_ = 0;
        // From here on the server may commit, even if libpq reports that it could not send everything.
        if (PQpipelineSync(db_) != 1) {
            lose();
            return out;
        }
        try {
            for (const auto& one : asked) {
                receive(one, out.answers, failed);
            }
        } catch (...) { // no memory for the answer is as bad as no answer
            lose();
            if (!failed.empty() && out.answers.size() < place) {
                throw; // a statement has failed, so the server does not commit
            }
            return out;
        }
        if (how == ends::with_commit && failed.empty() && out.answers[place].tag() != "COMMIT") {
            failed = "40000"; // the transaction had failed before, and the server answers ROLLBACK
        }
        const auto end = receive_end();
        if (failed.empty() && how == ends::by_itself) {
            failed = end.refused; // by a check at the commit
        }
        if (!failed.empty()) {
            throw error_of(failed, doing());
        }
        // If COMMIT was answered, the connection may be lost after it.
        out.is_known = how == ends::with_commit || end.is_complete;
        return out;
    }

    /// Whether the server has warned during the last COMMIT: it does so if the wait for a standby was cancelled. The
    /// transaction is then committed, but a failover would lose it.
    [[nodiscard]] bool has_warned() const noexcept { return has_warned_; }

    /// Ends the transaction, if one is open. If that fails, the connection counts as lost, and the server rolls back.
    void roll_back() noexcept {
        try {
            if (has_pending() && !is_lost()) {
                add(sql::roll_back); // in the same round trip: without BEGIN, the end of the round trip would commit
            }
            abandon();
            if (!is_lost() && PQtransactionStatus(db_) != PQTRANS_IDLE) {
                ask(sql::roll_back);
            }
        } catch (...) {
            lose();
        }
        if (PQtransactionStatus(db_) != PQTRANS_IDLE) {
            lose();
        }
    }

    /// The mark of the server's life in which this connection was made; see `server_life.hpp`.
    id life{};
    /// The server's process for this connection. libpq forgets it with the connection.
    int server_process = 0;

    /// For a connection of the application, and before the application uses one of ours: everything was exchanged.
    void leave_pipeline() noexcept {
        if (PQpipelineStatus(db_) != PQ_PIPELINE_OFF && PQexitPipelineMode(db_) != 1) {
            lose();
        }
    }

    /// What the current operation is called in messages.
    void set_doing(const char* what) noexcept { doing_ = what; }
    [[nodiscard]] std::string_view doing() const noexcept { return doing_; }

  private:
    struct asked_for {
        std::size_t statement = 0;
        bool is_prepare = false;
    };

    static void note_warning(void* self, const PGresult* notice) noexcept {
        const char* const severity = PQresultErrorField(notice, PG_DIAG_SEVERITY_NONLOCALIZED);
        if (severity != nullptr && std::string_view(severity) == "WARNING") {
            static_cast<connection*>(self)->has_warned_ = true;
        }
    }

    void enter_pipeline() {
        if (PQpipelineStatus(db_) == PQ_PIPELINE_OFF && PQenterPipelineMode(db_) != 1) {
            if (is_lost()) {
                lose();
                throw error_of({}, doing());
            }
            throw error(error_kind::misuse,
                        "postgres: the connection is in use: read all results of the last query first");
        }
    }

    void lose() noexcept {
        is_lost_ = true;
        pending_.clear();
        statements_pending_ = 0;
    }

    /// Reads the answer to one message. `failed` is the SQLSTATE of the first error. Throws if the connection was lost. It
    /// may say why with an error of its own, which is no answer: a pooler sends one although the server may have done
    /// everything.
    void receive(const asked_for& one, std::vector<rows>& answers, std::string& failed) {
        result_ptr result(PQgetResult(db_));
        const auto status = PQresultStatus(result.get());
        if (!result) {
            lose();
            throw error_of({}, doing());
        }
        if (status == PGRES_PIPELINE_ABORTED || status == PGRES_FATAL_ERROR) {
            if (one.is_prepare) {
                prepared_.reset(one.statement);
            }
            const auto code = sqlstate_of(result.get());
            if (status == PGRES_FATAL_ERROR && failed.empty()) {
                if (code.empty() || PQstatus(db_) != CONNECTION_OK || is_last_word(result.get())) {
                    lose();
                    throw error_of(code, doing());
                }
                failed = code;
            }
        }
        if (!one.is_prepare) {
            answers.emplace_back(std::move(result));
        }
        while (const auto rest = result_ptr(PQgetResult(db_))) { // until the null that ends each answer
            if (PQstatus(db_) != CONNECTION_OK) {
                break;
            }
        }
    }

    /// Whether the server closes the connection after this error.
    [[nodiscard]] static bool is_last_word(const PGresult* result) noexcept {
        const char* const severity = PQresultErrorField(result, PG_DIAG_SEVERITY_NONLOCALIZED);
        return severity != nullptr && (std::string_view(severity) == "FATAL" || std::string_view(severity) == "PANIC");
    }

    /// The end of a round trip.
    struct round_trip_end {
        bool is_complete = false;
        std::string refused{}; ///< the SQLSTATE of an error at the end, after which the connection is still there
    };

    [[nodiscard]] round_trip_end receive_end() {
        const result_ptr result(PQgetResult(db_));
        if (result && PQresultStatus(result.get()) == PGRES_PIPELINE_SYNC) {
            const result_ptr end(PQgetResult(db_)); // null: libpq is idle from here on
            return {.is_complete = true};
        }
        const bool is_refusal = result && PQstatus(db_) == CONNECTION_OK && !is_last_word(result.get());
        lose(); // its state is not known
        return {.refused = is_refusal ? std::string(sqlstate_of(result.get())) : std::string()};
    }

    owned_connection owned_{};
    PGconn* db_;
    table_names names_;
    bool is_preparing_ = false;
    bool is_lost_ = false;
    bool has_warned_ = false;
    const char* doing_ = "a statement";
    std::bitset<statements.size()> prepared_{};
    std::vector<asked_for> pending_{};
    std::size_t statements_pending_ = 0;
};

} // namespace postgres::detail
} // namespace v0
} // namespace vouch
