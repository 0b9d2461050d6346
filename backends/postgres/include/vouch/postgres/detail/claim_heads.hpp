// SPDX-License-Identifier: MIT
// Where a claim begins to look in the index of gates, while an old snapshot is held.
//
// The server keeps the index entries of claimed and ended entries as long as a transaction holds a snapshot that is older
// than their end. A claim that begins at the lowest gate reads all of them, so the cost of each claim would grow with the
// number of earlier claims. Here a claim that was slow makes the store ask for the oldest snapshot; while that stays the
// same, claims begin where the last one has found its first entry. Every now and then one looks everywhere again, so that
// at most a tenth of the time goes into such looks. An entry that gets a gate below that place meanwhile, from another
// process, waits until then: at most `blind_max`.
//
// Without an old snapshot every claim looks everywhere. Safe for any number of threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <vouch/contract/time.hpp>

namespace vouch {
inline namespace v0 {
namespace postgres::detail {

class claim_heads {
  public:
    using clock = std::chrono::steady_clock;

    /// A look that takes less is not worth shortening.
    static constexpr std::chrono::milliseconds slow{5};
    /// How often to ask for the oldest snapshot, and how long it must be the same to count as held.
    static constexpr std::chrono::seconds ask_interval{1};
    /// How long a place may be used: ten times as long as the look that found it took, within these limits.
    static constexpr std::chrono::milliseconds blind_min{50};
    static constexpr std::chrono::seconds blind_max{10};
    /// A place is at least so far before `now`: entries are stored some time after their due time was read from a clock,
    /// and clocks differ.
    static constexpr duration margin = std::chrono::seconds{1};

    static constexpr time_point everywhere = time_point::min();

    explicit claim_heads(clock::time_point now) noexcept : asked_at_(now) {}

    /// The lowest gate that a claim should look at.
    [[nodiscard]] time_point of(std::string_view queue, clock::time_point at) const {
        if (!is_held_) {
            return everywhere;
        }
        const std::lock_guard lock(mutex_);
        const auto found = heads_.find(queue);
        return found == heads_.end() || at >= found->second.good_until ? everywhere : found->second.gate;
    }

    struct look {
        time_point from{};                 ///< the lowest gate that was looked at
        time_point now{};                  ///< the claim's
        std::optional<time_point> first{}; ///< the lowest due time of what was claimed
        clock::time_point began{};
        clock::time_point ended{};
    };

    void note(std::string_view queue, const look& l) {
        const auto took = l.ended - l.began;
        const bool is_slow = took >= slow;
        if (!is_held_ && !is_slow) {
            return;
        }
        const std::lock_guard lock(mutex_);
        wants_snapshot_ = wants_snapshot_ || (is_slow && l.ended - asked_at_ >= ask_interval);
        if (!is_held_) {
            return;
        }
        const auto latest = l.now > everywhere + margin ? l.now - margin : everywhere;
        const auto gate = std::min(l.first.value_or(latest), latest);
        if (l.from == everywhere) {
            heads_.insert_or_assign(std::string(queue),
                                    head{gate, l.ended + std::clamp<clock::duration>(10 * took, blind_min, blind_max)});
        } else if (const auto found = heads_.find(queue); found != heads_.end()) {
            found->second.gate = std::max(found->second.gate, gate);
        }
    }

    /// Whether the last claim of this process found as many entries as it may take. Only a guess for the next one.
    [[nodiscard]] bool has_backlog() const noexcept { return has_backlog_; }
    void note_backlog(bool is_full) noexcept { has_backlog_ = is_full; }

    /// This process has committed an entry with this gate.
    void lower(std::string_view queue, time_point gate) noexcept {
        if (!is_held_) {
            return;
        }
        const std::lock_guard lock(mutex_);
        if (const auto found = heads_.find(queue); found != heads_.end()) {
            found->second.gate = std::min(found->second.gate, gate);
        }
    }

    /// Whether the caller should ask the server for its oldest snapshot now, and then call `note_snapshot`.
    [[nodiscard]] bool wants_snapshot(clock::time_point at) {
        if (!wants_snapshot_) {
            return false;
        }
        const std::lock_guard lock(mutex_);
        asked_at_ = at;
        return wants_snapshot_.exchange(false);
    }

    void note_snapshot(std::string oldest, clock::time_point at) {
        const std::lock_guard lock(mutex_);
        if (oldest.empty() || oldest != oldest_) {
            oldest_ = std::move(oldest);
            same_since_ = at;
            heads_.clear();
        }
        is_held_ = at - same_since_ >= ask_interval;
    }

  private:
    struct head {
        time_point gate{};
        clock::time_point good_until{};
    };

    mutable std::mutex mutex_{};
    std::atomic<bool> is_held_ = false;
    std::atomic<bool> wants_snapshot_ = false;
    std::atomic<bool> has_backlog_ = false;
    clock::time_point asked_at_;
    std::string oldest_{}; ///< the oldest transaction that a snapshot may not see
    clock::time_point same_since_{};
    std::map<std::string, head, std::less<>> heads_{};
};

} // namespace postgres::detail
} // namespace v0
} // namespace vouch
