// SPDX-License-Identifier: MIT
// The numbers of every queue, and how old they are. To count a queue may read all its rows, so it is done rarely: after
// a look that took a time, the next comes no sooner than `rest_factor` times as long. Only one thread looks; the others
// get the numbers that are there.
//
// Thread-safe.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <vouch/contract/entry.hpp>
#include <vouch/contract/is_saga.hpp>
#include <vouch/contract/query.hpp>
#include <vouch/contract/state.hpp>
#include <vouch/contract/time.hpp>
#include <vouch/observe/detail/depth.hpp>
#include <vouch/observe/look_options.hpp>
#include <vouch/observe/metrics.hpp>

namespace vouch {
inline namespace v0 {
namespace page {
namespace detail {

/// A queue at one moment.
struct look {
    time_point at{};
    state_counts counts{};
    std::optional<time_point> next_due{};
    id oldest{}; ///< the live entry that was enqueued first
    std::optional<time_point> oldest_since{};
    std::size_t stuck = 0; ///< among the oldest live entries

    [[nodiscard]] duration overdue() const { return next_due && *next_due < at ? at - *next_due : duration::zero(); }
};

/// A reader for the metrics whose counts are known already, so that a look counts once, and which notes what they read.
template <class Reader>
struct noting_reader {
    const Reader& in;
    look& seen;
    duration stuck_after;

    [[nodiscard]] state_counts counts(std::string_view) const { return seen.counts; }
    [[nodiscard]] std::optional<time_point> next_due(std::string_view) const { return seen.next_due; }
    [[nodiscard]] std::vector<entry> list(const query& q) const {
        auto found = in.list(q);
        for (const auto& e : found) {
            if (seen.oldest.is_nil()) {
                seen.oldest = e.id;
                seen.oldest_since = e.created_at;
            }
            seen.stuck += vouch::detail::is_stuck(e, is_saga(e), later(seen.at, -stuck_after)) ? 1U : 0U;
        }
        return found;
    }
};

class looks {
  public:
    static constexpr std::size_t history_max = 120;
    static constexpr std::int64_t rest_factor = 50;

    /// Looks at the queues whose turn it is, those with the oldest look first, until `budget` is used up.
    template <class Reader>
    void refresh(const Reader& in, const std::vector<std::string>& queues, const std::function<time_point()>& now,
                 metrics& numbers, const look_options& how, std::chrono::milliseconds budget) {
        const std::unique_lock only_one(looking_, std::try_to_lock);
        if (!only_one) {
            return;
        }
        const auto end = std::chrono::steady_clock::now() + budget;
        for (const auto& queue : due(queues)) {
            const auto begun = std::chrono::steady_clock::now();
            if (begun >= end) {
                return;
            }
            look seen{.at = now(), .counts = in.counts(queue), .next_due = in.next_due(queue)};
            numbers.look_at(noting_reader<Reader>{in, seen, how.stuck_after}, queue, seen.at, how);
            const auto took = std::chrono::steady_clock::now() - begun;
            keep(queue, std::move(seen), took);
        }
    }

    /// The looks at a queue, oldest first.
    [[nodiscard]] std::deque<look> at(const std::string& queue) const {
        const std::lock_guard lock(mutex_);
        const auto found = queues_.find(queue);
        return found == queues_.end() ? std::deque<look>{} : found->second.history;
    }

  private:
    using steady_time = std::chrono::steady_clock::time_point;
    struct queue_looks {
        std::deque<look> history{};
        steady_time next{}; ///< not before
    };

    [[nodiscard]] std::vector<std::string> due(const std::vector<std::string>& queues) const {
        const std::lock_guard lock(mutex_);
        std::vector<std::pair<steady_time, std::string>> out;
        const auto now = std::chrono::steady_clock::now();
        for (const auto& queue : queues) {
            const auto found = queues_.find(queue);
            const auto next = found == queues_.end() ? steady_time{} : found->second.next;
            if (next <= now) {
                out.emplace_back(next, queue);
            }
        }
        std::sort(out.begin(), out.end());
        std::vector<std::string> names;
        for (auto& [next, queue] : out) {
            names.push_back(std::move(queue));
        }
        return names;
    }

    void keep(const std::string& queue, look seen, std::chrono::steady_clock::duration took) {
        constexpr auto least = std::chrono::seconds{1};
        const std::lock_guard lock(mutex_);
        auto& kept = queues_[queue];
        kept.history.push_back(std::move(seen));
        if (kept.history.size() > history_max) {
            kept.history.pop_front();
        }
        kept.next =
            std::chrono::steady_clock::now() + std::max<std::chrono::steady_clock::duration>(least, took * rest_factor);
    }

    mutable std::mutex looking_;
    mutable std::mutex mutex_;
    std::map<std::string, queue_looks> queues_{};
};

} // namespace detail
} // namespace page
} // namespace v0
} // namespace vouch
