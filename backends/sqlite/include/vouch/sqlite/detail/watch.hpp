// SPDX-License-Identifier: MIT
// Counts commits by other processes, and by the application on its own connections. `PRAGMA data_version` tells a
// connection that another one has committed, but not which one. So the watch pauses during a commit of this process and
// ignores the change, unless the committing connection notices that another one has committed, too.
//
// Shared by all stores of one file; safe for any number of threads.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include <vouch/sqlite/detail/connection.hpp>
#include <vouch/sqlite/detail/sql.hpp>
#include <vouch/sqlite/detail/statement.hpp>
#include <vouch/sqlite/options.hpp>

namespace vouch {
inline namespace v0 {
namespace sqlite::detail {

class watch {
  public:
    /// A number that grows when another connection has committed since the last look. Opens a connection first.
    [[nodiscard]] std::uint64_t look(const std::string& path, const options& how) {
        const std::lock_guard lock(mutex_);
        if (is_paused_) {
            return count_;
        }
        if (!on_ || on_->has_moved()) {
            lose_track();
            on_ = std::make_unique<connection>(path, connection::role::reader, how);
            sqlite3_busy_handler(on_->handle(), nullptr, nullptr); // this thread itself may hold the lock
        }
        carefully([&] { count_changes(); });
        return count_;
    }

    /// Closes the connection.
    void forget() noexcept {
        const std::lock_guard lock(mutex_);
        on_.reset();
    }

    /// Held during a commit of this process. One at a time.
    class pause {
      public:
        /// Requires that the writer has the write lock, so that no other connection can commit.
        pause(watch& of, connection& writer) noexcept : of_(of), writer_(writer) {
            const std::lock_guard lock(of_.mutex_);
            of_.is_paused_ = true;
            of_.carefully([&] {
                of_.count_changes();
                writer_was_ = version_of(writer_);
            });
        }
        pause(const pause&) = delete;
        pause& operator=(const pause&) = delete;
        ~pause() {
            const std::lock_guard lock(of_.mutex_);
            of_.is_paused_ = false;
            of_.carefully([&] {
                of_.version_ = version_of(*of_.on_);
                of_.count_ += version_of(writer_) == writer_was_ ? 0U : 1U; // another commit followed at once
            });
        }

      private:
        watch& of_;
        connection& writer_;
        std::int64_t writer_was_ = 0;
    };

  private:
    /// Changes whenever another connection has committed.
    [[nodiscard]] static std::int64_t version_of(connection& on) {
        run row(on.prepared(sql::data_version));
        row.step();
        return row.integer(0);
    }

    void count_changes() {
        if (const auto version = version_of(*on_); version != version_) {
            version_ = version;
            count_ += 1;
        }
    }

    /// A failure to look must not fail the commit. It is counted as a commit by another process.
    template <class Look>
    void carefully(const Look& look) noexcept {
        try {
            if (on_) {
                look();
            }
        } catch (...) {
            lose_track();
        }
    }

    void lose_track() noexcept {
        on_.reset();
        count_ += 1;
    }

    std::mutex mutex_{};
    std::unique_ptr<connection> on_{}; // none before the first look
    std::int64_t version_ = 0;
    std::uint64_t count_ = 0;
    bool is_paused_ = false;
};

} // namespace sqlite::detail
} // namespace v0
} // namespace vouch
