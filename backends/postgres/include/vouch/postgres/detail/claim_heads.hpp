// SPDX-License-Identifier: MIT
// Where a claim begins to look in the index of gates, while an old snapshot is held.
//
// The server keeps the index entries of claimed and ended entries as long as a transaction holds a snapshot that is older
// than their end. A claim that begins at the lowest gate reads all of them, so the cost of each claim would grow with the
// number of earlier claims. Here a claim that was slow makes the store ask for the oldest snapshot; while that stays the
// same, claims begin where the last one has found its first entry: the head. After ten times as long as such a look took,
// one looks everywhere again.
//
// So a claim may pass over an entry that has got a gate below the head meanwhile, at most for `blind_max`. Entries that the
// same store, or a copy of it, stores or unlocks are not passed over. As long as no old snapshot is known, every claim looks
// everywhere.
// Safe for any number of threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
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
    /// How long a head may be used: ten times as long as the look that found it took, within these limits.
    static constexpr std::chrono::milliseconds blind_min{50};
    static constexpr std::chrono::seconds blind_max{10};
    /// A head is at least so far before `now`: entries are stored some time after their due time was read from a clock,
    /// and clocks differ.
    static constexpr duration margin = std::chrono::seconds{1};

    static constexpr time_point everywhere = time_point::min();

    /// A claim's look into the index, from `begin` to `end`.
    struct look {
        time_point from = everywhere; ///< the lowest gate to look at
        clock::time_point began{};
        std::uint64_t number = 0; ///< 0: not registered
    };

    explicit claim_heads(clock::time_point now) noexcept : asked_at_(now) {}

    /// The lowest gate that a claim would look at now.
    [[nodiscard]] time_point of(std::string_view queue, clock::time_point at) const {
        const std::lock_guard lock(mutex_);
        return head_of(queue, at);
    }

    /// Every look must end with `end` or `drop`.
    [[nodiscard]] look begin(std::string_view queue, clock::time_point at) {
        if (!is_held_) {
            return {.began = at};
        }
        const std::lock_guard lock(mutex_);
        looks_.emplace(++last_number_, open_look{std::string(queue)});
        return {.from = head_of(queue, at), .began = at, .number = last_number_};
    }

    /// What a claim found: at the claim's `now`, and the lowest due time of what it claimed.
    struct finding {
        time_point now{};
        std::optional<time_point> first{};
    };

    void end(const look& l, std::string_view queue, const finding& f, clock::time_point at) {
        const auto took = at - l.began;
        if (!is_held_ && l.number == 0 && took < slow) {
            return;
        }
        const std::lock_guard lock(mutex_);
        wants_snapshot_ = wants_snapshot_ || ((is_held_ || took >= slow) && at - asked_at_ >= ask_interval);
        const auto open = looks_.find(l.number);
        if (open == looks_.end()) {
            return; // it began before the snapshot was known, or is void
        }
        const auto latest = f.now > everywhere + margin ? f.now - margin : everywhere;
        const auto gate = std::min({f.first.value_or(latest), latest, open->second.lowest});
        looks_.erase(open);
        if (l.from == everywhere) {
            heads_.insert_or_assign(std::string(queue),
                                    head{gate, at + std::clamp<clock::duration>(10 * took, blind_min, blind_max)});
        } else if (const auto found = heads_.find(queue); found != heads_.end() && found->second.gate == l.from) {
            found->second.gate = std::max(l.from, gate); // unless it was changed meanwhile
        }
    }

    /// The claim has failed, or says nothing about where the first entry is.
    void drop(const look& l) noexcept {
        if (l.number != 0) {
            const std::lock_guard lock(mutex_);
            looks_.erase(l.number);
        }
    }

    /// Whether the last claim of this process found as many entries as it may take. Only a guess for the next one.
    [[nodiscard]] bool has_backlog() const noexcept { return has_backlog_; }
    void note_backlog(bool is_full) noexcept { has_backlog_ = is_full; }

    /// The store has committed an entry with this gate.
    void lower(std::string_view queue, time_point gate) noexcept {
        if (!is_held_) {
            return;
        }
        const std::lock_guard lock(mutex_);
        if (const auto found = heads_.find(queue); found != heads_.end()) {
            found->second.gate = std::min(found->second.gate, gate);
        }
        for (auto& [number, open] : looks_) {
            if (open.queue == queue) {
                open.lowest = std::min(open.lowest, gate);
            }
        }
    }

    /// Makes the next claims look everywhere: a transaction has unlocked what others have passed over.
    void forget() noexcept {
        if (is_held_) {
            const std::lock_guard lock(mutex_);
            heads_.clear();
            looks_.clear();
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

    /// Empty: there is none.
    void note_snapshot(std::string oldest, clock::time_point at) {
        const std::lock_guard lock(mutex_);
        if (oldest.empty() || oldest != oldest_) {
            oldest_ = std::move(oldest);
            same_since_ = at;
            heads_.clear();
            looks_.clear();
        }
        is_held_ = at - same_since_ >= ask_interval;
    }

  private:
    struct head {
        time_point gate{};
        clock::time_point good_until{};
    };
    struct open_look {
        std::string queue{};
        time_point lowest = time_point::max(); ///< of the gates that the store has committed since it began
    };

    [[nodiscard]] time_point head_of(std::string_view queue, clock::time_point at) const {
        const auto found = heads_.find(queue);
        return found == heads_.end() || at >= found->second.good_until ? everywhere : found->second.gate;
    }

    mutable std::mutex mutex_{};
    std::atomic<bool> is_held_ = false;
    std::atomic<bool> wants_snapshot_ = false;
    std::atomic<bool> has_backlog_ = false;
    clock::time_point asked_at_;
    std::string oldest_{}; ///< the transaction up to which the oldest snapshot sees all
    clock::time_point same_since_{};
    std::map<std::string, head, std::less<>> heads_{};
    std::map<std::uint64_t, open_look> looks_{};
    std::uint64_t last_number_ = 0;
};

} // namespace postgres::detail
} // namespace v0
} // namespace vouch
