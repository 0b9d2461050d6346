// SPDX-License-Identifier: MIT
// For unit tests of code that uses vouch.
// Joined from the split headers by single_include/amalgamate.py; change those, not this file.
#ifndef VOUCH_SINGLE_HEADER_TESTING
#define VOUCH_SINGLE_HEADER_TESTING

#ifdef VOUCH_SPLIT_HEADERS
#error "vouch: a translation unit includes either the single headers or the split ones, not both"
#endif

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <vouch/saga.hpp>

// ---- vouch/testing/recorder.hpp
// An observer that keeps what it sees. Thread-safe.

namespace vouch {
inline namespace v0 {
namespace testing {

struct recorded_event {
    event_kind what{};
    time_point at{};
    std::string queue{};
    std::string topic{};
    std::string group{};
    std::string error{};
    std::string tag{};
    vouch::id id{};
    std::uint32_t attempt = 0;
};

class recorder {
  public:
    /// An observer must not throw; a test that runs out of memory here has no use for going on.
    void on(const event& e) noexcept {
        const std::lock_guard lock(mutex_);
        events_.push_back({.what = e.what,
                           .at = e.at,
                           .queue = std::string(e.queue),
                           .topic = std::string(e.topic),
                           .group = std::string(e.group),
                           .error = std::string(e.error),
                           .tag = std::string(e.tag),
                           .id = e.id,
                           .attempt = e.attempt});
    }

    [[nodiscard]] std::vector<recorded_event> events() const {
        const std::lock_guard lock(mutex_);
        return events_;
    }

    /// How many events of a kind there were, of topics that fit the pattern.
    [[nodiscard]] std::size_t count(event_kind what, std::string_view pattern = "#") const {
        const std::lock_guard lock(mutex_);
        return static_cast<std::size_t>(std::count_if(events_.begin(), events_.end(), [&](const recorded_event& e) {
            return e.what == what && topic_matches(pattern, e.topic);
        }));
    }

  private:
    mutable std::mutex mutex_;
    std::vector<recorded_event> events_;
};

} // namespace testing
} // namespace v0
} // namespace vouch

// ---- vouch/testing/table.hpp
// Entries as a table a person can read: in a failing test, or at a breakpoint.

namespace vouch {
inline namespace v0 {
namespace testing {

/// A length of time in its largest whole unit: 0, 90s, 5min, 2h, 250ms, -3us.
[[nodiscard]] inline std::string to_text(duration d) {
    struct unit {
        duration::rep size;
        const char* name;
    };
    constexpr std::array<unit, 5> units{
        {{3'600'000'000, "h"}, {60'000'000, "min"}, {1'000'000, "s"}, {1000, "ms"}, {1, "us"}}};
    if (d == duration::zero()) {
        return "0";
    }
    for (const auto& u : units) {
        if (d.count() % u.size == 0) {
            return std::to_string(d.count() / u.size) + u.name;
        }
    }
    return {};
}

/// Counting ids by their number, others in full.
[[nodiscard]] inline std::string to_text(const id& i) { return i.high == 0 ? std::to_string(i.low) : to_string(i); }

/// One row per entry; times count from `start`.
[[nodiscard]] inline std::string table(std::span<const entry> entries, time_point start) {
    using row = std::array<std::string, 7>;
    std::vector<row> rows{{"id", "queue", "topic", "state", "attempts", "due", "last error"}};
    for (const auto& e : entries) {
        const bool waits = e.state == state::pending || e.state == state::retrying;
        const auto when = e.state == state::claimed ? "held to " + to_text(*e.lease_until - start)
                          : waits                   ? to_text(e.due_at - start)
                                                    : std::string{"-"};
        rows.push_back({to_text(e.id), e.queue, e.topic, std::string(name_of(e.state)), std::to_string(e.attempts),
                        when, e.last_error});
    }
    std::array<std::size_t, 7> width{};
    for (const auto& r : rows) {
        for (std::size_t i = 0; i < r.size(); ++i) {
            width[i] = std::max(width[i], r[i].size());
        }
    }
    std::string out;
    for (const auto& r : rows) {
        std::string line;
        for (std::size_t i = 0; i < r.size(); ++i) {
            line += r[i] + std::string(width[i] - r[i].size() + 2, ' ');
        }
        line.erase(line.find_last_not_of(' ') + 1);
        out += line + '\n';
    }
    return out;
}

} // namespace testing
} // namespace v0
} // namespace vouch

// ---- vouch/testing/sandbox.hpp
// Everything a unit test of a handler needs, in one object: a memory store, a clock that stands still, ids that count,
// an outbox, a router, a runner, and a record of what happened.
//
//   vouch::testing::sandbox box;
//   box.on("user.created", greet);
//   box.emit({.topic = "user.created", .payload = "ada"});
//   box.run_until_idle();
//   REQUIRE(box.emitted("mail.welcome") == 1);

namespace vouch {
inline namespace v0 {
namespace testing {

struct sandbox_options {
    std::string queue = "test"; ///< that the runner works on
    vouch::bindings bindings{}; ///< for emissions without a queue; empty: they all go to `queue`
    retry_policy retry{};       ///< for handlers registered without
    duration lease = std::chrono::minutes{5};
    std::size_t batch_size = 50;
};

/// What would run next, and when.
struct upcoming {
    vouch::entry entry{};
    time_point at{};
};

class sandbox {
  public:
    sandbox() : sandbox(sandbox_options{}) {}
    explicit sandbox(sandbox_options options)
        : queue_(options.queue), start_(clock_()),
          outbox_({.clock = clock_,
                   .ids = ids_,
                   .bindings = options.bindings.empty() ? bindings{}.bind("#", options.queue) : options.bindings}),
          runner_(store_, outbox_, router_,
                  {.queue = options.queue,
                   .worker = "sandbox",
                   .batch_size = options.batch_size,
                   .lease = options.lease,
                   .retry = std::move(options.retry)}) {
        runner_.observe(recorder_);
    }
    sandbox(const sandbox&) = delete;
    sandbox& operator=(const sandbox&) = delete;

    /// Registers a handler, as `router::on` does.
    template <class Handler>
    sandbox& on(std::string pattern, Handler&& handler, retry_policy retry) {
        router_.on(std::move(pattern), std::forward<Handler>(handler), std::move(retry));
        return *this;
    }
    template <class Handler>
    sandbox& on(std::string pattern, Handler&& handler) {
        router_.on(std::move(pattern), std::forward<Handler>(handler));
        return *this;
    }
    template <class T, class Handler>
    sandbox& on(std::string pattern, Handler&& handler) {
        router_.template on<T>(std::move(pattern), std::forward<Handler>(handler));
        return *this;
    }

    /// Emits in a transaction of its own. The receipt is of the first entry, if there are several.
    receipt emit(const emission& e) { return outbox_.emit(store_, e).front(); }

    /// One pass over what is due now.
    report run_once() { return runner_.run_once(); }
    /// Until nothing is left to wait for: retries, delays and leases included, with the clock moving along.
    report run_until_idle() { return runner_.run_until_idle(clock_); }
    /// Lets time go by. Nothing runs.
    void pass(duration by) { clock_.pass(by); }

    /// How many entries whose topic fits the pattern are stored, in any queue, whoever emitted them.
    [[nodiscard]] std::size_t emitted(std::string_view pattern) const {
        std::size_t count = 0;
        for (const auto& e : entries()) {
            count += topic_matches(pattern, e.topic) ? 1U : 0U;
        }
        return count;
    }

    /// The entry of the sandbox's queue that a claim would take first, and when it could.
    [[nodiscard]] std::optional<upcoming> next() const {
        std::optional<upcoming> first;
        std::set<std::string> lanes;
        for (auto& e : all(query::live(queue_))) {
            if (!e.lane.empty() && !lanes.insert(e.lane).second) {
                continue; // blocked behind an earlier one
            }
            const auto at = *gate_of(e);
            if (!first || at < first->at) {
                first = upcoming{std::move(e), at};
            }
        }
        return first;
    }

    /// Every entry of every queue, by queue and sequence.
    [[nodiscard]] std::vector<entry> entries() const {
        auto queues = store_.queues();
        std::sort(queues.begin(), queues.end());
        std::vector<entry> out;
        for (const auto& queue : queues) {
            auto found = all(query::all(queue));
            out.insert(out.end(), std::make_move_iterator(found.begin()), std::make_move_iterator(found.end()));
        }
        return out;
    }

    /// All entries, readable; times count from the sandbox's beginning.
    [[nodiscard]] std::string table() const { return testing::table(entries(), start_); }

    [[nodiscard]] std::vector<recorded_event> events() const { return recorder_.events(); }
    [[nodiscard]] std::optional<entry> find(const id& wanted) const { return store_.find(wanted); }

    [[nodiscard]] memory::store& store() noexcept { return store_; }
    [[nodiscard]] const manual_clock& clock() const noexcept { return clock_; }
    [[nodiscard]] const vouch::outbox& outbox() const noexcept { return outbox_; }
    [[nodiscard]] vouch::runner<memory::store>& runner() noexcept { return runner_; }
    [[nodiscard]] time_point start() const noexcept { return start_; }

  private:
    [[nodiscard]] std::vector<entry> all(query q) const {
        q.limit = limits{}.batch_max;
        q.payloads = true;
        std::vector<entry> out;
        for (;;) {
            auto page = store_.list(q);
            if (page.empty()) {
                return out;
            }
            q.after = page.back().sequence;
            out.insert(out.end(), std::make_move_iterator(page.begin()), std::make_move_iterator(page.end()));
        }
    }

    std::string queue_;
    manual_clock clock_;
    counting_ids ids_;
    time_point start_;
    memory::store store_;
    vouch::outbox outbox_;
    router<memory::store> router_;
    recorder recorder_;
    vouch::runner<memory::store> runner_;
};

} // namespace testing
} // namespace v0
} // namespace vouch

#endif // VOUCH_SINGLE_HEADER_TESTING
