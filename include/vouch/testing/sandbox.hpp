// SPDX-License-Identifier: MIT
// Everything a unit test of a handler needs, in one object: a store, a clock that stands still, ids that count, an
// outbox, routers, runners, and a record of all events.
//
//   vouch::testing::sandbox box;
//   box.on("user.created", greet);
//   box.emit({.topic = "user.created", .payload = "ada"});
//   box.run_until_idle();
//   REQUIRE(box.emitted("mail.welcome") == 1);
//
// `sandbox` has a memory store of its own. To test what a handler records in its database, give the sandbox that store:
//
//   vouch::sqlite::store store(path);
//   vouch::testing::basic_sandbox box(store);
//
// A sandbox is used by one thread.
#pragma once

#include <algorithm>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <vouch/contract/entry.hpp>
#include <vouch/contract/error.hpp>
#include <vouch/contract/id.hpp>
#include <vouch/contract/lifecycle.hpp>
#include <vouch/contract/limits.hpp>
#include <vouch/contract/query.hpp>
#include <vouch/contract/time.hpp>
#include <vouch/contract/verdict.hpp>
#include <vouch/memory.hpp>
#include <vouch/observe/observer.hpp>
#include <vouch/outbox/bindings.hpp>
#include <vouch/outbox/emission.hpp>
#include <vouch/outbox/outbox.hpp>
#include <vouch/outbox/topic.hpp>
#include <vouch/policy/clock.hpp>
#include <vouch/policy/id_source.hpp>
#include <vouch/policy/retry.hpp>
#include <vouch/run/batch_options.hpp>
#include <vouch/run/report.hpp>
#include <vouch/run/router.hpp>
#include <vouch/run/runner.hpp>
#include <vouch/testing/recorder.hpp>
#include <vouch/testing/table.hpp>

namespace vouch {
inline namespace v0 {
namespace testing {

struct sandbox_options {
    std::string queue = "test"; ///< the queue of handlers that are registered with `on`
    vouch::bindings bindings{}; ///< for emissions without a queue; empty: they all go to `queue`
    retry_policy retry{};       ///< for handlers without a policy of their own
    duration lease = std::chrono::minutes{5};
    std::size_t batch_size = 50;
    std::size_t passes_max = 1'000'000; ///< `run_until_idle` gives up after this many passes
};

/// The entry that runs next, and when.
struct upcoming {
    vouch::entry entry{};
    time_point at{};
};

/// A sandbox over any store. Its ids count from 1, so the store should be empty.
template <class Store>
class basic_sandbox {
  public:
    /// A sandbox with a store of its own.
    explicit basic_sandbox(sandbox_options options = {}) requires std::default_initializable<Store>
        : basic_sandbox(std::make_unique<Store>(), nullptr, std::move(options)) {}
    /// A sandbox over this store, which must outlive it.
    explicit basic_sandbox(Store& store, sandbox_options options = {})
        : basic_sandbox(nullptr, &store, std::move(options)) {}
    basic_sandbox(const basic_sandbox&) = delete;
    basic_sandbox& operator=(const basic_sandbox&) = delete;

    // Handlers. Those of the sandbox's own queue are registered with `on`, those of any other with `router(queue)`.

    /// Registers a handler, as `router::on` does.
    template <class Handler>
    basic_sandbox& on(std::string pattern, Handler&& handler, retry_policy retry = {}) {
        router().on(std::move(pattern), std::forward<Handler>(handler), std::move(retry));
        return *this;
    }
    /// The same, with the payload decoded to a `T`.
    template <class T, class Handler>
    basic_sandbox& on(std::string pattern, Handler&& handler, retry_policy retry = {}) {
        router().template on<T>(std::move(pattern), std::forward<Handler>(handler), std::move(retry));
        return *this;
    }
    /// Registers a batch handler, as `router::on_batch` does.
    template <class Handler>
    basic_sandbox& on_batch(std::string pattern, Handler&& handler, batch_options how = {}, retry_policy retry = {}) {
        router().on_batch(std::move(pattern), std::forward<Handler>(handler), how, std::move(retry));
        return *this;
    }
    /// Registers a saga definition, several versions of one as a `std::vector`, or a `webhook`.
    template <class Routable>
        requires requires(vouch::router<Store>& to, Routable&& what) { to.on(std::forward<Routable>(what)); }
    basic_sandbox& on(Routable&& what) {
        router().on(std::forward<Routable>(what));
        return *this;
    }
    /// The routes of the sandbox's own queue.
    [[nodiscard]] vouch::router<Store>& router() { return router(queue_); }
    /// The routes of a queue. From the first call on, the sandbox serves this queue too.
    [[nodiscard]] vouch::router<Store>& router(const std::string& queue) { return serve(queue).router; }

    // Work.

    /// Emits in a transaction of its own. Returns the receipt of the first entry, if there are several.
    receipt emit(const emission& e) { return outbox_.emit(e).front(); }
    /// Starts a saga in the sandbox's own queue and returns its id.
    template <class Saga, class Context>
    id start(const Saga& saga, const Context& context) {
        return outbox_.start(saga, queue_, context);
    }

    /// One pass over each queue: runs what is due now, up to `batch_size` entries of each.
    report run_once() {
        report total;
        for (auto& [queue, served] : served_) {
            total += served->runner.run_once();
        }
        return total;
    }
    /// Runs all queues until nothing is left to wait for. The clock jumps to the next moment at which something is due:
    /// a retry, a delay, or the end of a lease. Stops early if a failing hook holds up an outcome. Throws `misuse` if the
    /// work does not end within `passes_max` passes.
    report run_until_idle() {
        report total;
        for (std::size_t rounds = 0; rounds < how_.passes_max; ++rounds) {
            const auto round = run_round();
            total += round;
            if (round.held_up > 0) {
                return total;
            }
            if (round.claimed > 0) {
                continue;
            }
            const auto next = next_due();
            if (!next) {
                return total;
            }
            clock_.set(std::max(clock_(), *next));
        }
        throw error(error_kind::misuse, "sandbox: not idle after " + std::to_string(how_.passes_max) +
                                            " passes (passes_max); its handlers keep making work");
    }
    /// Moves the clock forward. Nothing runs.
    void pass(duration by) { clock_.pass(by); }

    // Results.

    /// The number of stored entries whose topic matches the pattern, in any queue.
    [[nodiscard]] std::size_t emitted(std::string_view pattern) const {
        const auto all = entries();
        return static_cast<std::size_t>(
            std::count_if(all.begin(), all.end(), [&](const entry& e) { return topic_matches(pattern, e.topic); }));
    }

    /// The entry of the queues served that can be claimed first, and when.
    [[nodiscard]] std::optional<upcoming> next() const {
        std::optional<upcoming> first;
        for (const auto& [queue, served] : served_) {
            std::set<std::string> lanes;
            for (auto& e : all(query::live(queue))) {
                if (!e.lane.empty() && !lanes.insert(e.lane).second) {
                    continue; // blocked by an earlier entry of its lane
                }
                const auto at = *gate_of(e);
                if (!first || at < first->at) {
                    first = upcoming{std::move(e), at};
                }
            }
        }
        return first;
    }

    /// Every entry, by queue and sequence. A memory store knows its queues; of any other store, these are the entries of
    /// the queues that the sandbox serves and of every queue that appeared in an event.
    [[nodiscard]] std::vector<entry> entries() const {
        std::vector<entry> out;
        for (const auto& queue : queues()) {
            auto found = all(query::all(queue));
            out.insert(out.end(), std::make_move_iterator(found.begin()), std::make_move_iterator(found.end()));
        }
        return out;
    }
    [[nodiscard]] std::optional<entry> find(const id& wanted) const { return store_.find(wanted); }
    /// All entries as a readable table; times are relative to `start()`.
    [[nodiscard]] std::string table() const { return testing::table(entries(), start_); }
    /// The events of the runners, in order.
    [[nodiscard]] std::vector<recorded_event> events() const { return recorder_.events(); }

    // Parts.

    [[nodiscard]] Store& store() noexcept { return store_; }
    [[nodiscard]] const manual_clock& clock() const noexcept { return clock_; }
    [[nodiscard]] vouch::outbox<Store>& outbox() noexcept { return outbox_; }
    [[nodiscard]] const vouch::outbox<Store>& outbox() const noexcept { return outbox_; }
    /// The runner of the sandbox's own queue, for its hooks and phases.
    [[nodiscard]] vouch::runner<Store>& runner() { return runner(queue_); }
    /// The runner of a queue. From the first call on, the sandbox serves this queue too.
    [[nodiscard]] vouch::runner<Store>& runner(const std::string& queue) { return serve(queue).runner; }
    /// The time at which the clock stood when the sandbox was made.
    [[nodiscard]] time_point start() const noexcept { return start_; }

  private:
    /// Collects the queues of all events.
    struct queue_observer {
        std::set<std::string> queues{};
        void on(const event& e) noexcept { queues.emplace(e.queue); }
    };

    struct served_queue {
        served_queue(const vouch::outbox<Store>& from, runner_options how)
            : router(from), runner(from, router, std::move(how)) {}
        vouch::router<Store> router;
        vouch::runner<Store> runner;
    };

    basic_sandbox(std::unique_ptr<Store> owned, Store* given, sandbox_options options)
        : queue_(options.queue), start_(clock_()), owned_(std::move(owned)), store_(owned_ ? *owned_ : *given),
          outbox_(store_,
                  {.clock = clock_,
                   .ids = ids_,
                   .bindings = options.bindings.empty() ? bindings{}.bind("#", options.queue) : options.bindings}),
          how_{.worker = "sandbox",
               .batch_size = options.batch_size,
               .lease = options.lease,
               .retry = std::move(options.retry),
               .passes_max = options.passes_max} {
        outbox_.observe(seen_);
        serve(queue_);
    }

    served_queue& serve(const std::string& queue) {
        auto& served = served_[queue];
        if (!served) {
            auto how = how_;
            how.queue = queue;
            served = std::make_unique<served_queue>(outbox_, std::move(how));
            served->runner.observe(recorder_);
        }
        return *served;
    }

    report run_round() {
        report total;
        for (auto& [queue, served] : served_) {
            total += served->runner.run_until_idle();
        }
        return total;
    }

    [[nodiscard]] std::optional<time_point> next_due() const {
        std::optional<time_point> first;
        for (const auto& [queue, served] : served_) {
            const auto due = store_.next_due(queue);
            first = due && (!first || *due < *first) ? due : first;
        }
        return first;
    }

    [[nodiscard]] std::set<std::string> queues() const {
        if constexpr (requires { store_.queues(); }) {
            const auto stored = store_.queues();
            return {stored.begin(), stored.end()};
        } else {
            auto out = seen_.queues;
            for (const auto& [queue, served] : served_) {
                out.insert(queue);
            }
            return out;
        }
    }

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
    std::unique_ptr<Store> owned_; ///< null: the store is the caller's
    Store& store_;
    vouch::outbox<Store> outbox_;
    recorder recorder_;
    queue_observer seen_;
    runner_options how_; ///< without a queue
    std::map<std::string, std::unique_ptr<served_queue>> served_;
};

/// A sandbox over a memory store.
using sandbox = basic_sandbox<memory::store>;

} // namespace testing
} // namespace v0
} // namespace vouch
