// SPDX-License-Identifier: MIT
// What all copies of a store share. Safe for any number of threads.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <new>
#include <stop_token>
#include <string>
#include <utility>

#include <vouch/contract/error.hpp>
#include <vouch/postgres/detail/claim_heads.hpp>
#include <vouch/postgres/detail/connect.hpp>
#include <vouch/postgres/detail/connection.hpp>
#include <vouch/postgres/detail/listener.hpp>
#include <vouch/postgres/detail/migration.hpp>
#include <vouch/postgres/detail/notify.hpp>
#include <vouch/postgres/detail/plain_queues.hpp>
#include <vouch/postgres/detail/pool.hpp>
#include <vouch/postgres/detail/purge_positions.hpp>
#include <vouch/postgres/detail/server_life.hpp>
#include <vouch/postgres/detail/session.hpp>
#include <vouch/postgres/options.hpp>

namespace vouch {
inline namespace v0 {
namespace postgres::detail {

inline void validate(const options& how) {
    const auto refuse = [](const char* what) {
        throw error(error_kind::invalid_argument, std::string("postgres: options: ") + what);
    };
    constexpr std::chrono::milliseconds least{1};
    if (how.connections_max == 0) {
        refuse("connections_max is 0; it must be at least 1");
    }
    if (how.busy_limit < least || how.busy_limit > std::chrono::hours{24}) {
        refuse("busy_limit must be 1 ms to 24 h");
    }
    if (how.connect_limit < least || how.connect_limit > std::chrono::hours{24}) {
        refuse("connect_limit must be 1 ms to 24 h");
    }
}

class database {
  public:
    database(const std::string& conninfo, const options& how) : pool_(conninfo, checked(how, conninfo)) {
        auto c = connect(conninfo, {.limit = how.connect_limit});
        if (how.create) {
            migrate(c.get(), pool_.names(), migrations);
        } else {
            expect_schema(c.get(), pool_.names());
        }
        pool_.add(std::move(c));
        listener_ = listener::of(how.listen_conninfo.empty() ? conninfo : how.listen_conninfo, pool_.names(),
                                 how.connect_limit);
    }

    [[nodiscard]] detail::pool& pool() noexcept { return pool_; }
    [[nodiscard]] purge_positions& positions() noexcept { return positions_; }
    [[nodiscard]] claim_heads& heads() noexcept { return heads_; }
    [[nodiscard]] plain_queues& plain() noexcept { return plain_; }
    [[nodiscard]] wake_counts& counts() noexcept { return listener_->counts(); }

    /// From now on, commits of other processes raise the counts, too. The first call waits for the connection, but not
    /// longer than `at_most`.
    void listen(std::chrono::nanoseconds at_most, std::stop_token stop) {
        if (pool_.how().listen) {
            listener_->begin(at_most, std::move(stop));
        }
    }

    /// Commits. If the answer was lost, finds out whether the transaction has committed.
    void commit(connection& on, const session& in) {
        on.set_doing("commit");
        add_notify(on, in);
        const bool is_known = on.commit().is_known;
        if (!is_known && in.transaction_number == 0) {
            throw error(error_kind::io,
                        "postgres: commit: the connection was lost; the transaction had written nothing");
        }
        if (!is_known || (on.has_warned() && in.transaction_number != 0)) {
            resolve(on, in);
        }
        announce(in);
    }

    /// Commits in one round trip with statements that were added and whose answers end with the place `last`. Calls `read`
    /// with all answers; it may note the transaction's number. An error is in doubt if the commit may have happened.
    template <class Read>
    void commit_with(connection& on, session& in, connection::ends how, std::size_t last, const Read& read) {
        add_notify(on, in);
        const auto got = on.commit(how);
        const bool has_answer = got.answers.size() > last;
        if (has_answer) {
            try {
                read(got.answers);
            } catch (const error& e) {
                throw_in_doubt(e);
            } catch (const std::bad_alloc&) {
                throw out_of_memory_in_doubt;
            }
        }
        if (!got.is_known || (on.has_warned() && in.transaction_number != 0)) {
            resolve(on, in);
            if (!has_answer) {
                throw commit_in_doubt;
            }
        }
        announce(in);
    }

  private:
    [[nodiscard]] static const options& checked(const options& how, const std::string& conninfo) {
        validate(how);
        validate_conninfo(conninfo);
        if (!how.listen_conninfo.empty()) {
            validate_conninfo(how.listen_conninfo);
        }
        return how;
    }

    /// Wakes the waiting threads of this process.
    void announce(const session& in) noexcept {
        for (const auto& [queue, gate] : in.woken_queues) {
            heads_.lower(queue, gate);
            counts().raise(queue);
        }
    }

    [[noreturn]] static void throw_in_doubt(const error& e) {
        try {
            throw error(e.kind(), e.what(), {.in_doubt = true, .text_code = e.text_code()});
        } catch (const std::bad_alloc&) {
            throw out_of_memory_in_doubt;
        }
    }

    /// Returns if the transaction has committed, and throws otherwise. Without its number, it is in doubt.
    void resolve(const connection& lost, const session& in) {
        auto fate = commit_fate::unknown;
        try {
            if (in.transaction_number != 0) {
                const auto c = connect(pool_.conninfo(), {.limit = pool_.how().connect_limit, .is_returning = true});
                fate = fate_of(c.get(), pool_.names(), in.transaction_number, lost.life);
            }
        } catch (...) {
            fate = commit_fate::unknown;
        }
        if (fate == commit_fate::rolled_back) {
            throw error(error_kind::io, "postgres: commit: the connection was lost, and the server has rolled back");
        }
        if (fate == commit_fate::unknown) {
            throw commit_in_doubt;
        }
    }

    detail::pool pool_;
    purge_positions positions_{};
    claim_heads heads_{claim_heads::clock::now()};
    plain_queues plain_{};
    std::shared_ptr<listener> listener_{};
};

/// A connection on loan from the pool, and the transaction on it. Rolls back if it has not committed.
class loan {
  public:
    loan(std::shared_ptr<database> in, pool::purpose what)
        : in_(std::move(in)), purpose_(what), on_(in_->pool().take(what)) {}
    loan(const loan&) = delete;
    loan& operator=(const loan&) = delete;
    ~loan() {
        roll_back();
        in_->pool().give_back(std::move(on_), purpose_);
    }

    [[nodiscard]] connection& on() noexcept { return *on_; }
    [[nodiscard]] database& in() noexcept { return *in_; }

    /// For statements that travel with their commit and are the whole transaction. They need no BEGIN, unless settings
    /// are made for the transaction.
    void begin_whole() {
        if (has_begun_ || !in_->pool().how().prepare) {
            begin();
        }
    }
    /// Sends BEGIN with the next statement.
    void begin() {
        if (!has_begun_) {
            on_->add(in_->pool().how().prepare ? sql::begin_configured : sql::begin);
            has_begun_ = true;
            configure();
        } else {
            expect_not_ended();
        }
    }
    /// Sends the settings for a read, or for a transaction that has begun, if the connection cannot keep them.
    void configure() {
        if (!in_->pool().how().prepare) {
            on_->add(sql::configure, parameters(std::to_string(in_->pool().how().busy_limit.count())));
        }
    }
    /// Asks for the oldest snapshot, if a claim was slow. No claim fails because this does.
    void watch_snapshots() {
        using clock = claim_heads::clock;
        if (!in_->heads().wants_snapshot(clock::now())) {
            return;
        }
        std::string oldest;
        try {
            on_->set_doing("begin");
            on_->ask(sql::oldest_snapshot).each([&](row one) { one.read(oldest); });
        } catch (const error&) {
            oldest.clear();
        }
        in_->heads().note_snapshot(std::move(oldest), clock::now());
    }
    void roll_back() noexcept {
        if (has_begun_) {
            in_->heads().forget(); // claims have passed over what was locked here, and can be claimed again
        }
        on_->roll_back();
        has_begun_ = false;
    }
    [[nodiscard]] bool has_begun() const noexcept { return has_begun_; }
    void commit(const session& s) {
        if (has_begun_) {
            expect_not_ended();
            in_->commit(*on_, s);
            has_begun_ = false;
        }
    }
    /// Commits together with a statement that was added; see `database::commit_with`.
    template <class Read>
    void commit_with(session& s, std::size_t last, const Read& read) {
        try {
            in_->commit_with(*on_, s, has_begun_ ? connection::ends::with_commit : connection::ends::by_itself, last,
                             read);
        } catch (...) {
            in_->heads().forget(); // as in `roll_back`
            throw;
        }
        has_begun_ = false;
    }

  private:
    /// Outside a transaction, every statement would be a commit of its own.
    void expect_not_ended() const {
        if (!on_->is_lost() && !on_->has_pending() && PQtransactionStatus(on_->handle()) == PQTRANS_IDLE) {
            throw error(error_kind::misuse,
                        "postgres: a statement of the application has ended the transaction; what its "
                        "COMMIT has stored stays stored");
        }
    }

    std::shared_ptr<database> in_;
    pool::purpose purpose_;
    std::unique_ptr<connection> on_;
    bool has_begun_ = false;
};

} // namespace postgres::detail
} // namespace v0
} // namespace vouch
