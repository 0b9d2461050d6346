// SPDX-License-Identifier: MIT
// What all handles and transactions of one store share: the one connection that writes, the ones that read, and one
// that watches for commits of other processes.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <sqlite3.h>

#include <vouch/contract/error.hpp>
#include <vouch/sqlite/connection.hpp>
#include <vouch/sqlite/error.hpp>
#include <vouch/sqlite/hub.hpp>
#include <vouch/sqlite/options.hpp>
#include <vouch/sqlite/schema.hpp>
#include <vouch/sqlite/sql.hpp>
#include <vouch/sqlite/statement.hpp>

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
    file(std::string path, options how)
        : options_(checked(std::move(how))),
          writer_(std::make_unique<connection>(path, connection::role::writer, options_)) {
        finish_opening();
    }
    file(sqlite3* application, options how)
        : options_(checked(std::move(how))), writer_(std::make_unique<connection>(application, options_)) {
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
            hub_->leave({});
            throw;
        } catch (...) {
            hub_->leave({});
            throw;
        }
    }

    /// Ends the turn in any case.
    void commit(const std::vector<std::string>& stirred) {
        if (const auto how = writer_->stands(); how != standing::open) {
            roll_back();
            throw ended_by_application(how, true);
        }
        try {
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
        hub_->leave(stirred);
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

    /// A number that grows when anybody, here or elsewhere, has committed since the last look.
    [[nodiscard]] std::uint64_t look_for_commits() {
        const std::lock_guard lock(watch_mutex_);
        if (!watch_ || watch_->has_moved()) {
            watch_.reset();
            watch_ = std::make_unique<connection>(path_, connection::role::reader, options_);
        }
        run row(watch_->prepared(sql::data_version));
        row.step();
        if (const auto version = row.integer(0); version != version_) {
            version_ = version;
            commits_seen_ += 1;
        }
        return commits_seen_;
    }

  private:
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
        } catch (...) { // it stays in doubt: whoever comes next tries again
        }
    }

    /// Commits into a file that was deleted or replaced would be lost. Whatever is at its path now is opened instead,
    /// if it has our tables; nothing is created there. And what could not be written when it was opened may be by now.
    void expect_in_place() {
        if (writer_ && !writer_->is_owned()) {
            if (writer_->has_moved()) {
                throw error(error_kind::io, "sqlite: the database file has been deleted, moved or replaced");
            }
            return;
        }
        if (writer_ && !writer_->has_moved() && !writer_->is_read_only()) {
            return;
        }
        forget_connections();
        auto how = options_;
        how.create = false;
        auto opened = std::make_unique<connection>(path_, connection::role::writer, how);
        expect_schema(opened->handle(), options_.prefix);
        writer_ = std::move(opened);
    }

    /// All but those in use elsewhere and the application's. They share how the file and its index were opened.
    void forget_connections() noexcept {
        if (writer_ && writer_->is_owned()) {
            writer_.reset();
        }
        {
            const std::lock_guard lock(mutex_);
            idle_.clear();
        }
        const std::lock_guard lock(watch_mutex_);
        watch_.reset();
    }

    void finish_opening() {
        auto* const db = writer_->handle();
        hub_ = hub::of(db);
        path_ = sqlite3_db_filename(db, "main");
        const statement encoding(db, "PRAGMA encoding");
        run reading(encoding);
        if (!reading.step() || reading.bytes(0) != "UTF-8") {
            throw error(error_kind::unsupported,
                        "sqlite: the database is not encoded in UTF-8, which would change names");
        }
        if (options_.create) {
            sqlite::migrate(db, options_.prefix);
        } else {
            expect_schema(db, options_.prefix);
        }
    }

    options options_;
    std::string path_{};
    std::shared_ptr<detail::hub> hub_{};
    std::unique_ptr<connection> writer_; // used by whoever has the turn

    std::mutex mutex_{};
    std::vector<std::unique_ptr<connection>> idle_{};

    std::mutex watch_mutex_{};
    std::unique_ptr<connection> watch_{};
    std::int64_t version_ = 0;
    std::uint64_t commits_seen_ = 0;
};

} // namespace sqlite::detail
} // namespace v0
} // namespace vouch
