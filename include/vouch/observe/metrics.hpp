// SPDX-License-Identifier: MIT
// An observer that counts, and writes what it has counted as Prometheus text exposition (format 0.0.4).
//
// Counters and histograms come from events; the gauges of a queue's depth come from a look at the store (`look_at`), so
// that they are right after a restart, too. A look may cost the queue's rows, so an application takes it when it is
// scraped or every half minute, never on the way of a claim. Labels are queues, outcomes, states and error codes:
// bounded, because everything beyond `labels_max` queues is counted under `other`.
//
// Thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include <vouch/contract/state.hpp>
#include <vouch/contract/time.hpp>
#include <vouch/observe/depth.hpp>
#include <vouch/observe/histogram.hpp>
#include <vouch/observe/observer.hpp>

namespace vouch {
inline namespace v0 {

class metrics {
  public:
    static constexpr std::size_t labels_max = 1000;

    void on(const event& e) noexcept {
        try {
            const std::lock_guard lock(mutex_);
            count(e, of(e.queue));
        } catch (...) { // NOLINT(bugprone-empty-catch): no memory for a new queue's numbers
        }
    }

    /// Reads the depth of a queue, as `look_options` say. Throws the reader's faults.
    template <class Reader>
    void look_at(const Reader& store, std::string_view queue, time_point now, const look_options& how = {}) {
        auto seen = detail::depth_of(store, queue, now, how);
        const std::lock_guard lock(mutex_);
        depths_[label(queue)] = std::move(seen);
    }

    /// Everything, as a scrape wants it (`Content-Type: text/plain; version=0.0.4`).
    [[nodiscard]] std::string text() const {
        const std::lock_guard lock(mutex_);
        std::string out;
        counters(out);
        outcomes(out);
        by_error(out);
        gauges(out);
        histograms(out);
        return out;
    }

  private:
    using histogram = detail::histogram;

    static constexpr std::array outcome_kinds{event_kind::succeeded, event_kind::advanced, event_kind::retried,
                                              event_kind::dead,      event_kind::released, event_kind::stale,
                                              event_kind::unsettled};

    struct numbers {
        std::uint64_t enqueued = 0;
        std::uint64_t claimed = 0;
        std::uint64_t lost = 0;
        std::uint64_t purged = 0;
        std::uint64_t groups = 0;
        std::array<std::uint64_t, outcome_kinds.size()> ended{};
        std::uint64_t completed = 0;   ///< sagas
        std::uint64_t compensated = 0; ///< sagas
        std::int64_t active = 0;
        std::map<std::string, std::uint64_t, std::less<>> errors{};
        histogram wait{};
        histogram handler{};
        histogram age{};
        histogram saga{};
        histogram poll{};
    };

    [[nodiscard]] std::string label(std::string_view queue) const {
        return std::string(queues_.size() < labels_max || queues_.contains(queue) ? queue : "other");
    }
    [[nodiscard]] numbers& of(std::string_view queue) {
        const auto found = queues_.find(queue);
        return found != queues_.end() ? found->second : queues_[label(queue)];
    }

    static void count(const event& e, numbers& n) {
        switch (e.what) {
        case event_kind::enqueued: n.enqueued += 1; return;
        case event_kind::claimed:
            n.claimed += 1;
            n.active += 1;
            n.wait.add(e.late);
            return;
        case event_kind::started:
        case event_kind::hook_failed: return;
        case event_kind::lease_lost:
            n.lost += 1;
            n.active -= e.tag == "unstarted" ? 1 : 0; // no outcome will follow
            return;
        case event_kind::purged: n.purged += e.count; return;
        case event_kind::group_completed: n.groups += 1; return;
        case event_kind::polled: n.poll.add(e.took); return;
        case event_kind::store_error:
            n.errors[n.errors.size() < labels_max ? std::string(e.error) : "other"] += 1;
            return;
        default: end_claim(e, n); return;
        }
    }

    static void end_claim(const event& e, numbers& n) {
        for (std::size_t i = 0; i < outcome_kinds.size(); ++i) {
            n.ended[i] += outcome_kinds[i] == e.what ? 1U : 0U;
        }
        n.active -= 1;
        if (e.what != event_kind::released) { // most of which were never started
            n.handler.add(e.took);
        }
        if (e.what == event_kind::succeeded) {
            n.age.add(e.age);
            n.completed += e.tag == "completed" ? 1U : 0U;
            n.compensated += e.tag == "compensated" ? 1U : 0U;
            if (!e.tag.empty()) {
                n.saga.add(e.age);
            }
        }
    }

    // Writing.

    static void head(std::string& out, std::string_view name, std::string_view type, std::string_view help) {
        out.append("# HELP ").append(name).append(" ").append(help).append("\n# TYPE ").append(name).append(" ");
        out.append(type).append("\n");
    }

    static void label_to(std::string& out, std::string_view name, std::string_view value) {
        out.append(out.back() == '{' ? "" : ",").append(name).append("=\"");
        for (const char c : value) {
            if (c == '\n') {
                out += "\\n";
            } else {
                out.append(c == '"' || c == '\\' ? "\\" : "").push_back(c);
            }
        }
        out += '"';
    }

    struct extra {
        std::string_view name{};
        std::string_view value{};
    };
    static void line(std::string& out, std::string_view name, std::string_view queue, const extra& more,
                     const std::string& value) {
        out.append(name).append("{");
        label_to(out, "queue", queue);
        if (!more.name.empty()) {
            label_to(out, more.name, more.value);
        }
        out.append("} ").append(value).append("\n");
    }

    void counters(std::string& out) const {
        struct row {
            std::string_view name;
            std::string_view help;
            std::uint64_t numbers::*value;
        };
        static constexpr std::array<row, 5> rows{
            {{"vouch_enqueued_total", "Entries enqueued, by handlers and outboxes observed here.", &numbers::enqueued},
             {"vouch_claimed_total", "Entries claimed.", &numbers::claimed},
             {"vouch_leases_lost_total", "Claims taken over while in hand.", &numbers::lost},
             {"vouch_purged_total", "Ended entries removed.", &numbers::purged},
             {"vouch_groups_completed_total", "Groups whose last entry succeeded.", &numbers::groups}}};
        for (const auto& r : rows) {
            head(out, r.name, "counter", r.help);
            for (const auto& [queue, n] : queues_) {
                line(out, r.name, queue, {}, std::to_string(n.*r.value));
            }
        }
    }

    void outcomes(std::string& out) const {
        head(out, "vouch_settled_total", "counter", "Claims ended, by outcome.");
        for (const auto& [queue, n] : queues_) {
            for (std::size_t i = 0; i < outcome_kinds.size(); ++i) {
                line(out, "vouch_settled_total", queue, {"outcome", name_of(outcome_kinds[i])},
                     std::to_string(n.ended[i]));
            }
        }
        head(out, "vouch_sagas_total", "counter", "Sagas ended, by whether they were completed or compensated.");
        for (const auto& [queue, n] : queues_) {
            line(out, "vouch_sagas_total", queue, {"outcome", "completed"}, std::to_string(n.completed));
            line(out, "vouch_sagas_total", queue, {"outcome", "compensated"}, std::to_string(n.compensated));
        }
    }

    void by_error(std::string& out) const {
        head(out, "vouch_store_errors_total", "counter", "Faults of the store, by kind.");
        for (const auto& [queue, n] : queues_) {
            for (const auto& [error, count] : n.errors) {
                line(out, "vouch_store_errors_total", queue, {"error", error}, std::to_string(count));
            }
        }
    }

    void gauges(std::string& out) const {
        head(out, "vouch_active", "gauge", "Claims in hand here.");
        for (const auto& [queue, n] : queues_) {
            line(out, "vouch_active", queue, {}, std::to_string(n.active));
        }
        head(out, "vouch_entries", "gauge", "Entries stored, by state, as of the last look.");
        for (const auto& [queue, d] : depths_) {
            for (const auto s : all_states) {
                line(out, "vouch_entries", queue, {"state", name_of(s)}, std::to_string(d.counts[s]));
            }
        }
        head(out, "vouch_overdue_seconds", "gauge", "For how long the next entry has been due, as of the last look.");
        for (const auto& [queue, d] : depths_) {
            line(out, "vouch_overdue_seconds", queue, {}, detail::seconds_text(d.overdue));
        }
        head(out, "vouch_stuck_entries", "gauge", "Live entries that are due and do not move, as of the last look.");
        for (const auto& [queue, d] : depths_) {
            line(out, "vouch_stuck_entries", queue, {}, std::to_string(d.stuck));
        }
        head(out, "vouch_sagas_active", "gauge", "Sagas that have not ended, by topic, as of the last look.");
        for (const auto& [queue, d] : depths_) {
            for (const auto& [topic, count] : d.sagas) {
                line(out, "vouch_sagas_active", queue, {"topic", topic}, std::to_string(count));
            }
        }
        head(out, "vouch_entries_not_looked_at", "gauge",
             "Live entries past the limit of the last look, whose stuck entries and sagas are not counted.");
        for (const auto& [queue, d] : depths_) {
            line(out, "vouch_entries_not_looked_at", queue, {}, std::to_string(d.unseen));
        }
    }

    void histograms(std::string& out) const {
        struct row {
            std::string_view name;
            std::string_view help;
            histogram numbers::*value;
        };
        static constexpr std::array<row, 5> rows{
            {{"vouch_wait_seconds", "From due to claimed.", &numbers::wait},
             {"vouch_handler_seconds", "What handlers took.", &numbers::handler},
             {"vouch_age_seconds", "From enqueued to succeeded.", &numbers::age},
             {"vouch_saga_seconds", "From enqueued to the end of a saga.", &numbers::saga},
             {"vouch_poll_seconds", "What a commit of settles and claims took.", &numbers::poll}}};
        for (const auto& r : rows) {
            head(out, r.name, "histogram", r.help);
            const std::string name(r.name);
            for (const auto& [queue, n] : queues_) {
                const auto& h = n.*r.value;
                for (std::size_t i = 0; i < histogram::bounds.size(); ++i) {
                    line(out, name + "_bucket", queue, {"le", histogram::bounds[i].name}, std::to_string(h.up_to(i)));
                }
                line(out, name + "_bucket", queue, {"le", "+Inf"}, std::to_string(h.count()));
                line(out, name + "_sum", queue, {}, detail::seconds_text(h.sum()));
                line(out, name + "_count", queue, {}, std::to_string(h.count()));
            }
        }
    }

    mutable std::mutex mutex_;
    std::map<std::string, numbers, std::less<>> queues_{};
    std::map<std::string, detail::depth, std::less<>> depths_{};
};

} // namespace v0
} // namespace vouch
