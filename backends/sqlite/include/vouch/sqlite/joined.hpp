// SPDX-License-Identifier: MIT
// A writer inside a transaction that the application has opened on its own connection. Business rows and entries are
// then committed together or not at all:
//
//   sqlite::joined writer(connection);          // once per connection, or once per transaction
//   exec(connection, "BEGIN IMMEDIATE");        // by the application
//   exec(connection, "INSERT INTO orders ...");
//   writer.enqueue(drafts, now);
//   exec(connection, "COMMIT");                 // by the application
//
// It never commits, and its destructor changes nothing. Each call is all or nothing: it runs in a savepoint. `conflict`
// means that the transaction began by reading and another connection has written since: roll back and begin again, best
// with BEGIN IMMEDIATE. A COMMIT that fails with an I/O error is in doubt: until the next successful commit, recovery
// after a crash may still apply it. Destroy the object before you close the connection. Used by one thread at a time.
#pragma once

#include <memory>
#include <string>
#include <tuple>
#include <utility>

#include <sqlite3.h>

#include <vouch/contract/capability.hpp>
#include <vouch/contract/error.hpp>
#include <vouch/contract/validated_reader.hpp>
#include <vouch/contract/validated_writer.hpp>
#include <vouch/sqlite/detail/connection.hpp>
#include <vouch/sqlite/detail/entry_reader.hpp>
#include <vouch/sqlite/detail/file_registry.hpp>
#include <vouch/sqlite/detail/migration.hpp>
#include <vouch/sqlite/detail/result_codes.hpp>
#include <vouch/sqlite/detail/session.hpp>
#include <vouch/sqlite/detail/sql.hpp>
#include <vouch/sqlite/detail/unchecked_writer.hpp>
#include <vouch/sqlite/prefix.hpp>

namespace vouch {
inline namespace v0 {
namespace sqlite {

/// The operations are those of the concept `writer`. Each throws `misuse` if no transaction is open on the connection.
class joined : public validated_writer<joined> {
  public:
    /// Requires that the tables exist: `migrate(connection)` creates them.
    explicit joined(sqlite3* connection, std::string prefix = std::string(default_prefix))
        : member_(
              detail::translate_bad_alloc([&] { return std::make_unique<member>(connection, std::move(prefix)); })) {}

    joined(joined&&) noexcept = default;
    joined& operator=(joined&&) noexcept = default;
    ~joined() = default;

  private:
    friend class validated_reader<joined>;
    friend class validated_writer<joined>;

    /// The connection, known to the file's registry by this object's address.
    struct member {
        member(sqlite3* db, std::string prefix)
            : on(db, {.prefix = std::move(prefix)}), registry(detail::file_registry::of(db)) {
            detail::expect_schema(db, on.prefix());
            // Prepared in advance, so that a call can be undone when there is no memory left.
            for (const auto which : {detail::sql::savepoint, detail::sql::release, detail::sql::roll_back_to}) {
                std::ignore = on.prepared(which);
            }
        }
        member(const member&) = delete;
        member& operator=(const member&) = delete;
        ~member() { registry->part(this); }

        detail::connection on;
        std::shared_ptr<detail::file_registry> registry;
    };

    [[nodiscard]] const capabilities& expect_open() const {
        if (!member_ || !member_->on.in_transaction()) {
            throw error(error_kind::misuse,
                        "sqlite: joined: no transaction is open on the application's connection; begin one first");
        }
        detail::translate_bad_alloc([&] {
            member_->registry->join(member_.get(), member_->on.handle());
            // The commit of a transaction that writes settles the doubt.
            if (member_->registry->is_in_doubt() &&
                sqlite3_txn_state(member_->on.handle(), "main") != SQLITE_TXN_WRITE) {
                throw error(error_kind::io, "sqlite: joined: an earlier commit is in doubt; begin a transaction of the "
                                            "store, or this one with BEGIN IMMEDIATE, to settle it");
            }
        });
        return detail::supported;
    }

    /// Each call undoes itself, and the transaction belongs to the application.
    void close() const noexcept {}

    template <class Operation>
    auto read(const Operation& operation) const {
        return detail::translate_bad_alloc([&] { return operation(detail::entry_reader(member_->on)); });
    }

    template <class Operation>
    auto write(const Operation& operation) {
        auto& on = member_->on;
        on.execute(detail::sql::savepoint);
        try {
            return detail::translate_bad_alloc([&] {
                detail::session in;
                auto answer = operation(detail::unchecked_writer(on, in));
                member_->registry->wake(on.handle(), in.woken_queues);
                on.execute(detail::sql::release);
                return answer;
            });
        } catch (...) {
            undo();
            throw;
        }
    }

    /// Undoes the call, unless SQLite has rolled back everything. If that fails, rolls back the whole transaction, so
    /// that half a call is never committed.
    void undo() noexcept {
        auto& on = member_->on;
        try {
            if (on.in_transaction()) {
                on.execute(detail::sql::roll_back_to);
                on.execute(detail::sql::release);
            }
        } catch (...) {
            on.roll_back();
        }
    }

    std::unique_ptr<member> member_;
};

} // namespace sqlite
} // namespace v0
} // namespace vouch
