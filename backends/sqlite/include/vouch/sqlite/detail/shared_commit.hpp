// SPDX-License-Identifier: MIT
// Stores the drafts of several threads in one transaction. A commit waits for the disk, so threads that commit one after
// another wait for the disk once each. Here the first thread that asks stores the drafts of all that ask until it has
// the turn to write, and commits once.
//
// Each thread gets its own receipts. An invalid draft is an error of its own thread only. If the shared transaction
// fails, each thread's drafts are stored again in a transaction of their own, so that each gets its own error; if its
// commit is in doubt, all threads get that error.
//
// Safe for any number of threads.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <vouch/contract/draft.hpp>
#include <vouch/contract/error.hpp>
#include <vouch/contract/time.hpp>
#include <vouch/contract/verdict.hpp>

namespace vouch {
inline namespace v0 {
namespace sqlite::detail {

class shared_commit {
  public:
    using clock = std::chrono::steady_clock;

    /// `begin(since)` returns a new transaction. `since` is when the thread began to wait for it.
    template <class Begin>
    [[nodiscard]] std::vector<receipt> enqueue(std::span<const draft> drafts, time_point now, const Begin& begin) {
        request mine{.drafts = drafts, .now = now};
        if (is_to_lead(mine)) {
            lead(mine, begin);
        }
        if (mine.failure) {
            throw error(*mine.failure);
        }
        return std::move(mine.receipts);
    }

  private:
    /// What one thread wants. It waits, so the leader may use its memory.
    struct request {
        std::span<const draft> drafts{};
        time_point now{};
        std::vector<receipt> receipts{};
        std::optional<error> failure{};
        bool is_done = false;
        clock::time_point since = clock::now();
    };

    /// Waits until another thread has stored the drafts, or until no thread leads.
    [[nodiscard]] bool is_to_lead(request& mine) {
        std::unique_lock lock(mutex_);
        waiting_.push_back(&mine);
        changed_.wait(lock, [&] { return mine.is_done || !has_leader_; });
        if (mine.is_done) {
            return false;
        }
        has_leader_ = true;
        return true;
    }

    template <class Begin>
    void lead(request& mine, const Begin& begin) noexcept {
        std::vector<request*> group;
        try {
            auto tx = begin(mine.since);
            group = take_all();
            for (auto* const one : group) {
                store(*one, tx);
            }
            tx.commit();
        } catch (const error& e) {
            fail(mine, group, e, begin);
        }
        finish(mine, group);
    }

    [[nodiscard]] std::vector<request*> take_all() noexcept {
        const std::lock_guard lock(mutex_);
        return std::exchange(waiting_, {});
    }

    /// An invalid draft leaves the transaction open and unchanged.
    template <class Transaction>
    static void store(request& one, Transaction& tx) {
        try {
            one.receipts = tx.enqueue(one.drafts, one.now);
        } catch (const error& e) {
            if (e.kind() != error_kind::invalid_argument) {
                throw;
            }
            one.failure = e;
        }
    }

    /// The group is empty if the transaction could not be begun. The other threads then try for themselves.
    template <class Begin>
    static void fail(request& mine, const std::vector<request*>& group, const error& why, const Begin& begin) noexcept {
        if (group.size() <= 1) {
            mine.failure = why;
            return;
        }
        for (auto* const one : group) {
            if (why.is_in_doubt()) {
                one->failure = one->failure ? one->failure : why;
            } else {
                one->failure.reset();
                store_alone(*one, begin);
            }
        }
    }

    template <class Begin>
    static void store_alone(request& one, const Begin& begin) noexcept {
        try {
            auto tx = begin(one.since);
            store(one, tx);
            tx.commit();
        } catch (const error& e) {
            one.failure = e;
        }
    }

    void finish(request& mine, const std::vector<request*>& group) noexcept {
        {
            const std::lock_guard lock(mutex_);
            for (auto* const one : group) {
                one->is_done = true;
            }
            std::erase(waiting_, &mine); // if the transaction could not be begun
            has_leader_ = false;
        }
        changed_.notify_all();
    }

    std::mutex mutex_{};
    std::condition_variable changed_{};
    std::vector<request*> waiting_{}; // without those that the leader has taken
    bool has_leader_ = false;
};

} // namespace sqlite::detail
} // namespace v0
} // namespace vouch
