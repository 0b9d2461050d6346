// SPDX-License-Identifier: MIT
// An observer that counts events and prints the numbers in the Prometheus text format (version 0.0.4).
//
// Counters and histograms come from events. The gauges of a queue's depth come from the store, by `look_at`, so they
// are right after a restart. `look_at` may read every row of the queue: call it when the metrics are scraped, or every
// half minute. Labels are queues, topics of sagas, outcomes, states and error codes. Their number is bounded: the
// queues after the first `labels_max` share the label `other`, which has the sum of their numbers (the longest for
// `vouch_overdue_seconds`), and so do the codes and topics after the first hundred of a queue.
//
// Thread-safe. The memory grows with the number of queues that are looked at: the last look at each is kept.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include <vouch/contract/state.hpp>
#include <vouch/contract/time.hpp>
#include <vouch/observe/detail/depth.hpp>
#include <vouch/observe/detail/exposition.hpp>
#include <vouch/observe/detail/histogram.hpp>
#include <vouch/observe/detail/label_counts.hpp>
#include <vouch/observe/detail/tally.hpp>
#include <vouch/observe/look_options.hpp>
#include <vouch/observe/observer.hpp>

namespace vouch {
inline namespace v0 {

/// Counts events. One object can observe any number of outboxes, runners and workers.
class metrics {
  public:
    static constexpr std::size_t labels_max = 1000; ///< queues with a label of their own

    void on(const event& e) noexcept {
        try {
            const std::lock_guard lock(mutex_);
            of(e.queue).count(e);
        } catch (...) { // NOLINT(bugprone-empty-catch): no memory for a new queue
        }
    }

    /// Reads the depth of a queue from the store. Throws what the store throws.
    template <class Reader>
    void look_at(const Reader& store, std::string_view queue, time_point now, const look_options& how = {}) {
        auto seen = detail::depth_of(store, queue, now, how);
        const std::lock_guard lock(mutex_);
        looks_[label(queue)].insert_or_assign(std::string(queue), std::move(seen));
    }

    /// All numbers, as the answer to a scrape (`Content-Type: text/plain; version=0.0.4`).
    [[nodiscard]] std::string text() const {
        const std::lock_guard lock(mutex_);
        detail::exposition out;
        counters(out);
        outcomes(out);
        by_error(out);
        gauges(out);
        histograms(out);
        return std::move(out).text();
    }

  private:
    using histogram = detail::histogram;
    using exposition = detail::exposition;

    using tally = detail::tally;

    /// The label of a queue: its name, or `other`.
    [[nodiscard]] std::string label(std::string_view queue) {
        if (labels_.size() < labels_max) {
            labels_.emplace(queue);
        }
        return std::string(labels_.contains(queue) ? queue : detail::other_label);
    }
    [[nodiscard]] tally& of(std::string_view queue) {
        const auto found = queues_.find(queue);
        return found != queues_.end() ? found->second : queues_[label(queue)];
    }

    void counters(exposition& out) const {
        struct row {
            std::string_view name;
            std::string_view help;
            std::uint64_t tally::*value;
        };
        static constexpr std::array<row, 5> rows{
            {{"vouch_enqueued_total", "Entries enqueued by the observed handlers and outboxes.", &tally::enqueued},
             {"vouch_claimed_total", "Entries claimed.", &tally::claimed},
             {"vouch_leases_lost_total", "Claims that another worker took over before their outcome.", &tally::lost},
             {"vouch_purged_total", "Terminal entries removed.", &tally::purged},
             {"vouch_groups_completed_total", "Groups whose last open entry succeeded.", &tally::groups}}};
        for (const auto& r : rows) {
            out.head(r.name, "counter", r.help);
            for (const auto& [queue, n] : queues_) {
                out.line({{"queue", queue}}, n.*r.value);
            }
        }
    }

    void outcomes(exposition& out) const {
        out.head("vouch_settled_total", "counter", "Claims ended, by outcome.");
        for (const auto& [queue, n] : queues_) {
            for (std::size_t i = 0; i < tally::outcome_kinds.size(); ++i) {
                out.line({{"queue", queue}, {"outcome", name_of(tally::outcome_kinds[i])}}, n.ended[i]);
            }
        }
        out.head("vouch_dead_total", "counter", "Entries that died, by reason.");
        for (const auto& [queue, n] : queues_) {
            for (std::size_t i = 0; i < tally::death_reasons.size(); ++i) {
                out.line({{"queue", queue}, {"reason", name_of(tally::death_reasons[i])}}, n.dead[i]);
            }
        }
        out.head("vouch_left_total", "counter",
                 "Claims released because no handler here can continue them, by reason.");
        for (const auto& [queue, n] : queues_) {
            for (const auto& [reason, times] : n.left) {
                out.line({{"queue", queue}, {"reason", reason}}, times);
            }
        }
        out.head("vouch_sagas_total", "counter",
                 "Sagas ended: completed, compensated, or dead until an operator resumes them.");
        for (const auto& [queue, n] : queues_) {
            out.line({{"queue", queue}, {"outcome", "completed"}}, n.completed.count());
            out.line({{"queue", queue}, {"outcome", "compensated"}}, n.compensated.count());
            out.line({{"queue", queue}, {"outcome", "dead"}}, n.sagas_dead);
        }
    }

    void by_error(exposition& out) const {
        struct row {
            std::string_view name;
            std::string_view help;
            detail::label_counts<> tally::*value;
        };
        static constexpr std::array<row, 3> rows{
            {{"vouch_failures_total", "Failed attempts, retried or dead, by error code.", &tally::failures},
             {"vouch_store_errors_total", "Faults of the store, by kind.", &tally::store_errors},
             {"vouch_hook_errors_total", "Outcomes delayed by an audit sink or a group callback, by error code.",
              &tally::hook_errors}}};
        for (const auto& r : rows) {
            out.head(r.name, "counter", r.help);
            for (const auto& [queue, n] : queues_) {
                for (const auto& [error, times] : n.*r.value) {
                    out.line({{"queue", queue}, {"error", error}}, times);
                }
            }
        }
    }

    void gauges(exposition& out) const {
        out.head("vouch_active", "gauge", "Claims held by the observed runners and workers.");
        for (const auto& [queue, n] : queues_) {
            out.line({{"queue", queue}}, n.active);
        }
        std::map<std::string_view, detail::depth> depths;
        for (const auto& [queue, looks] : looks_) {
            for (const auto& [which, d] : looks) {
                depths[queue] += d;
            }
        }
        out.head("vouch_entries", "gauge", "Entries stored, by state, at the last look.");
        for (const auto& [queue, d] : depths) {
            for (const auto s : all_states) {
                out.line({{"queue", queue}, {"state", name_of(s)}}, d.counts[s]);
            }
        }
        out.head("vouch_overdue_seconds", "gauge", "How long ago the next entry became due, at the last look.");
        for (const auto& [queue, d] : depths) {
            out.seconds({{"queue", queue}}, d.overdue);
        }
        struct row {
            std::string_view name;
            std::string_view help;
            std::size_t detail::depth::*value;
        };
        static constexpr std::array<row, 2> rows{
            {{"vouch_stuck_entries", "Live entries that are due and do not change, at the last look.",
              &detail::depth::stuck},
             {"vouch_entries_not_looked_at",
              "Live entries that the last look did not read, whose stuck entries and sagas are not counted.",
              &detail::depth::unseen}}};
        for (const auto& r : rows) {
            out.head(r.name, "gauge", r.help);
            for (const auto& [queue, d] : depths) {
                out.line({{"queue", queue}}, d.*r.value);
            }
        }
        sagas(out, depths);
    }

    static void sagas(exposition& out, const std::map<std::string_view, detail::depth>& depths) {
        struct row {
            std::string_view name;
            std::string_view help;
            std::size_t detail::saga_depth::*value;
        };
        static constexpr std::array<row, 2> rows{
            {{"vouch_sagas_active", "Sagas that have not ended, by topic, at the last look.",
              &detail::saga_depth::active},
             {"vouch_sagas_stuck", "Sagas that have begun and do not change, by topic, at the last look.",
              &detail::saga_depth::stuck}}};
        for (const auto& r : rows) {
            out.head(r.name, "gauge", r.help);
            for (const auto& [queue, d] : depths) {
                for (const auto& [topic, n] : d.sagas) {
                    out.line({{"queue", queue}, {"topic", topic}}, n.*r.value);
                }
            }
        }
    }

    void histograms(exposition& out) const {
        struct row {
            std::string_view name;
            std::string_view help;
            histogram tally::*value;
        };
        static constexpr std::array<row, 5> rows{
            {{"vouch_wait_seconds", "Time from due to claimed.", &tally::wait},
             {"vouch_handler_seconds", "Time that handlers ran.", &tally::handler},
             {"vouch_retry_delay_seconds", "Time from a failed attempt to the next one.", &tally::delay},
             {"vouch_age_seconds", "Time from enqueued to succeeded.", &tally::age},
             {"vouch_poll_seconds", "Time that a commit of settles and claims took.", &tally::poll}}};
        for (const auto& r : rows) {
            out.head(r.name, "histogram", r.help);
            for (const auto& [queue, n] : queues_) {
                out.lines({{"queue", queue}}, n.*r.value);
            }
        }
        out.head("vouch_saga_seconds", "histogram", "Time from enqueued to the end of a saga, by outcome.");
        for (const auto& [queue, n] : queues_) {
            out.lines({{"queue", queue}, {"outcome", "completed"}}, n.completed);
            out.lines({{"queue", queue}, {"outcome", "compensated"}}, n.compensated);
        }
    }

    mutable std::mutex mutex_;
    std::set<std::string, std::less<>> labels_{}; ///< queues with numbers of their own
    std::map<std::string, tally, std::less<>> queues_{};
    std::map<std::string, std::map<std::string, detail::depth>> looks_{}; ///< by label, then by queue
};

} // namespace v0
} // namespace vouch
