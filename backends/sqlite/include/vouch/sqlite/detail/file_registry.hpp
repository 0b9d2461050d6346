// SPDX-License-Identifier: MIT
// The state that all stores of one file in this process share: the turn to write, the transactions of the application
// that a `joined` writes in, and the waits for new work. Threads queue here, first come, first served, so that only one
// transaction per process asks SQLite for the write lock.
//
// Safe for any number of threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <sqlite3.h>

#include <vouch/contract/error.hpp>
#include <vouch/sqlite/detail/wake_ups.hpp>
#include <vouch/sqlite/detail/watch.hpp>

namespace vouch {
inline namespace v0 {
namespace sqlite::detail {

class file_registry {
  public:
    /// The registry of the file that this connection has open. Throws `unsupported` if the database has no file.
    [[nodiscard]] static std::shared_ptr<file_registry> of(sqlite3* db) {
        const char* const name = sqlite3_db_filename(db, "main");
        if (name == nullptr || *name == '\0') {
            throw error(error_kind::unsupported,
                        "sqlite: the database has no file and cannot be shared; use a path, or vouch::memory::store");
        }
        struct known {
            std::weak_ptr<file_registry> at{};
            std::shared_ptr<std::atomic<bool>> doubt =
                std::make_shared<std::atomic<bool>>(false); // outlives the registry
        };
        static std::mutex mutex;
        static std::map<std::string, known, std::less<>> registries;
        const std::lock_guard lock(mutex);
        std::erase_if(registries, [](const auto& one) { return one.second.at.expired() && !*one.second.doubt; });
        auto& mine = registries[name];
        auto found = mine.at.lock();
        if (!found) {
            found = std::make_shared<file_registry>(name, mine.doubt);
            mine.at = found;
        }
        return found;
    }
    file_registry(const std::string& name, std::shared_ptr<std::atomic<bool>> doubt)
        : wake_ups_(name), doubt_(std::move(doubt)) {}

    // Turns.

    /// Throws `misuse` if this thread has a transaction open, because it would wait for itself.
    void expect_no_transaction() {
        const std::lock_guard lock(mutex_);
        refuse_to_wait_for(std::this_thread::get_id());
    }

    /// Waits for the turn to write. Throws `busy` if that takes longer than `limit`, counted from `since`; `misuse` if this
    /// thread would wait for itself.
    void enter(std::chrono::steady_clock::time_point since, std::chrono::milliseconds limit) {
        std::unique_lock lock(mutex_);
        const auto me = std::this_thread::get_id();
        refuse_to_wait_for(me);
        const auto mine = next_place_++;
        waiting_.push_back(mine);
        const bool has_turn =
            turn_over_.wait_until(lock, since + limit, [&] { return !is_writing_ && waiting_.front() == mine; });
        std::erase(waiting_, mine);
        if (!has_turn) {
            turn_over_.notify_all(); // the next in the queue may be the first now
            throw error(error_kind::busy, "sqlite: begin: the earlier transactions of this process did not end within "
                                          "busy_limit, " +
                                              std::to_string(limit.count()) +
                                              " ms; if one of them belongs to this thread, or waits for it, it never "
                                              "will");
        }
        is_writing_ = true;
        writer_ = me;
    }

    /// Notes the connection of the transaction that has the turn.
    void write_on(sqlite3* db) noexcept {
        const std::lock_guard lock(mutex_);
        writes_on_ = db;
    }

    /// Notes that this thread uses the transaction that has the turn.
    void set_thread() {
        const std::lock_guard lock(mutex_);
        writer_ = std::this_thread::get_id();
    }

    /// The transaction that has the turn was moved: the thread that uses it next is its thread.
    void forget_thread() noexcept {
        const std::lock_guard lock(mutex_);
        writer_ = {};
    }

    /// A joined writer may have made work in these queues due sooner. If it writes in the transaction that has the
    /// turn, they are woken when that commits; otherwise the watch on the file notices the commit.
    void wake(sqlite3* db, const std::vector<std::string>& queues) {
        const std::lock_guard lock(mutex_);
        if (db == writes_on_) {
            woken_by_joined_.insert(woken_by_joined_.end(), queues.begin(), queues.end());
        }
    }

    /// Ends the turn. Wakes these queues, and after a commit those of joined writers.
    void leave(const std::vector<std::string>& woken_queues, bool has_committed = false) noexcept {
        std::vector<std::string> woken_by_joined;
        {
            const std::lock_guard lock(mutex_);
            is_writing_ = false;
            writes_on_ = nullptr;
            woken_by_joined.swap(woken_by_joined_);
        }
        turn_over_.notify_all();
        wake_ups_.wake(woken_queues);
        if (has_committed) {
            wake_ups_.wake(woken_by_joined);
        }
    }

    // Doubt.

    /// Whether a commit of this process is in doubt: its frames may be in the log, after the last frame that readers
    /// see. A recovery would find them, so no read may answer until they are overwritten.
    [[nodiscard]] bool is_in_doubt() const noexcept { return *doubt_; }
    void set_doubt(bool is_in_doubt) noexcept { *doubt_ = is_in_doubt; }

    // Joined transactions.

    /// Notes that `who` writes in a transaction of the application on this connection and thread.
    void join(const void* who, sqlite3* db) {
        const std::lock_guard lock(mutex_);
        if (db == writes_on_) {
            return; // part of the transaction that has the turn
        }
        const auto known = std::find_if(joined_.begin(), joined_.end(), [&](const auto& j) { return j.who == who; });
        auto& j = known == joined_.end() ? joined_.emplace_back() : *known;
        j = {who, db, std::this_thread::get_id()};
    }
    void part(const void* who) noexcept {
        const std::lock_guard lock(mutex_);
        std::erase_if(joined_, [&](const auto& j) { return j.who == who; });
    }

    // Wakes.

    /// Notices commits of other processes.
    [[nodiscard]] detail::watch& watch() noexcept { return watch_; }

    [[nodiscard]] detail::wake_ups& wake_ups() noexcept { return wake_ups_; }

  private:
    struct joining {
        const void* who = nullptr;
        sqlite3* db = nullptr;
        std::thread::id thread{};
    };

    /// Throws `misuse` if this thread has a transaction open, because it would wait for itself.
    void refuse_to_wait_for(std::thread::id me) const {
        if (is_writing_ && writer_ == me) {
            throw error(error_kind::misuse, "sqlite: begin: this thread has a transaction open and would wait for "
                                            "itself; end that transaction first, or write through it");
        }
        for (const auto& j : joined_) {
            if (j.thread == me && j.db != writes_on_ && sqlite3_get_autocommit(j.db) == 0) {
                throw error(error_kind::misuse, "sqlite: begin: this thread has a joined transaction open on the same "
                                                "file and would wait for it; commit that transaction first");
            }
        }
    }

    detail::watch watch_{};
    detail::wake_ups wake_ups_;
    std::mutex mutex_;
    std::condition_variable turn_over_;
    std::vector<std::uint64_t> waiting_{}; // places in the queue, the first at the front
    std::uint64_t next_place_ = 0;
    bool is_writing_ = false;
    std::thread::id writer_{}; // the thread that used the transaction last; none after a move
    sqlite3* writes_on_ = nullptr;
    std::shared_ptr<std::atomic<bool>> doubt_;
    std::vector<joining> joined_{};
    std::vector<std::string> woken_by_joined_{}; // in the transaction that has the turn
};

} // namespace sqlite::detail
} // namespace v0
} // namespace vouch
