// SPDX-License-Identifier: MIT
// What all handles and transactions of one store share: the one connection that writes and the ones that read.
#pragma once

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
#include <vouch/sqlite/detail/connection.hpp>
#include <vouch/sqlite/detail/file_registry.hpp>
#include <vouch/sqlite/detail/result_codes.hpp>
#include <vouch/sqlite/detail/sql.hpp>
#include <vouch/sqlite/detail/watch.hpp>
#include <vouch/sqlite/options.hpp>
#include <vouch/sqlite/schema.hpp>

namespace vouch {
inline namespace v0 {
namespace sqlite::detail {

/// A statement of the application's has ended our transaction on its connection. An operation says so without doubt: it
/// has done nothing itself. A commit is in doubt unless all is known to be gone.
[[nodiscard]] inline error ended_by_application(standing how, bool is_commit) {
    const std::string who = "sqlite: a statement of the application's on the transaction's connection has ";
    const error::details more{.in_doubt = is_commit && how != standing::rolled_back};
    switch (how) {
    case standing::rolled_back: return {error_kind::misuse, who + "rolled back all of it; begin again", more};
    case standing::committed: return {error_kind::misuse, who + "committed what it had done so far", more};
    default: return {error_kind::misuse, who + "ended it; what it had done so far is stored or gone", more};
    }
}

class file {
  public:
    file(const std::string& path, options how) : options_(checked(std::move(how))) {
        patiently([&] {
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
    [[nodiscard]] detail::hub& hub() const noexcept { return *hub_; }
    [[nodiscard]] connection& writer() const noexcept { return *writer_; }

    // The writer's turn.

    void begin() {
        const auto since = patience::clock::now();
        hub_->enter(options_.busy_limit);
        try {
            expect_in_place();
            if (writer_->in_transaction()) {
                throw error(error_kind::misuse, "sqlite: the application has a transaction open on its connection; "
                                                "sqlite::joined writes inside it");
            }
            if (hub_->is_in_doubt()) {
                settle_doubt(since);
            }
            writer_->begin(since);
            hub_->write_on(writer_->handle());
        } catch (const error& e) {
            if (e.kind() == error_kind::read_only) {
                forget_connections(); // what they share says so, even when it is no longer true
            }
            give_up_turn();
            throw;
        } catch (...) {
            give_up_turn();
            throw;
        }
    }

    /// Ends the turn in any case. What it does not throw for is in the file that was at the path when COMMIT began.
    void commit(const std::vector<std::string>& stirred) {
        if (const auto how = writer_->stands(); how != standing::open) {
            roll_back();
            throw ended_by_application(how, true);
        }
        if (has_moved()) {
            roll_back();
            throw moved("commit: nothing was committed");
        }
        try {
            const watch::pause ours(hub_->watch(), *writer_);
            writer_->execute_patiently(sql::commit);
        } catch (const error& e) {
            // A commit that had no room never wrote its last frame, and one that was only busy is still open. After
            // anything else the frames may be on the disk, and whoever recovers the log may find them.
            const bool in_doubt = !writer_->in_transaction() && (e.code() & 0xff) != SQLITE_FULL;
            if (in_doubt) {
                hub_->set_doubt(true);
                try_to_settle_doubt();
            }
            roll_back();
            if (e.code() == 0) { // there was no memory to say more
                throw in_doubt ? out_of_memory_in_doubt : out_of_memory;
            }
            throw error_of(e.code(), "commit", in_doubt);
        } catch (...) {
            roll_back();
            throw;
        }
        hub_->leave(stirred, true);
    }

    void roll_back() noexcept {
        if (!writer_->roll_back() && writer_->is_owned()) {
            writer_.reset(); // closing rolls back what nothing else can; the next turn opens a fresh one
        }
        hub_->leave({});
    }

    // Readers: as many as read at the same time.

    [[nodiscard]] std::unique_ptr<connection> take_reader() {
        if (hub_->is_in_doubt()) {
            if (is_application_) { // its connection is not ours to use from any thread that reads
                throw error(error_kind::io, "sqlite: a commit is in doubt, and what is stored is not known; begin a "
                                            "transaction of the store, which settles it");
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
        } catch (...) { // closed instead of kept
        }
    }

    /// Grows when others have committed since the last look.
    [[nodiscard]] std::uint64_t look_for_commits() { return hub_->watch().look(path_, options_); }

  private:
    /// A turn that has not become a transaction. If one is left open after all, because not even ROLLBACK could run,
    /// only closing its connection ends it.
    void give_up_turn() noexcept {
        if (writer_ && writer_->is_owned() && writer_->in_transaction()) {
            writer_.reset();
        }
        hub_->leave({});
    }

    /// A commit of its own is written over the frames of the one in doubt, from the first of them on, and waits for the
    /// disk; so what readers see is what a recovery finds. For the one that has the turn, outside of a transaction.
    void settle_doubt(patience::clock::time_point since) {
        try {
            writer_->wait_for_disk(synchronous::full);
            writer_->begin(since);
            run(writer_->prepared(sql::settle_doubt)).finish();
            writer_->execute_patiently(sql::commit);
            writer_->wait_for_disk(options_.synchronous);
        } catch (const error& e) {
            writer_->roll_back();
            if (e.code() == 0) { // there was no memory to say more
                throw;
            }
            throw error_of(e.code(), "a commit is in doubt and cannot be settled yet");
        } catch (...) {
            writer_->roll_back();
            throw;
        }
        hub_->set_doubt(false);
    }

    void try_to_settle_doubt() noexcept {
        try {
            settle_doubt(patience::clock::now());
        } catch (...) { // it stays in doubt: the next transaction tries again
        }
    }

    /// Commits into a file that was deleted or replaced would be lost. Whatever is at its path now is opened instead,
    /// if it has our tables; nothing is created there. And what could not be written when it was opened may be by now.
    void expect_in_place() {
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
        patiently([&] {
            auto opened = std::make_unique<connection>(path_, connection::role::writer, how);
            expect_schema(opened->handle(), options_.prefix);
            writer_ = std::move(opened);
        });
    }

    /// Opens, again and again while others have the file locked. Opening and the switch to a write-ahead log take locks
    /// for which SQLite does not ask the busy handler, because waiting inside them could be a deadlock.
    template <class Open>
    void patiently(const Open& open) const {
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

    /// For the one that has the turn. A look is good for as long as a short transaction takes: a move right behind the
    /// last look before COMMIT could not be seen either.
    [[nodiscard]] bool has_moved() noexcept {
        constexpr std::chrono::microseconds good_for{20};
        const auto now = patience::clock::now();
        if (now - looked_at_ < good_for) {
            return false;
        }
        const bool is_gone = writer_->has_moved();
        looked_at_ = is_gone ? patience::clock::time_point{} : now;
        return is_gone;
    }

    [[nodiscard]] static error moved(std::string_view doing) {
        return {error_kind::io,
                "sqlite: " + std::string(doing) + ": the database file has been deleted, moved or replaced"};
    }

    /// All but those in use elsewhere and the application's. They share how the file and its index were opened.
    void forget_connections() noexcept {
        if (writer_ && writer_->is_owned()) {
            writer_.reset();
        }
        hub_->watch().forget();
        const std::lock_guard lock(mutex_);
        idle_.clear();
    }

    void finish_opening() {
        auto* const db = writer_->handle();
        hub_ = hub::of(db);
        path_ = sqlite3_db_filename(db, "main");
        if (options_.create) {
            sqlite::migrate(db, options_.prefix);
        } else {
            expect_schema(db, options_.prefix);
        }
    }

    options options_;
    std::string path_{};
    std::shared_ptr<detail::hub> hub_{};
    patience::clock::time_point looked_at_{}; // when the writer's file was last seen at its path
    const bool is_application_ = false;       // the writer is a connection of the application's
    std::unique_ptr<connection> writer_;      // used by the transaction that has the turn

    std::mutex mutex_{};
    std::vector<std::unique_ptr<connection>> idle_{};
};

} // namespace sqlite::detail
} // namespace v0
} // namespace vouch
