// SPDX-License-Identifier: MIT
// The state that all handles and transactions of one store share: one writing connection and a pool of readers. The
// writing connection is used only by the transaction that has the turn; the pool is safe for any number of threads.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <sqlite3.h>

#include <vouch/contract/error.hpp>
#include <vouch/sqlite/detail/checked_options.hpp>
#include <vouch/sqlite/detail/connection.hpp>
#include <vouch/sqlite/detail/file_registry.hpp>
#include <vouch/sqlite/detail/lock_wait.hpp>
#include <vouch/sqlite/detail/migration.hpp>
#include <vouch/sqlite/detail/queue_heads.hpp>
#include <vouch/sqlite/detail/result_codes.hpp>
#include <vouch/sqlite/detail/session.hpp>
#include <vouch/sqlite/detail/shared_commit.hpp>
#include <vouch/sqlite/detail/sql.hpp>
#include <vouch/sqlite/detail/wake_ups.hpp>
#include <vouch/sqlite/detail/watch.hpp>
#include <vouch/sqlite/options.hpp>

namespace vouch {
inline namespace v0 {
namespace sqlite::detail {

/// The error for a transaction that a statement of the application has ended. An operation is not in doubt, because it
/// has done nothing itself. A commit is in doubt unless everything is known to be rolled back.
[[nodiscard]] inline error ended_by_application(transaction_status how, bool is_commit) {
    const std::string who = "sqlite: a statement of the application on the transaction's connection has ";
    const error::details more{.in_doubt = is_commit && how != transaction_status::rolled_back};
    switch (how) {
    case transaction_status::rolled_back:
        return {error_kind::misuse, who + "rolled back the whole transaction; begin again", more};
    case transaction_status::committed:
        return {error_kind::misuse, who + "committed the transaction; its changes so far are stored", more};
    default: return {error_kind::misuse, who + "ended the transaction; its changes so far are stored or gone", more};
    }
}

class file {
  public:
    file(const std::string& path, options how) : options_(checked(std::move(how))) {
        retry_while_busy([&] {
            writer_.reset();
            writer_ = std::make_unique<connection>(path, connection::role::writer, options_);
            finish_opening();
        });
    }
    file(sqlite3* application, options how)
        : options_(checked(std::move(how))), is_application_(true),
          writer_(std::make_unique<connection>(application, options_)) {
        finish_opening();
    }

    [[nodiscard]] const options& how() const noexcept { return options_; }
    [[nodiscard]] detail::file_registry& registry() const noexcept { return *registry_; }
    [[nodiscard]] connection& writer() const noexcept { return *writer_; }
    [[nodiscard]] detail::shared_commit& shared_commit() noexcept { return shared_commit_; }

    // The writer.

    /// Waits for the turn to write and begins a transaction. `busy_limit` counts from `since`.
    void begin(lock_wait::clock::time_point since = lock_wait::clock::now()) {
        registry_->enter(since, options_.busy_limit);
        try {
            expect_file_in_place();
            if (writer_->in_transaction()) {
                throw error(error_kind::misuse, "sqlite: begin: the application has a transaction open on its "
                                                "connection; end it, or write in it with sqlite::joined");
            }
            if (registry_->is_in_doubt()) {
                settle_doubt(since);
            }
            writer_->begin(since);
            registry_->write_on(writer_->handle());
        } catch (const error& e) {
            if (e.kind() == error_kind::read_only) {
                forget_connections(); // they stay read-only, even if the file has become writable
            }
            give_up_turn();
            throw;
        } catch (...) {
            give_up_turn();
            throw;
        }
    }

    /// Ends the turn, whether it throws or not. If it returns, the transaction is in the file that was at the path when
    /// COMMIT began.
    void commit(const std::vector<std::string>& woken_queues) {
        if (const auto status = writer_->status(); status != transaction_status::open) {
            roll_back();
            throw ended_by_application(status, true);
        }
        if (has_moved()) {
            roll_back();
            throw moved("commit: nothing was committed");
        }
        try {
            const watch::pause ours(registry_->watch(), *writer_);
            writer_->execute_patiently(sql::commit);
        } catch (const error& e) {
            // After FULL the last frame was not written, and after BUSY the transaction is still open. After any other
            // error the frames may be on the disk, and a recovery of the log may find them.
            const bool in_doubt = !writer_->in_transaction() && (e.code() & 0xff) != SQLITE_FULL;
            if (in_doubt) {
                registry_->set_doubt(true);
                try_to_settle_doubt();
            }
            roll_back();
            if (e.code() == 0) { // out of memory
                throw in_doubt ? out_of_memory_in_doubt : out_of_memory;
            }
            throw error_of(e.code(), "commit", in_doubt);
        } catch (...) {
            roll_back();
            throw;
        }
        registry_->leave(woken_queues, true);
    }

    void roll_back() noexcept {
        if (!writer_->roll_back() && writer_->is_owned()) {
            writer_.reset(); // closing rolls back if nothing else can; the next turn opens a new connection
        }
        registry_->leave({});
    }

    // The readers: one for each read that runs at the same time.

    /// If a commit is in doubt, settles it first, or throws `io`.
    [[nodiscard]] std::unique_ptr<connection> take_reader() {
        if (registry_->is_in_doubt()) {
            if (is_application_) { // a thread that reads must not use the application's connection
                throw error(error_kind::io,
                            "sqlite: a commit is in doubt, so the stored entries are not known; begin a "
                            "transaction of the store to settle it");
            }
            begin(); // which settles it
            roll_back();
        }
        for (;;) {
            std::unique_ptr<connection> taken;
            {
                const std::lock_guard lock(mutex_);
                if (idle_.empty()) {
                    break;
                }
                taken = std::move(idle_.back());
                idle_.pop_back();
            }
            if (!taken->has_moved()) {
                return taken;
            }
        }
        return std::make_unique<connection>(path_, connection::role::reader, options_);
    }

    void give_back(std::unique_ptr<connection> reader) noexcept {
        try {
            const std::lock_guard lock(mutex_);
            idle_.push_back(std::move(reader));
        } catch (...) { // the connection is closed instead
        }
    }

    // Waits for work.

    /// A number that grows when another process has committed since the last look.
    [[nodiscard]] std::uint64_t commits() { return registry_->watch().look(path_, options_); }

    /// A number that grows when another process has committed something that concerns the queue.
    [[nodiscard]] std::uint64_t count_foreign(std::string_view queue) {
        return heads_.count_changes(queue, commits(), [&](std::uint64_t after) {
            auto reader = take_reader();
            const auto head = find_head(*reader, queue, after);
            give_back(std::move(reader));
            return head;
        });
    }

    /// If the system tells of commits, a look is only for those of which it did not.
    [[nodiscard]] std::chrono::steady_clock::duration look_every(bool is_told) const noexcept {
        constexpr int rarely = 50;
        constexpr std::chrono::milliseconds longest = std::chrono::hours{1};
        return std::min(options_.watch_every, longest) * (is_told ? rarely : 1);
    }

  private:
    /// Ends a turn without a transaction. If a transaction is open nevertheless, because even ROLLBACK failed, closing
    /// the connection ends it.
    void give_up_turn() noexcept {
        if (writer_ && writer_->is_owned() && writer_->in_transaction()) {
            writer_.reset();
        }
        registry_->leave({});
    }

    /// Overwrites the frames of the commit in doubt with a small commit and waits for the disk. After that, readers see
    /// what a recovery would find. Requires the turn and no open transaction.
    void settle_doubt(lock_wait::clock::time_point since) {
        try {
            writer_->wait_for_disk(synchronous::full);
            writer_->begin(since);
            run(writer_->prepared(sql::settle_doubt)).finish();
            writer_->execute_patiently(sql::commit);
            writer_->wait_for_disk(options_.synchronous);
        } catch (const error& e) {
            writer_->roll_back();
            if (e.code() == 0) { // out of memory
                throw;
            }
            throw error_of(e.code(), "an earlier commit is in doubt and cannot be settled yet");
        } catch (...) {
            writer_->roll_back();
            throw;
        }
        registry_->set_doubt(false);
    }

    void try_to_settle_doubt() noexcept {
        try {
            settle_doubt(lock_wait::clock::now());
        } catch (...) { // the next transaction tries again
        }
    }

    /// Commits into a file that was deleted or replaced would be lost. So this opens the file that is at the path now;
    /// it must have the tables, and nothing is created. Also opens a file again that was read-only.
    void expect_file_in_place() {
        if (writer_ && !writer_->is_owned()) {
            if (has_moved()) {
                throw moved("begin");
            }
            return;
        }
        if (writer_ && !has_moved() && !writer_->is_read_only()) {
            return;
        }
        forget_connections();
        auto how = options_;
        how.create = false;
        retry_while_busy([&] {
            auto opened = std::make_unique<connection>(path_, connection::role::writer, how);
            expect_schema(opened->handle(), options_.prefix);
            writer_ = std::move(opened);
        });
    }

    /// Calls `open` until the file is not locked any more, at most `busy_limit`. Opening, and the switch to a
    /// write-ahead log, take locks for which SQLite does not call the busy handler.
    template <class Open>
    void retry_while_busy(const Open& open) const {
        using clock = std::chrono::steady_clock;
        for (const auto since = clock::now();;) {
            try {
                return open();
            } catch (const error& e) {
                if (e.kind() != error_kind::busy || clock::now() - since >= options_.busy_limit) {
                    throw;
                }
            }
            std::this_thread::sleep_for(std::chrono::milliseconds{1});
        }
    }

    /// Requires the turn. Looks at most once in 20 us, the time of a short transaction: a move right after the look
    /// before COMMIT could not be noticed either.
    [[nodiscard]] bool has_moved() noexcept {
        constexpr std::chrono::microseconds look_every{20};
        const auto now = lock_wait::clock::now();
        if (now - looked_at_ < look_every) {
            return false;
        }
        const bool is_gone = writer_->has_moved();
        looked_at_ = is_gone ? lock_wait::clock::time_point{} : now;
        return is_gone;
    }

    [[nodiscard]] static error moved(std::string_view doing) {
        return {error_kind::io, "sqlite: " + std::string(doing) + ": the database file was deleted, moved or replaced"};
    }

    /// Closes all connections but those in use and the application's. They all share how the file was opened.
    void forget_connections() noexcept {
        if (writer_ && writer_->is_owned()) {
            writer_.reset();
        }
        registry_->watch().forget();
        const std::lock_guard lock(mutex_);
        idle_.clear();
    }

    void finish_opening() {
        auto* const db = writer_->handle();
        registry_ = file_registry::of(db);
        path_ = sqlite3_db_filename(db, "main");
        if (options_.create) {
            migrate(db, options_.prefix, migrations);
        } else {
            expect_schema(db, options_.prefix);
        }
    }

    options options_;
    std::string path_{};
    std::shared_ptr<detail::file_registry> registry_{};
    lock_wait::clock::time_point looked_at_{}; // when the file was last seen at its path
    const bool is_application_ = false;        // the writer is the application's connection
    std::unique_ptr<connection> writer_;       // used by the transaction that has the turn

    detail::shared_commit shared_commit_{};
    queue_heads heads_{};

    std::mutex mutex_{};
    std::vector<std::unique_ptr<connection>> idle_{};
};

} // namespace sqlite::detail
} // namespace v0
} // namespace vouch
