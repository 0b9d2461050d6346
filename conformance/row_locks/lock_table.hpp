// SPDX-License-Identifier: MIT
// Which transaction holds which lock, and which ones wait for it. A lock is granted in the order of the requests and
// held until its transaction ends. A wait that cannot end throws `conflict`: one that closes a circle of waiting
// threads, or one for a transaction that the waiting thread has open itself. All functions require the store's mutex.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <vouch/contract/error.hpp>

#include "table.hpp"

namespace row_locks {

/// A transaction as the lock table knows it.
struct holder {
    std::thread::id thread{}; ///< the thread that used it last
    std::vector<name> held{};
    bool is_victim = false; ///< must end in conflict, although it could continue
};

class lock_table {
  public:
    [[nodiscard]] bool is_held_by(const name& what, const holder& me) const {
        const auto found = locks_.find(what);
        return found != locks_.end() && found->second.owner == &me;
    }
    [[nodiscard]] bool is_held_by_another(const name& what, const holder& me) const {
        const auto found = locks_.find(what);
        return found != locks_.end() && found->second.owner != &me;
    }

    /// Waits until the lock is free, and takes it. The mutex is released meanwhile, so that what was read before may
    /// have changed.
    void lock(const name& what, holder& me, std::unique_lock<std::mutex>& mutex, bool ends_both = false) {
        auto& wanted = locks_[what];
        if (wanted.owner == &me) {
            return;
        }
        if (wanted.owner != nullptr) {
            if (is_circle(what, me.thread)) {
                wanted.owner->is_victim = ends_both;
                released_.notify_all();
                refuse("this wait for a lock could not end");
            }
            wanted.waiting.push_back(&me);
            waits_[me.thread] = what;
            // Longer than any transaction takes, unless its thread keeps it open and does nothing.
            constexpr std::chrono::seconds limit{10};
            released_.wait_for(mutex, limit, [&] { return wanted.owner == &me || me.is_victim; });
            waits_.erase(me.thread);
            if (wanted.owner != &me) {
                std::erase(wanted.waiting, &me);
                refuse("waited too long for a lock");
            }
        }
        wanted.owner = &me;
        me.held.push_back(what);
        if (me.is_victim) {
            refuse("another transaction of the same circle has ended, too");
        }
    }

    void release_all(holder& me) noexcept {
        for (const auto& what : me.held) {
            const auto found = locks_.find(what);
            auto& waiting = found->second.waiting;
            if (waiting.empty()) {
                locks_.erase(found);
            } else {
                found->second.owner = waiting.front();
                waiting.pop_front();
            }
        }
        me.held.clear();
        released_.notify_all();
    }

  private:
    struct state {
        holder* owner = nullptr;
        std::deque<holder*> waiting{};
    };

    [[noreturn]] static void refuse(const char* why) {
        throw vouch::error(vouch::error_kind::conflict, std::string("row_locks: ") + why);
    }

    /// Whether the owner of a lock waits for this thread, perhaps through others, or belongs to it.
    [[nodiscard]] bool is_circle(name what, std::thread::id me) const {
        for (std::size_t steps = 0; steps <= waits_.size(); ++steps) {
            const auto other = locks_.at(what).owner->thread;
            if (other == me) {
                return true;
            }
            const auto next = waits_.find(other);
            if (next == waits_.end()) {
                return false;
            }
            what = next->second;
        }
        return false;
    }

    std::map<name, state> locks_{};
    std::map<std::thread::id, name> waits_{}; ///< the lock that a thread waits for
    std::condition_variable released_{};
};

} // namespace row_locks
