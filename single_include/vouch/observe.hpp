// SPDX-License-Identifier: MIT
// Observers ready to use: a line logger and Prometheus metrics.
// Joined from the split headers by single_include/amalgamate.py; change those, not this file.
#ifndef VOUCH_SINGLE_HEADER_OBSERVE
#define VOUCH_SINGLE_HEADER_OBSERVE

#ifdef VOUCH_SPLIT_HEADERS
#error "vouch: a translation unit includes either the single headers or the split ones, not both"
#endif

#include <vouch/vouch.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

// ---- vouch/observe/logger.hpp
// An observer that writes one line for each event to a sink, which is stderr by default. It writes warnings and errors,
// or from any other level on. A line has names, ids and codes, never a payload; it has the text of an exception only if
// the runner or worker has `exception_text` set. Values are escaped, so an event is always one line.
//
// Thread-safe: a logger calls its sink for one line at a time. A sink may cause events itself, for example by emitting
// through an outbox that a logger observes. The lines of such events are dropped, in every logger.

namespace vouch {
inline namespace v0 {

/// How important an event is.
enum class log_level : std::uint8_t {
    debug,   ///< polls, claims, starts of handlers
    info,    ///< normal outcomes
    warning, ///< retries, dead letters, lost claims
    error,   ///< the store failed, an outcome was not recorded, a payload could not be decoded
    off,     ///< no event has this level
};

/// The name of the enumerator.
[[nodiscard]] constexpr std::string_view name_of(log_level level) noexcept {
    switch (level) {
    case log_level::debug: return "debug";
    case log_level::info: return "info";
    case log_level::warning: return "warning";
    case log_level::error: return "error";
    case log_level::off: return "off";
    }
    return "?";
}

/// The level at which the logger writes an event.
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
    case event_kind::released: return e.tag.empty() ? log_level::info : log_level::warning; // no handler knows it
    case event_kind::retried:
    case event_kind::stale:
    case event_kind::lease_lost: return log_level::warning;
    case event_kind::dead: return e.error == "undecodable" ? log_level::error : log_level::warning;
    case event_kind::unsettled:
    case event_kind::hook_failed:
    case event_kind::store_error: return log_level::error;
    }
    return log_level::error;
}

/// Receives a line, without a line break. An exception that it throws is dropped.
using log_sink = std::function<void(log_level, std::string_view line)>;

/// The default sink.
inline void log_to_stderr(log_level /*level*/, std::string_view line) {
    std::fprintf(stderr, "%.*s\n", static_cast<int>(line.size()), line.data());
}

namespace detail {

/// Whether this thread is inside the sink of a logger.
inline thread_local bool is_in_log_sink = false;

/// Marks this thread while it is inside a sink.
struct log_sink_call {
    log_sink_call() noexcept { is_in_log_sink = true; }
    log_sink_call(const log_sink_call&) = delete;
    log_sink_call& operator=(const log_sink_call&) = delete;
    ~log_sink_call() { is_in_log_sink = false; }
};

} // namespace detail

/// Writes events at `least` and above.
class logger {
  public:
    static constexpr bool writes_log = true; ///< see `logging_observer`

    explicit logger(log_level least = log_level::warning, log_sink sink = log_to_stderr)
        : least_(least), sink_(std::move(sink)) {}

    void on(const event& e) noexcept {
        const auto level = level_of(e);
        // Inside a sink, the lock is held by this thread already, and a line that causes a line would never end.
        if (level < least_ || detail::is_in_log_sink) {
            return;
        }
        try {
            const std::lock_guard lock(mutex_);
            write(level, e);
            const detail::log_sink_call call;
            sink_(level, line_);
        } catch (...) { // NOLINT(bugprone-empty-catch): an observer cannot fail
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
        if (e.took && *e.took != duration::zero()) {
            add("took_us", std::to_string(e.took->count()));
        }
        if (e.delay != duration::zero()) {
            add("delay_us", std::to_string(e.delay.count()));
        }
        add("error", e.error);
        if (e.reason != death::none) {
            add("reason", name_of(e.reason));
        }
        add("text", e.text);
        add("tag", e.tag);
        add("worker", e.worker);
    }

    /// Adds ` name=value`. The value is quoted if needed, so it can neither end the line nor look like another field.
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

// ---- vouch/observe/detail/label_counts.hpp
// Counts by a label that comes from outside, such as an error code. The first `labels_max` labels have a count each;
// all further labels share the count `other`, so the memory is bounded. Not thread-safe.

namespace vouch {
inline namespace v0 {
namespace detail {

inline constexpr std::string_view other_label = "other";

template <class Count = std::uint64_t>
class label_counts {
  public:
    static constexpr std::size_t labels_max = 100;

    /// The count of the label, or the shared count.
    [[nodiscard]] Count& operator[](std::string_view label) {
        if (const auto found = counts_.find(label); found != counts_.end()) {
            return found->second;
        }
        return counts_[std::string(counts_.size() < labels_max ? label : other_label)];
    }

    [[nodiscard]] auto begin() const noexcept { return counts_.begin(); }
    [[nodiscard]] auto end() const noexcept { return counts_.end(); }

  private:
    std::map<std::string, Count, std::less<>> counts_{};
};

} // namespace detail
} // namespace v0
} // namespace vouch

// ---- vouch/observe/look_options.hpp
// How `metrics::look_at` reads the depth of a queue.

namespace vouch {
inline namespace v0 {

/// What a look at a queue counts as stuck, and how much it reads.
struct look_options {
    /// An entry is stuck if its due time or the end of its lease is this long ago and it has not changed since. A saga
    /// that has begun is stuck if it has not changed for this long, even while it waits for a reply or for a later
    /// time: this is how a participant without a worker becomes visible.
    duration stuck_after = std::chrono::minutes{5};
    /// How many live entries to read, oldest first. 0 reads none: then only the counts by state and the lateness are
    /// known.
    std::size_t entries_max = 10'000;
    /// Topics of sagas. A saga that has begun is recognised without it. It adds sagas that were emitted without
    /// `outbox::start` and have not been claimed yet, and a count of 0 for topics that have no saga.
    std::vector<std::string> saga_topics{};
};

} // namespace v0
} // namespace vouch

// ---- vouch/observe/detail/depth.hpp
// The depth of a queue at one moment: entries by state, how late the next one is, how many are stuck, which sagas are
// running. `depth_of` reads live entries page by page, without payloads, up to a limit, and counts those past the
// limit.

namespace vouch {
inline namespace v0 {
namespace detail {

struct saga_depth {
    std::size_t active = 0;
    std::size_t stuck = 0;
};

struct depth {
    state_counts counts{};
    duration overdue{};               ///< since when the next entry is due
    std::size_t stuck = 0;            ///< including sagas
    label_counts<saga_depth> sagas{}; ///< by topic
    std::size_t unseen = 0;           ///< live entries past the limit

    depth& operator+=(const depth& more) {
        for (const auto s : all_states) {
            counts[s] += more.counts[s];
        }
        overdue = std::max(overdue, more.overdue);
        stuck += more.stuck;
        for (const auto& [topic, n] : more.sagas) {
            auto& sum = sagas[topic];
            sum.active += n.active;
            sum.stuck += n.stuck;
        }
        unseen += more.unseen;
        return *this;
    }
};

/// See `look_options::stuck_after`; `since` is that long ago.
[[nodiscard]] inline bool is_stuck(const entry& e, bool is_saga, time_point since) noexcept {
    const bool is_early = (e.lease_until ? *e.lease_until : e.due_at) >= since;
    const bool has_begun = e.epoch > 0;
    return e.updated_at < since && (!is_early || (is_saga && has_begun));
}

[[nodiscard]] inline bool is_one_of(const std::vector<std::string>& names, std::string_view name) noexcept {
    return std::find(names.begin(), names.end(), name) != names.end();
}

template <class Reader>
[[nodiscard]] depth depth_of(const Reader& store, std::string_view queue, time_point now, const look_options& how) {
    constexpr std::size_t page_size = 1000;
    depth out{.counts = store.counts(queue)};
    if (const auto next = store.next_due(queue); next && *next < now) {
        out.overdue = now - *next;
    }
    for (const auto& topic : how.saga_topics) {
        out.sagas[topic] = {};
    }
    const auto since = later(now, -how.stuck_after);
    auto page = query::live(std::string(queue));
    for (auto left = how.entries_max;;) {
        page.limit = std::min(left, page_size);
        const auto found = store.list(page);
        for (const auto& e : found) {
            const bool is_saga = is_saga_progress(e.progress) || is_one_of(how.saga_topics, e.topic);
            const std::size_t stuck = is_stuck(e, is_saga, since) ? 1 : 0;
            out.stuck += stuck;
            if (is_saga) {
                auto& saga = out.sagas[e.topic];
                saga.active += 1;
                saga.stuck += stuck;
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

// ---- vouch/observe/detail/histogram.hpp
// A histogram of durations, in buckets from 0.1 ms to a day. Not thread-safe.

namespace vouch {
inline namespace v0 {
namespace detail {

class histogram {
  public:
    struct bound {
        duration at_most;
        std::string_view name; ///< in seconds, as text
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
    const auto fraction = std::to_string(micros % 1'000'000);
    std::string text = negative ? "-" : "";
    text += std::to_string(micros / 1'000'000);
    text += '.';
    text.append(6 - fraction.size(), '0');
    text += fraction;
    return text;
}

} // namespace detail
} // namespace v0
} // namespace vouch

// ---- vouch/observe/detail/exposition.hpp
// Writes the Prometheus text format, version 0.0.4: for each metric its help and type, then a line for each combination
// of labels.

namespace vouch {
inline namespace v0 {
namespace detail {

/// Collects the text. Not thread-safe.
class exposition {
  public:
    struct label {
        std::string_view name{};
        std::string_view value{};
    };
    using labels = std::vector<label>;

    /// Begins a metric.
    void head(std::string_view name, std::string_view type, std::string_view help) {
        name_ = name;
        out_.append("# HELP ").append(name).append(" ").append(help).append("\n# TYPE ").append(name).append(" ");
        out_.append(type).append("\n");
    }

    /// Adds a line to the metric that was begun last.
    template <class Number>
    void line(const labels& of, Number value) {
        write("", of, std::to_string(value));
    }
    void seconds(const labels& of, duration value) { write("", of, seconds_text(value)); }

    void lines(labels of, const histogram& h) {
        of.push_back({.name = "le"});
        for (std::size_t i = 0; i < histogram::bounds.size(); ++i) {
            of.back().value = histogram::bounds[i].name;
            write("_bucket", of, std::to_string(h.up_to(i)));
        }
        of.back().value = "+Inf";
        write("_bucket", of, std::to_string(h.count()));
        of.pop_back();
        write("_sum", of, seconds_text(h.sum()));
        write("_count", of, std::to_string(h.count()));
    }

    [[nodiscard]] std::string text() && { return std::move(out_); }

  private:
    void write(std::string_view suffix, const labels& of, std::string_view value) {
        out_.append(name_).append(suffix).append("{");
        for (const auto& l : of) {
            out_.append(out_.back() == '{' ? "" : ",").append(l.name).append("=\"");
            for (const char c : l.value) {
                if (c == '\n') {
                    out_ += "\\n";
                } else {
                    out_.append(c == '"' || c == '\\' ? "\\" : "").push_back(c);
                }
            }
            out_ += '"';
        }
        out_.append("} ").append(value).append("\n");
    }

    std::string_view name_{};
    std::string out_{};
};

} // namespace detail
} // namespace v0
} // namespace vouch

// ---- vouch/observe/detail/tally.hpp
// The counts and histograms that `metrics` keeps for one queue, made from events. Not thread-safe.

namespace vouch {
inline namespace v0 {
namespace detail {

struct tally {
    static constexpr std::array outcome_kinds{event_kind::succeeded, event_kind::advanced, event_kind::retried,
                                              event_kind::dead,      event_kind::released, event_kind::stale,
                                              event_kind::unsettled};
    static constexpr std::array death_reasons{death::rejected, death::buried,     death::exhausted,
                                              death::expired,  death::no_handler, death::invalid};

    std::uint64_t enqueued = 0;
    std::uint64_t claimed = 0;
    std::uint64_t lost = 0;
    std::uint64_t purged = 0;
    std::uint64_t groups = 0;
    std::array<std::uint64_t, outcome_kinds.size()> ended{};
    std::array<std::uint64_t, death_reasons.size()> dead{};
    std::uint64_t sagas_dead = 0;
    std::int64_t active = 0;
    label_counts<> failures{};
    label_counts<> store_errors{};
    label_counts<> hook_errors{};
    label_counts<> left{}; ///< released because no handler could continue, by tag
    histogram wait{};
    histogram handler{};
    histogram delay{};
    histogram age{};
    histogram completed{};   ///< age of completed sagas
    histogram compensated{}; ///< age of compensated sagas
    histogram poll{};

    void count(const event& e) {
        switch (e.what) {
        case event_kind::enqueued: enqueued += 1; return;
        case event_kind::claimed:
            claimed += 1;
            active += 1;
            wait.add(e.late);
            return;
        case event_kind::started: return;
        case event_kind::lease_lost:
            lost += 1;
            active -= e.tag == "unstarted" ? 1 : 0; // no outcome follows
            return;
        case event_kind::purged: purged += e.count; return;
        case event_kind::group_completed: groups += 1; return;
        case event_kind::polled: poll.add(e.took.value_or(duration::zero())); return;
        case event_kind::store_error: store_errors[e.error] += 1; return;
        case event_kind::hook_failed: hook_errors[e.error] += 1; return; // the claim is still held
        default: end_claim(e); return;
        }
    }

  private:
    void end_claim(const event& e) {
        for (std::size_t i = 0; i < outcome_kinds.size(); ++i) {
            ended[i] += outcome_kinds[i] == e.what ? 1U : 0U;
        }
        active -= 1;
        if (e.took) {
            handler.add(*e.took);
        }
        if (e.what == event_kind::succeeded) {
            end_well(e);
        } else if (e.what == event_kind::retried) {
            failures[e.error] += 1;
            delay.add(e.delay);
        } else if (e.what == event_kind::released && !e.tag.empty()) {
            left[e.tag] += 1;
        } else if (e.what == event_kind::dead) {
            failures[e.error] += 1;
            for (std::size_t i = 0; i < death_reasons.size(); ++i) {
                dead[i] += death_reasons[i] == e.reason ? 1U : 0U;
            }
            sagas_dead += e.is_saga ? 1U : 0U;
        }
    }

    /// The tags count for sagas only: on any other entry they are the handler's own words.
    void end_well(const event& e) {
        age.add(e.age);
        if (e.is_saga && e.tag == "completed") {
            completed.add(e.age);
        } else if (e.is_saga && e.tag == "compensated") {
            compensated.add(e.age);
        }
    }
};

} // namespace detail
} // namespace v0
} // namespace vouch

// ---- vouch/observe/metrics.hpp
// An observer that counts events and prints the numbers in the Prometheus text format (version 0.0.4).
//
// Counters and histograms come from events. The gauges of a queue's depth come from the store, by `look_at`, so they
// are right after a restart. `look_at` may read every row of the queue: call it when the metrics are scraped, or every
// half minute. Labels are queues, topics of sagas, outcomes, states and error codes. Their number is bounded: the
// queues after the first `labels_max` share the label `other`, which has the sum of their numbers (the longest for
// `vouch_overdue_seconds`), and so do the codes and topics after the first hundred of a queue.
//
// Thread-safe. The memory grows with the number of queues that are looked at: the last look at each is kept.

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

#endif // VOUCH_SINGLE_HEADER_OBSERVE
