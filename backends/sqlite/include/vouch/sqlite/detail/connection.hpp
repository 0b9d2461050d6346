// SPDX-License-Identifier: MIT
// One SQLite connection with its prepared statements. It is either opened, configured and closed here, or belongs to
// the application and is neither configured nor closed. Used by one thread at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include <sqlite3.h>

#include <vouch/contract/error.hpp>
#include <vouch/sqlite/detail/lock_wait.hpp>
#include <vouch/sqlite/detail/migration.hpp>
#include <vouch/sqlite/detail/partition.hpp>
#include <vouch/sqlite/detail/result_codes.hpp>
#include <vouch/sqlite/detail/sql.hpp>
#include <vouch/sqlite/detail/statement.hpp>
#include <vouch/sqlite/detail/turnstile.hpp>
#include <vouch/sqlite/options.hpp>
#include <vouch/sqlite/prefix.hpp>

namespace vouch {
inline namespace v0 {
namespace sqlite::detail {

/// Throws `unsupported` if SQLite is older than 3.35, which has no RETURNING, or was built without threads.
inline void check_library() {
    constexpr int oldest = 3'035'000;
    if (sqlite3_libversion_number() < oldest || sqlite3_threadsafe() == 0) {
        throw error(error_kind::unsupported,
                    std::string("sqlite: needs SQLite 3.35 or newer, built with thread support; this is ") +
                        sqlite3_libversion() + (sqlite3_threadsafe() == 0 ? ", built without thread support" : ""));
    }
}

struct closer {
    bool is_ours = false;
    void operator()(sqlite3* db) const noexcept {
        if (is_ours) {
            sqlite3_close_v2(db);
        }
    }
};

/// The state of a transaction that `begin` opened. `ended`: it is not known how.
enum class transaction_status : std::uint8_t { open, rolled_back, committed, ended };

class connection {
  public:
    enum class role : std::uint8_t { writer, reader };

    /// Opens and configures a connection.
    connection(const std::string& path, role as, const options& how)
        : prefix_(how.prefix), lock_wait_(how.busy_limit, turnstile_) {
        check_library();
        validate_prefix(prefix_);
        if (path.find('\0') != std::string::npos) {
            throw error(error_kind::invalid_argument, "sqlite: the path contains a NUL byte; it must not");
        }
        if (!how.vfs.empty() && sqlite3_vfs_find(how.vfs.c_str()) == nullptr) {
            throw error(error_kind::invalid_argument, "sqlite: options: vfs is not the name of a registered VFS");
        }
        int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX; // used by one thread at a time
        if (as == role::writer && how.create) {
            flags |= SQLITE_OPEN_CREATE;
        }
        sqlite3* opened = nullptr;
        const int rc = sqlite3_open_v2(path.c_str(), &opened, flags, how.vfs.empty() ? nullptr : how.vfs.c_str());
        db_ = {opened, closer{true}};
        if (rc != SQLITE_OK) {
            throw error_of(opened == nullptr ? rc : sqlite3_extended_errcode(opened), "open");
        }
        sqlite3_extended_result_codes(opened, 1);
        // Before anything else, because even the switch to WAL has to wait for locks of other processes.
        sqlite3_busy_handler(
            opened, [](void* self, int looks) { return static_cast<lock_wait*>(self)->wait(looks) ? 1 : 0; },
            &lock_wait_);
        configure(as, how);
        watch_endings();
        prepare_control();
    }

    /// Uses the application's connection.
    connection(sqlite3* db, const options& how)
        : prefix_(how.prefix), lock_wait_(how.busy_limit, turnstile_), db_(db, closer{false}) {
        check_library();
        validate_prefix(prefix_);
        if (db == nullptr) {
            throw error(error_kind::invalid_argument, "sqlite: the connection is null; pass an open sqlite3*");
        }
        prepare_control();
    }

    [[nodiscard]] sqlite3* handle() const noexcept { return db_.get(); }
    [[nodiscard]] bool is_owned() const noexcept { return db_.get_deleter().is_ours; }
    [[nodiscard]] bool in_transaction() const noexcept { return sqlite3_get_autocommit(handle()) == 0; }
    [[nodiscard]] const std::string& prefix() const noexcept { return prefix_; }

    /// The status of the transaction that `begin` opened. The application may have ended it with a statement of its own
    /// on this connection: a ROLLBACK, a COMMIT, or an error that makes SQLite roll back. How it ended is known only on
    /// connections that were opened here.
    [[nodiscard]] transaction_status status() const noexcept {
        return ended_ != transaction_status::open ? ended_
               : in_transaction()                 ? transaction_status::open
                                                  : transaction_status::ended;
    }

    /// Whether the file was deleted, moved or replaced. SQLite itself would continue to write into it.
    [[nodiscard]] bool has_moved() const noexcept {
        int moved = 0;
        const int rc = sqlite3_file_control(handle(), "main", SQLITE_FCNTL_HAS_MOVED, &moved);
        return rc == SQLITE_OK && moved != 0;
    }

    /// Where the last purge of these two partitions stopped.
    [[nodiscard]] partition_position& purged_until(std::int64_t succeeded, std::int64_t dead) {
        return purged_until_[{succeeded, dead}];
    }

    /// Whether the file could not be written when the connection was opened.
    [[nodiscard]] bool is_read_only() const noexcept { return sqlite3_db_readonly(handle(), "main") == 1; }

    /// Prepares the statement on first use.
    [[nodiscard]] const statement& prepared(sql which) {
        auto& kept = statements_[static_cast<std::size_t>(which)];
        if (kept.handle() == nullptr) {
            kept = statement(handle(), text_of(which, prefix_));
        }
        return kept;
    }

    /// Rolls back if a transaction is open, without allocating. Returns whether none is open now.
    bool roll_back() noexcept {
        if (in_transaction()) {
            const run ending(statements_[static_cast<std::size_t>(sql::roll_back)]);
            sqlite3_step(statements_[static_cast<std::size_t>(sql::roll_back)].handle());
        }
        return !in_transaction();
    }

    /// Begins a writing transaction, after the processes earlier in the queue. `busy_limit` counts from `since`.
    void begin(lock_wait::clock::time_point since) {
        struct approach {
            explicit approach(turnstile& which) : of(which) { of.approach(); }
            approach(const approach&) = delete;
            approach& operator=(const approach&) = delete;
            ~approach() { of.leave(has_lock); }
            turnstile& of;
            bool has_lock = false;
        };
        struct counting {
            counting(lock_wait& which, lock_wait::clock::time_point since) noexcept : of(which) {
                of.count_from(since);
            }
            counting(const counting&) = delete;
            counting& operator=(const counting&) = delete;
            ~counting() { of.count_from(std::nullopt); }
            lock_wait& of;
        };
        find_turnstile();
        approach mine(turnstile_);
        const counting from(lock_wait_, since);
        if (!turnstile_.is_next()) {
            lock_wait_.wait(0);
        }
        execute_patiently(sql::begin);
        ended_ = transaction_status::open;
        mine.has_lock = true;
    }

    /// Sets what commits wait for. Has no effect on a connection of the application.
    void wait_for_disk(synchronous how) {
        if (is_owned()) {
            const bool full = how == synchronous::full;
            detail::execute(handle(), full ? "PRAGMA synchronous = FULL" : "PRAGMA synchronous = NORMAL", "configure");
        }
    }

    /// Runs a statement that has no parameters and no rows.
    void execute(sql which) { run(prepared(which)).step(); }

    /// Like `execute`, but also waits for the lock on a connection of the application, whose busy handler may give up
    /// at once. Only for statements that may be repeated after BUSY.
    void execute_patiently(sql which) {
        for (int looks = 0;; ++looks) {
            try {
                return execute(which);
            } catch (const error& e) {
                if ((e.code() & 0xff) != SQLITE_BUSY || is_owned() || !lock_wait_.wait(looks)) {
                    throw;
                }
            }
        }
    }

  private:
    void configure(role as, const options& how) {
        if (as == role::reader) {
            detail::execute(handle(), "PRAGMA query_only = 1", "configure");
            return;
        }
        // Before the switch to WAL, because that changes the file, and a file that is refused must not change.
        if (how.create) {
            expect_utf8(handle());
            refuse_newer(stored_version(handle(), prefix_), migrations.size());
        } else {
            expect_schema(handle(), prefix_);
        }
        const statement wal(handle(), "PRAGMA journal_mode = WAL");
        run switching(wal);
        if (!switching.step() || switching.bytes(0) != "wal") {
            throw error(error_kind::unsupported,
                        "sqlite: the database cannot use a write-ahead log; use a file on a local disk");
        }
        wait_for_disk(how.synchronous);
        // A long read makes the log grow; this shrinks it again afterwards.
        detail::execute(handle(), "PRAGMA journal_size_limit = 8388608", "configure");
    }

    void watch_endings() noexcept {
        sqlite3_commit_hook(
            handle(),
            [](void* self) {
                static_cast<connection*>(self)->ended_ = transaction_status::committed;
                return 0;
            },
            this);
        sqlite3_rollback_hook(
            handle(), [](void* self) { static_cast<connection*>(self)->ended_ = transaction_status::rolled_back; },
            this);
    }

    /// Only for SQLite's own VFS: another VFS may not keep a file at the path.
    void find_turnstile() {
        sqlite3_vfs* vfs = nullptr;
        if (has_looked_for_turnstile_ || is_read_only()) {
            return;
        }
        if (sqlite3_file_control(handle(), "main", SQLITE_FCNTL_VFS_POINTER, &vfs) == SQLITE_OK && vfs != nullptr &&
            std::string_view(vfs->zName).starts_with("unix")) {
            turnstile_ = turnstile(sqlite3_db_filename(handle(), "main"));
        }
        has_looked_for_turnstile_ = true;
    }

    /// Prepared in advance, so that a transaction can be ended when there is no memory left.
    void prepare_control() {
        for (const auto which : {sql::begin, sql::commit, sql::roll_back}) {
            std::ignore = prepared(which);
        }
    }

    std::string prefix_;
    turnstile turnstile_{};
    bool has_looked_for_turnstile_ = false;
    transaction_status ended_ = transaction_status::open;
    std::map<std::pair<std::int64_t, std::int64_t>, partition_position> purged_until_{};
    lock_wait lock_wait_; // outlives `db_`, whose busy handler calls it
    std::unique_ptr<sqlite3, closer> db_{};
    std::array<statement, detail::statements.size()> statements_{}; // finalised before the connection closes
};

} // namespace sqlite::detail
} // namespace v0
} // namespace vouch
