// SPDX-License-Identifier: MIT
// Observers ready to use: a line logger and Prometheus metrics.
// Joined from the split headers by single_include/amalgamate.py; change those, not this file.
#ifndef VOUCH_SINGLE_HEADER_OBSERVE
#define VOUCH_SINGLE_HEADER_OBSERVE

#ifdef VOUCH_SPLIT_HEADERS
#error "vouch: a translation unit includes either the single headers or the split ones, not both"
#endif

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <vouch/vouch.hpp>

// ---- vouch/observe/logger.hpp
// An observer that writes a line per event, by level, to a sink of the application's choosing (stderr by default).
// Warnings and errors are on unless told otherwise. A line has names, ids and codes; never a payload, never an
// exception's text; and whatever a name contains, a line stays one line.
//
// Thread-safe: lines are made and handed to the sink one at a time.

namespace vouch {
inline namespace v0 {

enum class log_level : std::uint8_t {
    debug,   ///< polls, claims, starts
    info,    ///< what went as it should
    warning, ///< retries, dead letters, claims lost
    error,   ///< the store failed, an outcome could not be recorded, a payload could not be read
};

[[nodiscard]] constexpr std::string_view name_of(log_level level) noexcept {
    switch (level) {
    case log_level::debug: return "debug";
    case log_level::info: return "info";
    case log_level::warning: return "warning";
    case log_level::error: return "error";
    }
    return "?";
}

[[nodiscard]] constexpr log_level level_of(const event& e) noexcept {
    switch (e.what) {
    case event_kind::claimed:
    case event_kind::started:
    case event_kind::polled: return log_level::debug;
    case event_kind::enqueued:
    case event_kind::succeeded:
    case event_kind::advanced:
    case event_kind::group_completed:
    case event_kind::purged: return log_level::info;
    case event_kind::released: return e.tag.empty() ? log_level::info : log_level::warning; // nobody knows its kind
    case event_kind::retried:
    case event_kind::stale:
    case event_kind::lease_lost: return log_level::warning;
    case event_kind::dead: return e.error == "undecodable" ? log_level::error : log_level::warning;
    case event_kind::unsettled:
    case event_kind::store_error: return log_level::error;
    }
    return log_level::error;
}

/// `2026-11-16T16:13:34.123456Z`, whatever the year.
[[nodiscard]] inline std::string to_utc(time_point at) {
    const auto day = std::chrono::floor<std::chrono::days>(at);
    const std::chrono::year_month_day date{day};
    const std::chrono::hh_mm_ss<duration> time{at - day};
    std::array<char, 64> text{};
    std::snprintf(text.data(), text.size(), "%04d-%02u-%02uT%02d:%02d:%02d.%06dZ", static_cast<int>(date.year()),
                  static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
                  static_cast<int>(time.hours().count()), static_cast<int>(time.minutes().count()),
                  static_cast<int>(time.seconds().count()), static_cast<int>(time.subseconds().count()));
    return text.data();
}

/// Gets a line without its end. What it throws is dropped.
using log_sink = std::function<void(log_level, std::string_view line)>;

inline void log_to_stderr(log_level /*level*/, std::string_view line) {
    std::fprintf(stderr, "%.*s\n", static_cast<int>(line.size()), line.data());
}

class logger {
  public:
    explicit logger(log_level least = log_level::warning, log_sink sink = log_to_stderr)
        : least_(least), sink_(std::move(sink)) {}

    void on(const event& e) noexcept {
        const auto level = level_of(e);
        if (level < least_) {
            return;
        }
        try {
            const std::lock_guard lock(mutex_);
            write(level, e);
            sink_(level, line_);
        } catch (...) { // NOLINT(bugprone-empty-catch): there is nobody to tell
        }
    }

  private:
    void write(log_level level, const event& e) {
        line_ = to_utc(e.at);
        line_ += ' ';
        line_ += name_of(level);
        line_ += ' ';
        line_ += name_of(e.what);
        add("queue", e.queue);
        add("topic", e.topic);
        if (!e.id.is_nil()) {
            add("id", to_string(e.id));
        }
        add("group", e.group);
        if (e.attempt != 0) {
            add("attempt", std::to_string(e.attempt));
        }
        if (e.what == event_kind::purged || e.what == event_kind::polled) {
            add("count", std::to_string(e.count));
        }
        if (e.took != duration::zero()) {
            add("took_us", std::to_string(e.took.count()));
        }
        add("error", e.error);
        add("tag", e.tag);
        add("worker", e.worker);
    }

    /// ` name=value`; quoted where it must be, so that a value can neither end the line nor look like another field.
    void add(std::string_view name, std::string_view value) {
        if (value.empty()) {
            return;
        }
        line_ += ' ';
        line_ += name;
        line_ += '=';
        const auto is_plain = [](char c) { return c > ' ' && c < '\x7f' && c != '"' && c != '\\' && c != '='; };
        bool plain = true;
        for (const char c : value) {
            plain = plain && is_plain(c);
        }
        if (plain) {
            line_ += value;
            return;
        }
        constexpr std::string_view hex = "0123456789abcdef";
        line_ += '"';
        for (const char c : value) {
            const auto byte = static_cast<unsigned char>(c);
            if (c == ' ' || c == '=' || is_plain(c)) {
                line_ += c;
            } else if (c == '"' || c == '\\') {
                line_ += '\\';
                line_ += c;
            } else {
                line_ += "\\x";
                line_ += hex[byte >> 4U];
                line_ += hex[byte & 0xfU];
            }
        }
        line_ += '"';
    }

    log_level least_;
    log_sink sink_;
    std::mutex mutex_;
    std::string line_{};
};

} // namespace v0
} // namespace vouch

// ---- vouch/observe/depth.hpp
// A look at how deep a queue is: what is stored, what is late, what is stuck, which sagas are under way. It reads
// entries page by page, without payloads, up to a limit, and says what it has not seen.

namespace vouch {
inline namespace v0 {

struct look_options {
    duration stuck_after = std::chrono::minutes{5}; ///< an entry that is due and has not moved for so long is stuck
    std::size_t entries_max = 10'000;               ///< live entries looked at, oldest first; 0: only what is counted
    std::vector<std::string> saga_topics{};         ///< whose live entries are sagas under way
};

namespace detail {

struct depth {
    state_counts counts{};
    duration overdue{}; ///< for how long the next entry has been due
    std::size_t stuck = 0;
    std::map<std::string, std::size_t> sagas{}; ///< under way, by topic
    std::size_t unseen = 0;                     ///< live entries past the limit
};

template <class Reader>
[[nodiscard]] depth depth_of(const Reader& store, std::string_view queue, time_point now, const look_options& how) {
    constexpr std::size_t page_size = 1000;
    depth out{.counts = store.counts(queue)};
    if (const auto next = store.next_due(queue); next && *next < now) {
        out.overdue = now - *next;
    }
    for (const auto& topic : how.saga_topics) {
        out.sagas[topic] = 0;
    }
    const auto since = later(now, -how.stuck_after);
    auto page = query::live(std::string(queue));
    for (auto left = how.entries_max;;) {
        page.limit = std::min(left, page_size);
        const auto found = store.list(page);
        for (const auto& e : found) {
            out.stuck += e.updated_at < since && (e.lease_until ? *e.lease_until : e.due_at) < since ? 1U : 0U;
            if (const auto saga = out.sagas.find(e.topic); saga != out.sagas.end()) {
                saga->second += 1;
            }
        }
        left -= found.size();
        if (found.size() < page.limit) {
            return out;
        }
        if (left == 0) {
            out.unseen = out.counts.live() - std::min<std::size_t>(out.counts.live(), how.entries_max);
            return out;
        }
        page.after = found.back().sequence;
    }
}

} // namespace detail
} // namespace v0
} // namespace vouch

// ---- vouch/observe/histogram.hpp
// How often something took how long, in buckets from a tenth of a millisecond to a day. Not thread-safe by itself.

namespace vouch {
inline namespace v0 {
namespace detail {

/// How often something took how long.
class histogram {
  public:
    struct bound {
        duration at_most;
        std::string_view name; ///< in seconds
    };
    static constexpr std::array<bound, 14> bounds{{{duration{100}, "0.0001"},
                                                   {duration{1'000}, "0.001"},
                                                   {duration{5'000}, "0.005"},
                                                   {duration{10'000}, "0.01"},
                                                   {duration{50'000}, "0.05"},
                                                   {duration{100'000}, "0.1"},
                                                   {duration{500'000}, "0.5"},
                                                   {duration{1'000'000}, "1"},
                                                   {duration{5'000'000}, "5"},
                                                   {duration{30'000'000}, "30"},
                                                   {duration{60'000'000}, "60"},
                                                   {duration{300'000'000}, "300"},
                                                   {duration{3'600'000'000}, "3600"},
                                                   {duration{86'400'000'000}, "86400"}}};

    void add(duration took) noexcept {
        for (std::size_t i = 0; i < bounds.size(); ++i) {
            buckets_[i] += took <= bounds[i].at_most ? 1U : 0U;
        }
        count_ += 1;
        sum_ += took;
    }

    [[nodiscard]] std::uint64_t up_to(std::size_t which) const noexcept { return buckets_[which]; }
    [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
    [[nodiscard]] duration sum() const noexcept { return sum_; }

  private:
    std::array<std::uint64_t, bounds.size()> buckets_{}; ///< cumulative
    std::uint64_t count_ = 0;
    duration sum_{};
};

/// A number of seconds, exact to the microsecond.
[[nodiscard]] inline std::string seconds_text(duration d) {
    const auto negative = d < duration::zero();
    const auto micros = negative ? -d.count() : d.count();
    auto fraction = std::to_string(micros % 1'000'000);
    return (negative ? "-" : "") + std::to_string(micros / 1'000'000) + '.' + std::string(6 - fraction.size(), '0') +
           fraction;
}

} // namespace detail
} // namespace v0
} // namespace vouch

// ---- vouch/observe/metrics.hpp
// An observer that counts, and writes what it has counted as Prometheus text exposition (format 0.0.4).
//
// Counters and histograms come from events; the gauges of a queue's depth come from a look at the store (`look_at`), so
// that they are right after a restart, too. A look may cost the queue's rows, so an application takes it when it is
// scraped or every half minute, never on the way of a claim. Labels are queues, outcomes, states and error codes:
// bounded, because everything beyond `labels_max` queues is counted under `other`.
//
// Thread-safe.

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
        case event_kind::started: return;
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

#endif // VOUCH_SINGLE_HEADER_OBSERVE
