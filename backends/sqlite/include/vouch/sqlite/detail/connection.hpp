// SPDX-License-Identifier: MIT
// One connection with its prepared statements: opened, configured and closed by the store, or the application's own,
// which is neither configured nor closed.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <utility>

#include <sqlite3.h>

#include <vouch/contract/error.hpp>
#include <vouch/contract/id.hpp>
#include <vouch/sqlite/detail/partition.hpp>
#include <vouch/sqlite/detail/result_codes.hpp>
#include <vouch/sqlite/detail/sql.hpp>
#include <vouch/sqlite/detail/statement.hpp>
#include <vouch/sqlite/detail/turnstile.hpp>
#include <vouch/sqlite/options.hpp>
#include <vouch/sqlite/schema.hpp>

namespace vouch {
inline namespace v0 {
namespace sqlite::detail {

/// How long to wait for a lock, in short sleeps of uneven length: SQLite's own handler sleeps ever longer, so that who
/// has waited longest comes last. Here whoever is next looks again within half a millisecond, and all others now and
/// then: the one that is next may have been stopped in its sleep.
class patience {
  public:
    patience(std::chrono::milliseconds limit, turnstile& queue) noexcept : limit_(limit), queue_(queue) {}

    using clock = std::chrono::steady_clock;

    /// The waits that follow have begun at this time; none: each begins with its first look.
    void count_from(std::optional<clock::time_point> start) noexcept { start_ = start; }

    /// Whether to look again, after a sleep; `looks` is how often that was done for this lock.
    bool wait(int looks) noexcept {
        auto now = clock::now();
        if (looks == 0) {
            since_ = start_.value_or(now);
            queue_.line_up();
        }
        if (now - since_ >= limit_) {
            return false;
        }
        const auto look_by = std::min(now + now_and_then, since_ + limit_);
        do {
            sleep();
            now = clock::now();
        } while (!queue_.is_next() && now < look_by);
        return true;
    }

  private:
    static constexpr std::chrono::milliseconds now_and_then{50};

    void sleep() noexcept {
        constexpr std::uint64_t shortest = 50;
        constexpr std::uint64_t spread = 350;
        noise_ = vouch::detail::mix(noise_ + 0x9e3779b97f4a7c15U);
        std::this_thread::sleep_for(std::chrono::microseconds{static_cast<std::int64_t>(shortest + noise_ % spread)});
    }

    std::chrono::milliseconds limit_;
    turnstile& queue_;
    std::optional<clock::time_point> start_{};
    clock::time_point since_{};
    std::uint64_t noise_ = std::hash<std::thread::id>{}(std::this_thread::get_id());
};

/// SQLite below 3.35 has no RETURNING; one built without threads cannot be used by several.
inline void check_library() {
    constexpr int oldest = 3'035'000;
    if (sqlite3_libversion_number() < oldest || sqlite3_threadsafe() == 0) {
        throw error(error_kind::unsupported,
                    std::string("sqlite: needs SQLite 3.35 or newer, built for threads; this is ") +
                        sqlite3_libversion() + (sqlite3_threadsafe() == 0 ? ", built without" : ""));
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

/// Of a transaction: open, or ended in a way that is known or not.
enum class standing : std::uint8_t { open, rolled_back, committed, ended };

class connection {
  public:
    enum class role : std::uint8_t { writer, reader };

    /// Opens and configures a connection of our own.
    connection(const std::string& path, role as, const options& how)
        : prefix_(how.prefix), patience_(how.busy_limit, turnstile_) {
        check_library();
        validate_prefix(prefix_);
        if (path.find('\0') != std::string::npos) {
            throw error(error_kind::invalid_argument, "sqlite: the path contains a NUL byte");
        }
        if (!how.vfs.empty() && sqlite3_vfs_find(how.vfs.c_str()) == nullptr) {
            throw error(error_kind::invalid_argument, "sqlite: options: vfs names none that is registered");
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
        // Before anything else: even the switch to WAL meets locks of other processes.
        sqlite3_busy_handler(
            opened, [](void* self, int looks) { return static_cast<patience*>(self)->wait(looks) ? 1 : 0; },
            &patience_);
        configure(as, how);
        watch_endings();
        prepare_control();
    }

    /// Uses the application's connection.
    connection(sqlite3* db, const options& how)
        : prefix_(how.prefix), patience_(how.busy_limit, turnstile_), db_(db, closer{false}) {
        check_library();
        validate_prefix(prefix_);
        if (db == nullptr) {
            throw error(error_kind::invalid_argument, "sqlite: the connection is null");
        }
        prepare_control();
    }

    [[nodiscard]] sqlite3* handle() const noexcept { return db_.get(); }
    [[nodiscard]] bool is_owned() const noexcept { return db_.get_deleter().is_ours; }
    [[nodiscard]] bool in_transaction() const noexcept { return sqlite3_get_autocommit(handle()) == 0; }
    [[nodiscard]] const std::string& prefix() const noexcept { return prefix_; }

    /// How the transaction stands that `begin` opened. Statements of the application's on the same connection may have
    /// ended it, by ROLLBACK or COMMIT, or by an error that makes SQLite roll back. How, is seen on our own connections
    /// only.
    [[nodiscard]] standing stands() const noexcept {
        return ended_ != standing::open ? ended_ : in_transaction() ? standing::open : standing::ended;
    }

    /// Whether the file is no longer at its path: deleted, moved or replaced. SQLite itself would go on writing into
    /// it.
    [[nodiscard]] bool has_moved() const noexcept {
        int moved = 0;
        const int rc = sqlite3_file_control(handle(), "main", SQLITE_FCNTL_HAS_MOVED, &moved);
        return rc == SQLITE_OK && moved != 0;
    }

    /// Where the last purge of these two shelves stopped because it had looked at enough.
    [[nodiscard]] shelf_place& purged_until(std::int64_t succeeded, std::int64_t dead) {
        return purged_until_[{succeeded, dead}];
    }

    /// Whether it was opened when the file could not be written.
    [[nodiscard]] bool is_read_only() const noexcept { return sqlite3_db_readonly(handle(), "main") == 1; }

    /// Prepared when first asked for.
    [[nodiscard]] const statement& prepared(sql which) {
        auto& kept = statements_[static_cast<std::size_t>(which)];
        if (kept.handle() == nullptr) {
            kept = statement(handle(), text_of(which, prefix_));
        }
        return kept;
    }

    /// Ends a transaction, if one is open, without needing memory. Says whether none is open any more.
    bool roll_back() noexcept {
        if (in_transaction()) {
            const run ending(statements_[static_cast<std::size_t>(sql::roll_back)]);
            sqlite3_step(statements_[static_cast<std::size_t>(sql::roll_back)].handle());
        }
        return !in_transaction();
    }

    /// Opens a writing transaction, after those of other processes that came before. `since` is when the wait for it
    /// began.
    void begin(patience::clock::time_point since) {
        struct approach {
            explicit approach(turnstile& which) : of(which) { of.approach(); }
            approach(const approach&) = delete;
            approach& operator=(const approach&) = delete;
            ~approach() { of.leave(has_lock); }
            turnstile& of;
            bool has_lock = false;
        };
        struct counting {
            counting(patience& which, patience::clock::time_point since) noexcept : of(which) { of.count_from(since); }
            counting(const counting&) = delete;
            counting& operator=(const counting&) = delete;
            ~counting() { of.count_from(std::nullopt); }
            patience& of;
        };
        find_turnstile();
        approach mine(turnstile_);
        const counting from(patience_, since);
        if (!turnstile_.is_next()) {
            patience_.wait(0);
        }
        execute_patiently(sql::begin);
        ended_ = standing::open;
        mine.has_lock = true;
    }

    /// What commits wait for from now on, on a connection of our own.
    void wait_for_disk(synchronous how) {
        if (is_owned()) {
            const bool full = how == synchronous::full;
            detail::execute(handle(), full ? "PRAGMA synchronous = FULL" : "PRAGMA synchronous = NORMAL", "configure");
        }
    }

    /// Runs a statement that has no parameters and no rows.
    void execute(sql which) { run(prepared(which)).step(); }

    /// As `execute`, and waits while somebody else has the lock. Only for statements that may be repeated after BUSY:
    /// the busy handler of an application's connection may have given up at once.
    void execute_patiently(sql which) {
        for (int looks = 0;; ++looks) {
            try {
                return execute(which);
            } catch (const error& e) {
                if ((e.code() & 0xff) != SQLITE_BUSY || is_owned() || !patience_.wait(looks)) {
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
        // The switch changes the file, and a file that is refused stays as it is.
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
                        "sqlite: the database cannot use a write-ahead log; it must be a file, on a local disk");
        }
        wait_for_disk(how.synchronous);
        // What a long reader made the log grow to is given back when the reader has gone.
        detail::execute(handle(), "PRAGMA journal_size_limit = 8388608", "configure");
    }

    void watch_endings() noexcept {
        sqlite3_commit_hook(
            handle(),
            [](void* self) {
                static_cast<connection*>(self)->ended_ = standing::committed;
                return 0;
            },
            this);
        sqlite3_rollback_hook(
            handle(), [](void* self) { static_cast<connection*>(self)->ended_ = standing::rolled_back; }, this);
    }

    /// Beside a file of the system's own; what another VFS has at its path, nobody knows.
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

    /// What ends a transaction must not need memory to be prepared.
    void prepare_control() {
        for (const auto which : {sql::begin, sql::commit, sql::roll_back}) {
            std::ignore = prepared(which);
        }
    }

    std::string prefix_;
    turnstile turnstile_{};
    bool has_looked_for_turnstile_ = false;
    standing ended_ = standing::open;
    std::map<std::pair<std::int64_t, std::int64_t>, shelf_place> purged_until_{};
    patience patience_; // outlives the connection, which calls it
    std::unique_ptr<sqlite3, closer> db_{};
    std::array<statement, detail::statements.size()> statements_{}; // finalised before the connection closes
};

} // namespace sqlite::detail
} // namespace v0
} // namespace vouch
