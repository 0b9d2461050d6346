// SPDX-License-Identifier: MIT
// Everything a unit test of a handler needs, in one object: a memory store, a clock that stands still, ids that count,
// an outbox, a router, a runner, and a record of what happened.
//
//   vouch::testing::sandbox box;
//   box.on("user.created", greet);
//   box.emit({.topic = "user.created", .payload = "ada"});
//   box.run_until_idle();
//   REQUIRE(box.emitted("mail.welcome") == 1);
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <vouch/contract/entry.hpp>
#include <vouch/contract/id.hpp>
#include <vouch/contract/lifecycle.hpp>
#include <vouch/contract/query.hpp>
#include <vouch/contract/transact.hpp>
#include <vouch/memory.hpp>
#include <vouch/observe/observer.hpp>
#include <vouch/outbox/bindings.hpp>
#include <vouch/outbox/outbox.hpp>
#include <vouch/outbox/topic.hpp>
#include <vouch/policy/clock.hpp>
#include <vouch/policy/id_source.hpp>
#include <vouch/policy/retry.hpp>
#include <vouch/run/report.hpp>
#include <vouch/run/router.hpp>
#include <vouch/run/runner.hpp>
#include <vouch/testing/recorder.hpp>
#include <vouch/testing/table.hpp>

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
          outbox_(store_,
                  {.clock = clock_,
                   .ids = ids_,
                   .bindings = options.bindings.empty() ? bindings{}.bind("#", options.queue) : options.bindings}),
          router_(outbox_), runner_(outbox_, router_,
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
    receipt emit(const emission& e) { return outbox_.emit(e).front(); }

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
    [[nodiscard]] const vouch::outbox<memory::store>& outbox() const noexcept { return outbox_; }
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
    vouch::outbox<memory::store> outbox_;
    router<memory::store> router_;
    recorder recorder_;
    vouch::runner<memory::store> runner_;
};

} // namespace testing
} // namespace v0
} // namespace vouch
