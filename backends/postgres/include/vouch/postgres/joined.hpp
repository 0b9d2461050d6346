// SPDX-License-Identifier: MIT
// A writer inside a transaction that the application has opened on its own connection. Business rows and entries are
// then committed together or not at all:
//
//   postgres::joined writer(connection);        // once per connection, or once per transaction
//   exec(connection, "BEGIN");                  // by the application
//   exec(connection, "INSERT INTO orders ...");
//   writer.enqueue(drafts, now);
//   exec(connection, "COMMIT");                 // by the application
//
// It never commits, and its destructor changes nothing. Each call is all or nothing: it runs in a savepoint, and leaves
// the connection as it was, without settings or prepared statements of its own. After `conflict` the application rolls
// back its transaction and begins again. The transaction must be READ COMMITTED, PostgreSQL's default, or SERIALIZABLE.
// Destroy the object before you close the connection. Used by one thread at a time.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <libpq-fe.h>

#include <vouch/contract/capability.hpp>
#include <vouch/contract/error.hpp>
#include <vouch/contract/validated_reader.hpp>
#include <vouch/contract/validated_writer.hpp>
#include <vouch/postgres/detail/connection.hpp>
#include <vouch/postgres/detail/entry_reader.hpp>
#include <vouch/postgres/detail/migration.hpp>
#include <vouch/postgres/detail/notify.hpp>
#include <vouch/postgres/detail/purge_positions.hpp>
#include <vouch/postgres/detail/session.hpp>
#include <vouch/postgres/detail/sqlstate.hpp>
#include <vouch/postgres/detail/table_names.hpp>
#include <vouch/postgres/detail/unchecked_writer.hpp>
#include <vouch/postgres/prefix.hpp>

namespace vouch {
inline namespace v0 {
namespace postgres {

/// The operations are those of the concept `writer`. Each throws `misuse` if no transaction is open on the connection, or
/// if it has failed.
class joined : public validated_writer<joined> {
  public:
    /// Requires that the tables exist: `migrate(connection)` creates them.
    explicit joined(PGconn* connection, std::string_view prefix = default_prefix)
        : member_(detail::translate_bad_alloc([&] { return std::make_unique<member>(connection, prefix); })) {}

    joined(joined&&) noexcept = default;
    joined& operator=(joined&&) noexcept = default;
    ~joined() = default;

  private:
    friend class validated_reader<joined>;
    friend class validated_writer<joined>;

    struct member {
        member(PGconn* db, std::string_view prefix) : on(db, detail::table_names(prefix)) {
            detail::expect_usable(db);
            detail::expect_schema(db, on.names());
        }
        detail::connection on;
        detail::purge_positions positions{};
    };

    [[nodiscard]] const capabilities& expect_open() const {
        const auto status = member_ ? PQtransactionStatus(member_->on.handle()) : PQTRANS_IDLE;
        if (status == PQTRANS_IDLE || status == PQTRANS_UNKNOWN) {
            throw error(error_kind::misuse,
                        "postgres: joined: no transaction is open on the application's connection; begin one first");
        }
        if (status != PQTRANS_INTRANS) {
            throw error(error_kind::misuse, "postgres: joined: the application's transaction has failed, or a query is "
                                            "still running; roll back, or read its results first");
        }
        return detail::supported;
    }

    /// Each call undoes itself, and the transaction belongs to the application.
    void close() const noexcept {}

    /// Takes the connection out of pipeline mode, in which the application cannot use it.
    struct use {
        detail::connection& on;
        ~use() { on.leave_pipeline(); }
    };

    template <class Operation>
    auto read(const Operation& operation) const {
        return detail::translate_bad_alloc([&] {
            const use in{member_->on};
            return within_savepoint([&] { return operation(detail::entry_reader(in.on)); });
        });
    }

    template <class Operation>
    auto write(const Operation& operation) {
        return detail::translate_bad_alloc([&] {
            const use in{member_->on};
            return within_savepoint([&] {
                detail::session session;
                auto answer = operation(detail::unchecked_writer(in.on, session, member_->positions));
                detail::add_notify(in.on, session);
                return answer;
            });
        });
    }

    /// Runs the operation in a savepoint, so that an error leaves the transaction as it was.
    template <class Operation>
    auto within_savepoint(const Operation& operation) const {
        auto& on = member_->on;
        on.set_doing("joined");
        try {
            on.add(detail::sql::savepoint);
            on.add(detail::sql::expect_isolation);
            auto answer = operation();
            on.add(detail::sql::release);
            on.exchange();
            return answer;
        } catch (const error& e) {
            undo();
            if (e.text_code() == detail::wrong_isolation) {
                throw error(error_kind::unsupported,
                            "postgres: joined: the application's transaction is REPEATABLE READ; "
                            "begin it READ COMMITTED or SERIALIZABLE");
            }
            throw;
        } catch (...) {
            undo();
            throw;
        }
    }

    /// If this fails, the connection is lost, and the transaction with it.
    void undo() const noexcept {
        try {
            auto& on = member_->on;
            if (!on.is_lost()) {
                on.abandon();
                on.add(detail::sql::roll_back_to);
                on.add(detail::sql::release);
                on.exchange();
            }
        } catch (...) {
            // The next call reports it.
        }
    }

    std::unique_ptr<member> member_;
};

} // namespace postgres
} // namespace v0
} // namespace vouch
