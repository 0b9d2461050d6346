// SPDX-License-Identifier: MIT
// What all stores of one file in this process share: whose turn it is to write, who has joined a transaction of the
// application's, and who is to be woken. Only one of our transactions per process asks SQLite for the write lock, so
// threads queue up here, in the order of their coming, instead of polling the file against each other.
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
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <sqlite3.h>

#include <vouch/contract/error.hpp>
#include <vouch/sqlite/detail/watch.hpp>

namespace vouch {
inline namespace v0 {
namespace sqlite::detail {

class hub {
  public:
    /// The one of the file this connection has open.
    [[nodiscard]] static std::shared_ptr<hub> of(sqlite3* db) {
        const char* const name = sqlite3_db_filename(db, "main");
        if (name == nullptr || *name == '\0') {
            throw error(error_kind::unsupported,
                        "sqlite: a database without a file cannot be shared; use a path, or vouch::memory::store");
        }
        struct known {
            std::weak_ptr<hub> at{};
            std::shared_ptr<std::atomic<bool>> doubt = std::make_shared<std::atomic<bool>>(false); // outlives the hub
        };
        static std::mutex mutex;
        static std::map<std::string, known, std::less<>> hubs;
        const std::lock_guard lock(mutex);
        std::erase_if(hubs, [](const auto& one) { return one.second.at.expired() && !*one.second.doubt; });
        auto& mine = hubs[name];
        auto found = mine.at.lock();
        if (!found) {
            found = std::make_shared<hub>(mine.doubt);
            mine.at = found;
        }
        return found;
    }
    explicit hub(std::shared_ptr<std::atomic<bool>> doubt) noexcept : doubt_(std::move(doubt)) {}

    // Turns.

    /// Waits for the turn to write, at most `limit`. On a thread that would wait for itself it says `misuse`.
    void enter(std::chrono::milliseconds limit) {
        std::unique_lock lock(mutex_);
        const auto me = std::this_thread::get_id();
        refuse_to_wait_for(me);
        const auto mine = next_place_++;
        waiting_.push_back(mine);
        const bool has_turn =
            turn_over_.wait_for(lock, limit, [&] { return !is_writing_ && waiting_.front() == mine; });
        std::erase(waiting_, mine);
        if (!has_turn) {
            turn_over_.notify_all(); // the one behind may be the first now
            throw error(error_kind::busy, "sqlite: begin: the transactions of this process that came before did not "
                                          "end within busy_limit, " +
                                              std::to_string(limit.count()) +
                                              " ms; one that is this thread's own, or waits for it, never will");
        }
        is_writing_ = true;
        writer_ = me;
    }

    /// The transaction that has its turn is open on this connection.
    void write_on(sqlite3* db) noexcept {
        const std::lock_guard lock(mutex_);
        writes_on_ = db;
    }

    /// The transaction that has its turn is in use by this thread now.
    void use() {
        const std::lock_guard lock(mutex_);
        writer_ = std::this_thread::get_id();
    }

    /// The transaction that has its turn was moved: whose it is shows when it is used next.
    void hand_over() noexcept {
        const std::lock_guard lock(mutex_);
        writer_ = {};
    }

    /// A joined writer has brought work nearer in these queues. If it is part of the transaction that has its turn,
    /// they are counted when that commits; else the watch on the file sees the commit.
    void stir(sqlite3* db, const std::vector<std::string>& queues) {
        const std::lock_guard lock(mutex_);
        if (db == writes_on_) {
            stirred_by_joined_.insert(stirred_by_joined_.end(), queues.begin(), queues.end());
        }
    }

    /// Ends the turn. `stirred` are the queues in which work came nearer.
    void leave(const std::vector<std::string>& stirred, bool has_committed = false) noexcept {
        bool wakes = !stirred.empty();
        {
            const std::lock_guard lock(mutex_);
            is_writing_ = false;
            writes_on_ = nullptr;
            for (const auto& queue : stirred) {
                count_wake(queue);
            }
            for (const auto& queue : stirred_by_joined_) {
                if (has_committed) {
                    count_wake(queue);
                    wakes = true;
                }
            }
            stirred_by_joined_.clear();
        }
        turn_over_.notify_all();
        if (wakes) {
            stirred_.notify_all();
        }
    }

    // Doubt.

    /// Whether a commit of this process is in doubt: its frames may be in the log, behind the last that readers see. A
    /// recovery would find them, so until they are overwritten no read may answer what is there.
    [[nodiscard]] bool is_in_doubt() const noexcept { return *doubt_; }
    void set_doubt(bool is_in_doubt) noexcept { *doubt_ = is_in_doubt; }

    // Joined transactions.

    void join(const void* who, sqlite3* db) {
        const std::lock_guard lock(mutex_);
        if (db == writes_on_) {
            return; // a part of the transaction that has its turn
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

    /// For commits of others.
    [[nodiscard]] detail::watch& watch() noexcept { return watch_; }

    [[nodiscard]] std::uint64_t wakes(std::string_view queue) {
        const std::lock_guard lock(mutex_);
        return count_of(queue);
    }

    /// Waits until the queue's `wakes` differs from `seen`, `at_most` has passed, or a stop is requested.
    void wait(std::string_view queue, std::uint64_t seen, std::chrono::nanoseconds at_most, std::stop_token stop) {
        std::unique_lock lock(mutex_);
        stirred_.wait_for(lock, std::move(stop), at_most, [&] { return count_of(queue) != seen; });
    }

  private:
    struct joining {
        const void* who = nullptr;
        sqlite3* db = nullptr;
        std::thread::id thread{};
    };

    /// A thread that has a transaction open would wait for itself.
    void refuse_to_wait_for(std::thread::id me) const {
        if (is_writing_ && writer_ == me) {
            throw error(error_kind::misuse, "sqlite: begin while this thread has a transaction open would wait for "
                                            "itself; end that one first, or write through it");
        }
        for (const auto& j : joined_) {
            if (j.thread == me && j.db != writes_on_ && sqlite3_get_autocommit(j.db) == 0) {
                throw error(error_kind::misuse, "sqlite: begin while this thread has a joined transaction open on the "
                                                "same file would wait for it; commit that one first");
            }
        }
    }

    [[nodiscard]] std::uint64_t count_of(std::string_view queue) const {
        const auto found = wakes_.find(queue);
        return found == wakes_.end() ? uncounted_ : found->second + uncounted_;
    }

    void count_wake(const std::string& queue) noexcept {
        try {
            wakes_[queue] += 1;
        } catch (...) {
            uncounted_ += 1; // no memory for its name: everybody is woken
        }
    }

    detail::watch watch_{};
    std::mutex mutex_;
    std::condition_variable turn_over_;
    std::condition_variable_any stirred_;
    std::vector<std::uint64_t> waiting_{}; // places in the queue, the first in front
    std::uint64_t next_place_ = 0;
    bool is_writing_ = false;
    std::thread::id writer_{}; // the thread that used the transaction last; none after a move
    sqlite3* writes_on_ = nullptr;
    std::shared_ptr<std::atomic<bool>> doubt_;
    std::vector<joining> joined_{};
    std::vector<std::string> stirred_by_joined_{}; // in the transaction that has its turn
    std::map<std::string, std::uint64_t, std::less<>> wakes_{};
    std::uint64_t uncounted_ = 0;
};

} // namespace sqlite::detail
} // namespace v0
} // namespace vouch
