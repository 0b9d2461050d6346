// SPDX-License-Identifier: MIT
// One deterministic pass over a queue: claim, handle each, settle. No threads, sleeps, clocks or randomness of its own:
// the same store, clock, ids and handlers give the same trace. The phases are public, so that something else (a worker,
// a simulator, a debugger) can stop between any two.
//
// A runner is used by one thread at a time, but for `handle`, which several may call at once; several runners may share
// store, outbox and router.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include <vouch/contract/entry.hpp>
#include <vouch/contract/error.hpp>
#include <vouch/contract/explain.hpp>
#include <vouch/contract/outcome.hpp>
#include <vouch/contract/request.hpp>
#include <vouch/contract/transact.hpp>
#include <vouch/contract/validate.hpp>
#include <vouch/observe/audit.hpp>
#include <vouch/observe/observer.hpp>
#include <vouch/observe/saga_mark.hpp>
#include <vouch/outbox/outbox.hpp>
#include <vouch/policy/clock.hpp>
#include <vouch/policy/retry.hpp>
#include <vouch/run/handling.hpp>
#include <vouch/run/report.hpp>
#include <vouch/run/router.hpp>
#include <vouch/run/settling.hpp>

namespace vouch {
inline namespace v0 {

struct runner_options {
    std::string queue{};
    std::string worker = "runner";            ///< who claims; shown to operators
    std::size_t batch_size = 50;              ///< entries per claim
    duration lease = std::chrono::minutes{5}; ///< must comfortably exceed what a batch takes
    retry_policy retry{};                     ///< for routes and entries that say nothing of their own
    std::size_t passes_max = 1'000'000;       ///< after which `run_until_idle` gives up
    bool exception_text = false;              ///< hand it to observers: it may carry other people's data
};

template <class Store>
class runner {
    static_assert(explain_store<Store>());

  public:
    using transaction = typename Store::transaction;
    using batch = std::vector<handled<Store>>;

    /// Store, outbox and router outlive the runner. Throws `invalid_argument` for options no claim would take.
    runner(Store& store, const outbox& from, const router<Store>& routes, runner_options options)
        : store_(store), outbox_(from), router_(routes), options_(std::move(options)), can_(store.capabilities()) {
        validate(request(time_point{}, options_.batch_size), can_.limits);
        if (options_.batch_size == 0) {
            detail::refuse({"runner", "batch_size"}, "is 0, it would never claim anything");
        }
    }

    runner(Store&, const outbox&&, const router<Store>&, runner_options) = delete; // it would outlive its outbox
    runner(Store&, const outbox&, const router<Store>&&, runner_options) = delete; // it would outlive its router
    runner(Store&, const outbox&&, const router<Store>&&, runner_options) = delete;

    // Watching.

    template <observer O>
    void observe(O& o) {
        observers_.add(o);
    }
    /// Called in the settling transaction: before each terminal outcome, and after a settle that completed a group.
    void audit(audit_sink<transaction> sink) { hooks_.audit = std::move(sink); }
    /// Called in the settling transaction, once per fall of the group's unfinished members to zero.
    void on_group_complete(std::function<void(transaction&, const std::string& group, const entry& last)> callback) {
        hooks_.group_complete = std::move(callback);
    }

    // Phases. Each is a boundary at which a process may die: what was claimed and not settled comes back when its lease
    // is over.

    [[nodiscard]] std::vector<entry> claim() { return claim(options_.batch_size); }

    /// No more than `limit`.
    [[nodiscard]] std::vector<entry> claim(std::size_t limit) {
        return claimed(vouch::claim(store_, request(outbox_.now(), limit)));
    }

    /// This entry only, if it is due now.
    [[nodiscard]] std::vector<entry> claim(const id& only) {
        auto wanted = request(outbox_.now(), 1);
        wanted.only = only;
        return claimed(vouch::claim(store_, wanted));
    }

    /// Calls the handler and makes sure that what comes of it can be settled.
    [[nodiscard]] handled<Store> handle(entry e, std::stop_token stop = {}) const {
        std::optional<time_point> start;
        auto h = rules()(std::move(e), std::move(stop), [&](const entry& s) {
            start = outbox_.now();
            tell(event_kind::started, s, *start);
        });
        if (start) {
            h.took = std::max(outbox_.now() - *start, duration::zero());
        }
        return h;
    }

    /// Handles all; what has not been started when a stop is requested is handed back untouched.
    [[nodiscard]] batch handle_all(std::vector<entry> entries, const std::stop_token& stop = {}) const {
        batch out;
        out.reserve(entries.size());
        for (auto& e : entries) {
            if (stop.stop_requested()) {
                out.push_back({.entry = std::move(e), .outcome = release{}});
            } else {
                out.push_back(handle(std::move(e), stop));
            }
        }
        return out;
    }

    /// Throws the store's faults; then the same batch may be settled again, under the same tickets.
    report settle(batch& handled) {
        std::ignore = land(handled, nullptr);
        return note_all(handled);
    }

    /// The same, and the next claim in the same commit where that is possible, else after it.
    [[nodiscard]] std::pair<report, std::vector<entry>> settle_and_claim(batch& handled) {
        const auto next = request(outbox_.now(), options_.batch_size);
        auto got = land(handled, &next);
        auto done = note_all(handled);
        return {std::move(done), got ? claimed(std::move(*got)) : claim()};
    }

    /// Settles, and claims no more than `limit` in the same commit if all goes well at once; else claims nothing.
    [[nodiscard]] std::pair<report, std::optional<std::vector<entry>>> settle_and_try_claim(batch& handled,
                                                                                            std::size_t limit) {
        const auto next = request(outbox_.now(), limit);
        auto got = land(handled, limit > 0 ? &next : nullptr);
        auto done = note_all(handled);
        if (limit > 0 && got) {
            return {std::move(done), claimed(std::move(*got))};
        }
        return {std::move(done), std::nullopt};
    }

    // Passes.

    report run_once(const std::stop_token& stop = {}) { return pass(claim(), stop); }

    /// Dispatches one entry right away, if it is due: for producers that do not want to wait for the next pass.
    report run_only(const id& only) { return pass(claim(only), {}); }

    /// Passes until nothing is due, each settle in one commit with the next claim.
    report run_until_idle(const std::stop_token& stop = {}) {
        report total;
        auto entries = claim();
        total.claimed += entries.size();
        for (std::size_t passes = 0; !entries.empty(); ++passes) {
            auto done = handle_all(std::move(entries), stop);
            if (stop.stop_requested() || passes + 1 >= options_.passes_max) {
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

    /// Passes until nothing is left to wait for, moving the clock to each next due time. For tests: hours pass at once.
    report run_until_idle(const manual_clock& time) {
        report total;
        for (std::size_t passes = 0;; ++passes) {
            check_passes(passes);
            total += run_until_idle();
            const auto next = store_.next_due(options_.queue);
            if (!next) {
                return total;
            }
            if (*next > time()) {
                time.set(*next);
            }
            if (outbox_.now() < *next) {
                throw error(error_kind::misuse, "runner: the clock given is not the outbox's; moving it moves nothing");
            }
        }
    }

  private:
    [[nodiscard]] claim_request request(time_point now, std::size_t limit) const {
        return {
            .queue = options_.queue, .limit = limit, .now = now, .lease = options_.lease, .worker = options_.worker};
    }

    [[nodiscard]] handling<Store> rules() const { return {router_, outbox_, options_.retry, can_}; }

    [[nodiscard]] std::vector<entry> claimed(std::vector<entry> entries) const {
        for (const auto& e : entries) {
            auto seen = event_of(event_kind::claimed, e, *e.last_attempt_at);
            seen.late = std::max(seen.at - std::max(e.due_at, e.created_at), duration::zero());
            observers_.on(seen);
        }
        return entries;
    }

    report pass(std::vector<entry> entries, const std::stop_token& stop) {
        const auto count = entries.size();
        auto done = handle_all(std::move(entries), stop);
        auto out = settle(done);
        out.claimed = count;
        return out;
    }

    [[nodiscard]] std::optional<std::vector<entry>> land(batch& handled, const claim_request* next) {
        if (handled.empty()) {
            return std::nullopt;
        }
        const auto how = rules();
        return settling<Store>(store_, outbox_, how, hooks_)(std::span(handled), next);
    }

    [[nodiscard]] report note_all(const batch& handled) const {
        report out;
        const auto now = outbox_.now();
        for (const auto& h : handled) {
            note(out, h, *h.landing, now);
        }
        return out;
    }

    void note(report& out, const handled<Store>& h, const landing& l, time_point now) const {
        auto line = trace_line{.id = h.entry.id, .topic = h.entry.topic, .attempt = h.entry.attempts};
        const bool landed = l.what == landing::kind::landed;
        if (landed) {
            visit_outcome(name_outcome{line}, h.outcome);
        } else {
            line.what = l.what == landing::kind::stale ? event_kind::stale : event_kind::unsettled;
            line.error = l.error;
        }
        count(out, line.what) += 1;
        auto seen = event_of(line.what, h.entry, now);
        seen.error = line.error;
        seen.tag = landed ? std::string_view(h.tag) : std::string_view{};
        seen.took = h.took;
        seen.reason = line.what == event_kind::dead ? h.reason : death::none;
        if (const auto* const again = std::get_if<retry>(&h.outcome); again != nullptr && landed) {
            seen.delay = std::max(again->at - now, duration::zero());
        }
        if (options_.exception_text) {
            seen.text = landed ? h.text : l.text;
        }
        observers_.on(seen);
        for (std::size_t i = 0; landed && i < h.receipts.size(); ++i) {
            if (h.receipts[i].what == receipt::kind::inserted) {
                observers_.on(enqueued_event(h.emissions[i], now, options_.worker));
            }
        }
        if (landed && l.group_completed) {
            tell(event_kind::group_completed, h.entry, now);
        }
        out.trace.push_back(std::move(line));
    }

    struct name_outcome {
        trace_line& line;
        void operator()(const succeed&) const { line.what = event_kind::succeeded; }
        void operator()(const retry& o) const { tell(event_kind::retried, o.error); }
        void operator()(const bury& o) const { tell(event_kind::dead, o.error); }
        void operator()(const release&) const { line.what = event_kind::released; }
        void operator()(const advance&) const { line.what = event_kind::advanced; }
        void tell(event_kind what, const std::string& error) const {
            line.what = what;
            line.error = error;
        }
    };

    [[nodiscard]] static std::size_t& count(report& out, event_kind what) noexcept {
        switch (what) {
        case event_kind::succeeded: return out.succeeded;
        case event_kind::advanced: return out.advanced;
        case event_kind::retried: return out.retried;
        case event_kind::dead: return out.dead;
        case event_kind::released: return out.released;
        case event_kind::stale: return out.stale;
        default: return out.unsettled;
        }
    }

    [[nodiscard]] event event_of(event_kind what, const entry& e, time_point at) const {
        return {.what = what,
                .at = at,
                .queue = e.queue,
                .topic = e.topic,
                .worker = options_.worker,
                .group = e.group,
                .id = e.id,
                .attempt = e.attempts,
                .is_saga = is_saga_progress(e.progress),
                .age = std::max(at - e.created_at, duration::zero())};
    }

    void tell(event_kind what, const entry& e, time_point at) const { observers_.on(event_of(what, e, at)); }

    void check_passes(std::size_t passes) const {
        if (passes >= options_.passes_max) {
            throw error(error_kind::misuse, "runner: still not idle after " + std::to_string(passes) +
                                                " passes; some handler keeps handing its entry back");
        }
    }

    Store& store_;
    const outbox& outbox_;
    const router<Store>& router_;
    runner_options options_;
    capabilities can_;
    observer_list observers_;
    settling_hooks<transaction> hooks_;
};

} // namespace v0
} // namespace vouch
