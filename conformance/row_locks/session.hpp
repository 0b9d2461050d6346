// SPDX-License-Identifier: MIT
// What all handles of one store share, and one open transaction on it: its locks and its uncommitted rows. Committed
// rows change in `commit` only.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include <vouch/contract/entry.hpp>

#include "defect.hpp"
#include "lock_table.hpp"
#include "table.hpp"
#include "view.hpp"

namespace row_locks {

struct options {
    row_locks::defect defect = defect::none;
    bool claims_wait = false; ///< a claim waits for locked rows instead of skipping them, which is allowed
    /// Whether `unknown` and `refused`, and what a purge leaves, stay true until the transaction ends. The contract only
    /// asks that they are true at the time of the call.
    bool locks_absence = true;
    /// Called between two steps, without the mutex. May throw.
    std::function<void(std::string_view)> seam{};
};

struct shared_state {
    explicit shared_state(row_locks::options how) : options(std::move(how)) {}

    const row_locks::options options;
    std::mutex mutex{}; ///< guards everything below; no transaction keeps it between its operations
    table committed{};
    lock_table locks{};
    std::uint64_t last_sequence = 0; ///< drawn from at once; a rollback leaves a gap
    std::map<std::string, std::uint64_t, std::less<>> wakes{};
    std::condition_variable_any woken{};
    std::set<id> rolled_back{};            ///< for the defect that claims never take these
    std::set<const own_rows*> open_ones{}; ///< for the defect that looks into other transactions
};

class session {
  public:
    explicit session(std::shared_ptr<shared_state> in) : shared_(std::move(in)), mutex_(shared_->mutex) {
        if (is(defect::snapshot_is_older_than_the_locks)) {
            snapshot_ = std::make_unique<table>(shared_->committed);
        }
        shared_->open_ones.insert(&own_);
        mutex_.unlock();
    }
    session(const session&) = delete;
    session& operator=(const session&) = delete;
    ~session() {
        const std::lock_guard in(mutex_);
        shared_->open_ones.erase(&own_);
        if (is(defect::claim_skips_rolled_back) || (is(defect::conflict_leaks_its_locks) && has_conflict_)) {
            shared_->rolled_back.insert(own_.hidden.begin(), own_.hidden.end());
        }
        shared_->locks.release_all(me_);
    }

    [[nodiscard]] bool is(defect d) const noexcept { return shared_->options.defect == d; }
    [[nodiscard]] bool claims_wait() const noexcept { return shared_->options.claims_wait; }
    [[nodiscard]] bool locks_absence() const noexcept { return shared_->options.locks_absence; }
    [[nodiscard]] shared_state& shared() noexcept { return *shared_; }

    /// Runs one operation. It has the mutex, except while it waits for a lock and at the seam.
    template <class Operation>
    auto run(const Operation& operation) {
        const std::lock_guard in(mutex_);
        me_.thread = std::this_thread::get_id();
        const release_early early{*this, is(defect::locks_end_with_the_operation)};
        return operation();
    }

    // For operations.

    [[nodiscard]] view seen() const { return {snapshot_ ? *snapshot_ : shared_->committed, own_}; }
    [[nodiscard]] bool holds(const name& what) const { return shared_->locks.is_held_by(what, me_); }
    [[nodiscard]] bool is_locked_by_another(const name& what) const {
        return shared_->locks.is_held_by_another(what, me_);
    }
    /// Waits if another transaction has the lock. Other transactions may commit meanwhile: read after it, not before.
    void lock(const name& what) {
        if (!holds(what)) {
            pause("lock");
            has_conflict_ = true; // until the lock is taken
            shared_->locks.lock(what, me_, mutex_, is(defect::deadlock_ends_both));
            has_conflict_ = false;
        }
    }
    /// Takes a lock that no other transaction has, in the same step.
    void lock_free(const name& what) { shared_->locks.lock(what, me_, mutex_); }
    void put(row r) { own_.put(std::make_shared<const row>(std::move(r))); }
    void remove(const id& gone) { own_.remove(gone); }
    [[nodiscard]] std::uint64_t next_sequence() { return ++shared_->last_sequence; }

    void pause(std::string_view where) {
        if (shared_->options.seam) {
            const unlocked for_now{mutex_};
            shared_->options.seam(where);
        }
    }

    /// All rows become visible at once, and then the locks are released.
    void commit() {
        const std::lock_guard in(mutex_);
        pause("commit");
        if (is(defect::commit_releases_before_it_installs)) {
            shared_->locks.release_all(me_);
            pause("released");
        }
        for (const auto& gone : own_.hidden) {
            install(gone);
            if (is(defect::commit_installs_row_by_row)) {
                pause("install");
            }
        }
        own_.hidden.clear();
        shared_->woken.notify_all();
        shared_->locks.release_all(me_);
    }

  private:
    struct unlocked {
        std::unique_lock<std::mutex>& mutex;
        explicit unlocked(std::unique_lock<std::mutex>& m) : mutex(m) { mutex.unlock(); }
        unlocked(const unlocked&) = delete;
        unlocked& operator=(const unlocked&) = delete;
        ~unlocked() { mutex.lock(); }
    };
    struct release_early {
        session& of;
        bool is_wanted;
        ~release_early() {
            if (is_wanted) {
                of.shared_->locks.release_all(of.me_);
            }
        }
    };

    void install(const id& which) {
        const auto before = shared_->committed.find(which);
        const auto after = own_.rows.find(which);
        if (!after) {
            shared_->committed.remove(which);
            return;
        }
        const bool is_nearer = after->gate && after->entry.state != vouch::state::claimed &&
                               (!before || before->gate != after->gate || before->entry.state == vouch::state::claimed);
        shared_->wakes[after->entry.queue] += is_nearer ? 1U : 0U;
        shared_->committed.put(after);
    }

    std::shared_ptr<shared_state> shared_;
    std::unique_lock<std::mutex> mutex_; ///< locked while an operation runs
    holder me_{};
    own_rows own_{};
    // For defects only.
    std::unique_ptr<table> snapshot_{};
    bool has_conflict_ = false; ///< the last wait for a lock has thrown
};

} // namespace row_locks
