// SPDX-License-Identifier: MIT
// A writer inside a transaction that the application has opened on its own connection, so that business rows and
// entries come into being together or not at all:
//
//   sqlite::joined outbox(connection);          // once per connection, or once per transaction
//   exec(connection, "BEGIN IMMEDIATE");        // the application's
//   exec(connection, "INSERT INTO orders ...");
//   outbox.enqueue(drafts, now);
//   exec(connection, "COMMIT");                 // the application's, too
//
// It never commits, and its destruction changes nothing. Each call is all or nothing by a savepoint of its own. After
// `conflict` (the transaction began by reading, and somebody has written since) roll back and begin again, best with
// BEGIN IMMEDIATE. A COMMIT that fails with an I/O error is in doubt: until the next commit to the file succeeds, a
// crash may bring it back. Finalise first, close later: destroy it before the connection.
#pragma once

#include <memory>
#include <string>
#include <tuple>
#include <utility>

#include <sqlite3.h>

#include <vouch/contract/error.hpp>
#include <vouch/sqlite/detail/connection.hpp>
#include <vouch/sqlite/detail/entry_writer.hpp>
#include <vouch/sqlite/detail/file_registry.hpp>
#include <vouch/sqlite/detail/result_codes.hpp>
#include <vouch/sqlite/detail/sql.hpp>
#include <vouch/sqlite/options.hpp>
#include <vouch/sqlite/schema.hpp>
#include <vouch/sqlite/store.hpp>

namespace vouch {
inline namespace v0 {
namespace sqlite {

class joined : public detail::writer<joined> {
  public:
    /// The tables must be there: `migrate(connection)` creates them.
    explicit joined(sqlite3* connection, std::string prefix = std::string(default_prefix))
        : place_(detail::in_memory([&] { return std::make_unique<place>(connection, std::move(prefix)); })) {}

    joined(joined&&) noexcept = default;
    joined& operator=(joined&&) noexcept = default;
    ~joined() = default;

  private:
    friend class detail::writer<joined>;

    struct place {
        place(sqlite3* db, std::string prefix) : on(db, {.prefix = std::move(prefix)}), hub(detail::hub::of(db)) {
            detail::expect_schema(db, on.prefix());
            // Taking a call back must not need memory to be prepared.
            for (const auto which : {detail::sql::savepoint, detail::sql::release, detail::sql::roll_back_to}) {
                std::ignore = on.prepared(which);
            }
        }
        place(const place&) = delete;
        place& operator=(const place&) = delete;
        ~place() { hub->part(this); }

        detail::connection on;
        std::shared_ptr<detail::hub> hub;
    };

    void expect_open() const {
        if (!place_ || !place_->on.in_transaction()) {
            throw error(error_kind::misuse,
                        "sqlite: joined needs a transaction open on the application's connection; there is none");
        }
        detail::in_memory([&] {
            place_->hub->join(place_.get(), place_->on.handle());
            // One that writes settles it by its commit.
            if (place_->hub->is_in_doubt() && sqlite3_txn_state(place_->on.handle(), "main") != SQLITE_TXN_WRITE) {
                throw error(error_kind::io, "sqlite: a commit is in doubt and joined cannot settle it; begin a "
                                            "transaction of the store, or this one with BEGIN IMMEDIATE");
            }
        });
    }

    template <class Operation>
    auto use(Operation&& operation) {
        expect_open();
        auto& on = place_->on;
        on.execute(detail::sql::savepoint);
        try {
            return detail::in_memory([&] {
                detail::session in;
                auto answer = operation(on, in);
                place_->hub->stir(on.handle(), in.stirred);
                on.execute(detail::sql::release);
                return answer;
            });
        } catch (...) {
            undo();
            throw;
        }
    }

    template <class Operation>
    auto read(Operation&& operation) const {
        expect_open();
        return detail::in_memory([&] { return operation(place_->on); });
    }

    /// Takes the call back, unless SQLite has rolled back everything. If even that fails, all goes, so that nobody can
    /// commit half a call.
    void undo() noexcept {
        auto& on = place_->on;
        try {
            if (on.in_transaction()) {
                on.execute(detail::sql::roll_back_to);
                on.execute(detail::sql::release);
            }
        } catch (...) {
            on.roll_back();
        }
    }

    std::unique_ptr<place> place_;
};

} // namespace sqlite
} // namespace v0
} // namespace vouch
