// SPDX-License-Identifier: MIT
// Lets one queue of a worker handle an entry alone, while no queue of that worker holds another claim.
//
// A queue that has found an entry with a lapse asks for exclusion. Then no queue claims until all have settled what
// they hold, and the queue that asked continues alone. A handler may run for hours, or hang, so the others do not wait
// without limit: if some claims are still held after a while, all queues continue as usual for a pause, and the next
// try waits longer. An entry that is still being handled after `alone_max` no longer excludes the others. Entries with
// a lapse are not held during a pause, so another process can claim them.
//
// Thread-safe. Times are arguments.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include <vouch/version.hpp>

namespace vouch {
inline namespace v0 {
namespace detail {

class exclusion {
  public:
    using steady = std::chrono::steady_clock;
    using member = std::size_t;

    static constexpr std::chrono::seconds first_patience{
        1}; ///< how long the first try waits for all claims to be settled
    static constexpr std::chrono::seconds patience_max{10};
    static constexpr std::chrono::seconds first_pause{
        4}; ///< how long all queues continue as usual after a failed first try
    static constexpr std::chrono::minutes pause_max{10};
    static constexpr std::chrono::seconds alone_max{30};

    enum class access : std::uint8_t {
        open,   ///< claim as usual, but hand back entries with a lapse
        closed, ///< claim nothing
        alone,  ///< claim one entry, whatever its lapses
    };
    struct answer {
        exclusion::access access = access::open;
        /// Closed: when to ask again at the latest. Open: entries with a lapse should not be due before this.
        std::optional<steady::time_point> until{};
    };

    /// Adds a queue. `wake` must make it ask again; it is called from other queues' threads. All queues must join before
    /// the first one asks.
    [[nodiscard]] member join(std::function<void()> wake) {
        members_.push_back({.wake = std::move(wake)});
        return members_.size() - 1;
    }

    /// What a queue may claim now. `holds` says whether it has unsettled claims. A queue that is answered `open` or
    /// `alone` counts as holding claims until it asks again.
    [[nodiscard]] answer ask(member who, bool holds, steady::time_point now) {
        std::function<void()> wake;
        const auto out = [&] {
            const std::lock_guard lock(mutex_);
            members_[who].holds = holds;
            const auto given = decide(who, now, wake);
            members_[who].holds = holds || given.access != access::closed;
            return given;
        }();
        if (wake) {
            wake();
        }
        return out;
    }

    /// The queue has found an entry with a lapse and handed it back.
    void want(member who, steady::time_point now) {
        {
            const std::lock_guard lock(mutex_);
            members_[who].wants = true;
            if (quiet_by_ || now < open_until_) {
                return;
            }
            quiet_by_ = now + patience_;
        }
        wake_all(); // those that hold nothing have to say so
    }

    /// The queue has settled the entry that it handled alone, or has found none. The others then get as much time.
    void leave(member who, steady::time_point now) {
        {
            const std::lock_guard lock(mutex_);
            if (alone_ != who) {
                return;
            }
            alone_.reset();
            if (members_.size() > 1) {
                open_until_ = now + std::min<steady::duration>(now - alone_since_, alone_max);
                quiet_by_.reset();
            }
        }
        wake_all();
    }

  private:
    struct queue {
        std::function<void()> wake{};
        bool holds = false;
        bool wants = false;
    };

    void wake_all() const {
        for (const auto& m : members_) { // never changed once any has asked
            m.wake();
        }
    }

    [[nodiscard]] answer decide(member who, steady::time_point now, std::function<void()>& wake) {
        if (alone_ && now >= alone_since_ + alone_max) {
            alone_.reset();
        }
        if (alone_) {
            return *alone_ == who ? answer{access::alone} : answer{access::closed, alone_since_ + alone_max};
        }
        if (!quiet_by_) {
            return {access::open, now < open_until_ ? std::optional{open_until_} : std::nullopt};
        }
        const auto next = std::find_if(members_.begin(), members_.end(), [](const queue& q) { return q.wants; });
        if (std::none_of(members_.begin(), members_.end(), [](const queue& q) { return q.holds; })) {
            alone_ = static_cast<member>(next - members_.begin());
            alone_since_ = now;
            next->wants = false;
            quiet_by_.reset();
            patience_ = first_patience;
            pause_ = first_pause;
            if (*alone_ == who) {
                return {access::alone};
            }
            wake = next->wake;
            return {access::closed};
        }
        if (now < *quiet_by_) {
            return {access::closed, quiet_by_};
        }
        quiet_by_.reset();
        open_until_ = now + pause_;
        patience_ = std::min<steady::duration>(patience_ * 2, patience_max);
        pause_ = std::min<steady::duration>(pause_ * 2, pause_max);
        for (auto& m : members_) {
            m.wants = false;
        }
        return {access::open, open_until_};
    }

    std::mutex mutex_;
    std::vector<queue> members_{};
    std::optional<member> alone_{};
    steady::time_point alone_since_{};
    std::optional<steady::time_point> quiet_by_{}; ///< set: no queue claims, so that all claims are settled by then
    steady::time_point open_until_{};              ///< no try before this
    steady::duration patience_ = first_patience;
    steady::duration pause_ = first_pause;
};

} // namespace detail
} // namespace v0
} // namespace vouch
