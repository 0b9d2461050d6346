// SPDX-License-Identifier: MIT
// One deterministic pass over a queue: claim, handle each entry, settle. A runner has no threads, sleeps, clocks or
// randomness of its own: the same store, clock, ids and handlers give the same trace. The phases are public, so a
// simulator or a debugger can stop between any two.
//
//   vouch::runner runner(outbox, router, {.queue = "mail"});
//   runner.run_until_idle();
//
// An entry whose last claim ended with its lease may have killed its process, so it is claimed and handled alone. A
// caller that uses the phases must therefore settle what it has claimed before it claims again. Outcomes that a failing
// hook holds up are kept, and settled by a later pass.
//
// A runner is used by one thread at a time, except `handle`, which any number of threads may call. Several runners may
// share an outbox and a router.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <stop_token>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <vouch/contract/entry.hpp>
#include <vouch/contract/error.hpp>
#include <vouch/contract/explain.hpp>
#include <vouch/contract/outcome.hpp>
#include <vouch/observe/observer.hpp>
#include <vouch/outbox/outbox.hpp>
#include <vouch/policy/clock.hpp>
#include <vouch/policy/retry.hpp>
#include <vouch/run/audit.hpp>
#include <vouch/run/detail/isolation.hpp>
#include <vouch/run/detail/phases.hpp>
#include <vouch/run/history.hpp>
#include <vouch/run/report.hpp>
#include <vouch/run/router.hpp>
#include <vouch/run/unhandled.hpp>

namespace vouch {
inline namespace v0 {

struct runner_options {
    std::string queue{};
    std::string worker = "runner";                ///< who claims; shown to operators
    std::size_t batch_size = 50;                  ///< entries per claim
    duration lease = std::chrono::minutes{5};     ///< must be longer than a batch takes
    retry_policy retry{};                         ///< for routes and entries without a policy of their own
    vouch::unhandled unhandled = unhandled::bury; ///< for entries whose topic fits no route
    std::size_t passes_max = 1'000'000;           ///< `run_until_idle` gives up after this many passes
    bool exception_text = false;                  ///< whether observers see it; it may contain personal data
};

template <class Store>
class runner {
    static_assert(explain_store<Store>());
    using phases = detail::phases<Store>;

  public:
    using transaction = typename Store::transaction;
    /// A claim whose handler has finished. Pass it to `settle`; its parts are not for users.
    using completion = typename phases::completion;
    using batch = std::vector<completion>;

    /// Outbox and router must outlive the runner. Throws `invalid_argument` for options that no claim would accept.
    runner(const outbox<Store>& from, const router<Store>& routes, runner_options options)
        : outbox_(from), batch_size_(options.batch_size), passes_max_(options.passes_max),
          phases_(from, routes,
                  {.queue = std::move(options.queue),
                   .worker = std::move(options.worker),
                   .batch_size = options.batch_size,
                   .lease = options.lease,
                   .dispatch = {.retry = std::move(options.retry), .unhandled = options.unhandled},
                   .exception_text = options.exception_text}) {}

    runner(const outbox<Store>&&, const router<Store>&, runner_options) = delete; // the runner would outlive its outbox
    runner(const outbox<Store>&, const router<Store>&&, runner_options) = delete; // the runner would outlive its router
    runner(const outbox<Store>&&, const router<Store>&&, runner_options) = delete;

    // Observers and hooks.

    /// Reports the events of this runner to `o`, in addition to the outbox's observers. It must outlive the runner.
    template <observer O>
    void observe(O& o) {
        phases_.events().add(o);
    }
    /// Calls `sink` in the settling transaction: before each terminal outcome, and after a settle that completes a
    /// group. If it throws, the outcome is kept, and settled by a later pass.
    void audit(audit_sink<transaction> sink) { phases_.hooks().audit = std::move(sink); }
    /// Calls `sink` in the settling transaction, before each outcome, retries, releases and checkpoints included. If it
    /// throws, the outcome is kept, and settled by a later pass.
    void history(history_sink<transaction> sink) { phases_.hooks().history = std::move(sink); }
    /// Calls `callback` in the settling transaction, once each time the number of unfinished members falls to zero. If
    /// it throws, the outcome is kept, and settled by a later pass.
    void on_group_complete(std::function<void(transaction&, const std::string& group, const entry& last)> callback) {
        phases_.hooks().group_complete = std::move(callback);
    }

    // Passes.

    report run_once(const std::stop_token& stop = {}) {
        auto out = settle_kept();
        if (has_room()) {
            out += pass(claim(), stop);
        }
        return out;
    }

    /// Runs one entry at once, if it is due: for producers that do not want to wait for the next pass.
    report run_only(const id& only) {
        auto out = settle_kept();
        if (has_room()) {
            out += pass(claim(only), {});
        }
        return out;
    }

    /// Makes passes until nothing is due, or until failing hooks hold up a whole batch of outcomes. Each settle shares
    /// its commit with the next claim.
    report run_until_idle(const std::stop_token& stop = {}) {
        auto total = settle_kept();
        if (!has_room()) {
            return total;
        }
        auto entries = claim();
        total.claimed += entries.size();
        for (std::size_t passes = 0; !entries.empty(); ++passes) {
            auto done = handle_all(std::move(entries), stop);
            const keeper keeps(*this, done);
            if (stop.stop_requested() || passes + 1 >= passes_max_ || !has_room()) {
                total += settle(done);
                check_passes(passes + 1);
                return total;
            }
            auto [settled, next] = settle_and_claim(done);
            total += settled;
            total.claimed += next.size();
            entries = std::move(next);
        }
        return total;
    }

    /// Makes passes until no live entry is left, and moves the clock to each next due time: for tests, in which hours
    /// pass at once. Returns early if a hook fails. `time` must be the outbox's clock.
    report run_until_idle(const manual_clock& time) {
        report total;
        for (std::size_t passes = 0;; ++passes) {
            check_passes(passes);
            total += run_until_idle();
            const auto next = outbox_.store().next_due(phases_.options().queue);
            if (!next || !kept_.empty()) {
                return total;
            }
            if (*next > time()) {
                time.set(*next);
            }
            if (outbox_.now() < *next) {
                throw error(error_kind::misuse, "runner: run_until_idle was given a clock that is not the outbox's");
            }
        }
    }

    // Phases. The process may die after each of them: what was claimed and not settled is claimed again when its lease
    // ends.

    [[nodiscard]] std::vector<entry> claim() { return claim(batch_size_); }

    /// Claims at most `limit` entries.
    [[nodiscard]] std::vector<entry> claim(std::size_t limit) {
        auto how = plan();
        how.limit = std::min(how.limit, limit);
        return remembered(phases_.claim(how));
    }
    /// Claims this entry only, if it is due.
    [[nodiscard]] std::vector<entry> claim(const id& only) { return phases_.claim_only(only, plan()).entries; }

    /// Calls the handler; for an entry of a batch route with a batch of one. The store accepts the outcome that this
    /// returns.
    [[nodiscard]] completion handle(entry e, std::stop_token stop = {}) const {
        return phases_.handle(std::move(e), std::move(stop));
    }
    /// Calls the handlers, in the order of the entries. A batch handler is called at the place of its first entry, with
    /// the entries of its route that follow, up to `size_max`; the next one starts a new batch at its own place. An entry
    /// with a lapse is a batch by itself. Returns the completions in the order of the entries. Entries that have not
    /// started when a stop is requested are handed back untouched.
    [[nodiscard]] batch handle_all(std::vector<entry> entries, const std::stop_token& stop = {}) const {
        return phases_.handle_all(std::move(entries), stop);
    }

    /// Settles every outcome of the batch that is not settled yet. Only outcomes that a failing hook holds up stay
    /// unsettled. Throws the store's faults; then the same batch may be settled again, under the same tickets.
    report settle(batch& done) { return phases_.settle(done, nullptr, true).report; }
    /// The same, and claims: in the same commit if every outcome is settled, otherwise after it.
    [[nodiscard]] std::pair<report, std::vector<entry>> settle_and_claim(batch& done) {
        const auto how = plan();
        auto settled = phases_.settle(done, &how, true);
        return {std::move(settled.report),
                remembered(settled.claims ? std::move(*settled.claims) : phases_.claim(plan()))};
    }

  private:
    /// Where one entry has lapsed there are often more: they are then claimed one by one.
    [[nodiscard]] detail::claim_plan plan() const noexcept { return {.limit = was_alone_ ? 1 : batch_size_}; }

    [[nodiscard]] std::vector<entry> remembered(detail::claims got) {
        was_alone_ = got.entries.size() == 1 && detail::has_lapsed(got.entries.front());
        return std::move(got.entries);
    }

    report pass(std::vector<entry> entries, const std::stop_token& stop) {
        const auto count = entries.size();
        auto done = handle_all(std::move(entries), stop);
        const keeper keeps(*this, done);
        auto out = settle(done);
        out.claimed = count;
        return out;
    }

    /// Keeps unsettled outcomes at the end of a pass, even if it ends by an exception, so that no handler is called
    /// again for them.
    struct keeper {
        keeper(runner& of, batch& done) : of_(of), batch_(done) { of_.kept_.reserve(of_.kept_.size() + done.size()); }
        keeper(const keeper&) = delete;
        keeper& operator=(const keeper&) = delete;
        ~keeper() {
            try {
                std::ignore = of_.phases_.report_results(batch_);
            } catch (...) { // NOLINT(bugprone-empty-catch): no memory for a report without a reader
            }
            for (auto& h : batch_) {
                if (!h.result) {
                    of_.kept_.push_back(std::move(h));
                }
            }
        }
        runner& of_;
        batch& batch_;
    };
    [[nodiscard]] bool has_room() const noexcept { return kept_.size() < batch_size_; }

    report settle_kept() {
        if (kept_.empty()) {
            return {};
        }
        auto out = settle(kept_);
        forget_settled();
        phases_.extend(kept_); // so that this runner does not claim them again
        out += phases_.report_results(kept_);
        forget_settled();
        return out;
    }
    /// Outcomes that were held up untried come first the next time.
    void forget_settled() {
        std::erase_if(kept_, [](const auto& h) { return h.result.has_value(); });
        std::stable_partition(kept_.begin(), kept_.end(), [](const auto& h) { return h.is_untried; });
    }

    void check_passes(std::size_t passes) const {
        if (passes >= passes_max_) {
            throw error(error_kind::misuse, "runner: not idle after " + std::to_string(passes) +
                                                " passes (passes_max); a handler keeps handing its entry back");
        }
    }

    const outbox<Store>& outbox_;
    std::size_t batch_size_;
    std::size_t passes_max_;
    phases phases_;
    batch kept_{};           ///< outcomes that are not settled yet
    bool was_alone_ = false; ///< the last pass handled an entry with a lapse
};

} // namespace v0
} // namespace vouch
