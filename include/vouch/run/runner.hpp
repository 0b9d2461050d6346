// SPDX-License-Identifier: MIT
// One deterministic pass over a queue: claim, handle each, settle. No threads, sleeps, clocks or randomness of its own:
// the same store, clock, ids and handlers give the same trace. The phases are public, so that something else (a worker,
// a simulator, a debugger) can stop between any two.
//
// An entry whose last claim ended with its lease may have killed its process, so it is claimed and handled alone (see
// `isolation.hpp`); for that a caller of the phases settles what it has claimed before it claims again. Outcomes that a
// failing hook holds up are kept, and settled by a later pass.
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
#include <vouch/contract/is_saga.hpp>
#include <vouch/contract/outcome.hpp>
#include <vouch/contract/request.hpp>
#include <vouch/contract/transact.hpp>
#include <vouch/contract/validate.hpp>
#include <vouch/observe/audit.hpp>
#include <vouch/observe/observer.hpp>
#include <vouch/outbox/outbox.hpp>
#include <vouch/policy/clock.hpp>
#include <vouch/policy/retry.hpp>
#include <vouch/run/handling.hpp>
#include <vouch/run/isolation.hpp>
#include <vouch/run/report.hpp>
#include <vouch/run/router.hpp>
#include <vouch/run/settling.hpp>

namespace vouch {
inline namespace v0 {

struct runner_options {
    std::string queue{};
    std::string worker = "runner";                ///< who claims; shown to operators
    std::size_t batch_size = 50;                  ///< entries per claim
    duration lease = std::chrono::minutes{5};     ///< must comfortably exceed what a batch takes
    retry_policy retry{};                         ///< for routes and entries that say nothing of their own
    vouch::unhandled unhandled = unhandled::bury; ///< for entries whose topic no route fits
    std::size_t passes_max = 1'000'000;           ///< after which `run_until_idle` gives up
    bool exception_text = false;                  ///< hand it to observers: it may carry other people's data
};

template <class Store>
class runner {
    static_assert(explain_store<Store>());

  public:
    using transaction = typename Store::transaction;
    using batch = std::vector<handled<Store>>;

    /// Store, outbox and router outlive the runner. Throws `invalid_argument` for options no claim would take.
    runner(Store& store, const outbox& from, const router<Store>& routes, runner_options options)
        : store_(store), outbox_(from), router_(routes),
          options_(std::move(options)), rules_{.retry = options_.retry, .unhandled = options_.unhandled},
          can_(store.capabilities()) {
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
    /// Called in the settling transaction: before each terminal outcome, and after a settle that completed a group. If
    /// it throws, the outcome is kept, and settled by a later pass.
    void audit(audit_sink<transaction> sink) { hooks_.audit = std::move(sink); }
    /// Called in the settling transaction, once per fall of the group's unfinished members to zero. If it throws, the
    /// outcome is kept, and settled by a later pass.
    void on_group_complete(std::function<void(transaction&, const std::string& group, const entry& last)> callback) {
        hooks_.group_complete = std::move(callback);
    }

    // Phases. Each is a boundary at which a process may die: what was claimed and not settled comes back when its lease
    // is over.

    [[nodiscard]] std::vector<entry> claim() { return claim(options_.batch_size); }

    /// No more than `limit`.
    [[nodiscard]] std::vector<entry> claim(std::size_t limit) {
        auto how = plan();
        how.limit = std::min(how.limit, limit);
        return taken(claim_by(how));
    }

    /// This entry only, if it is due now.
    [[nodiscard]] std::vector<entry> claim(const id& only) {
        const auto how = plan();
        auto wanted = request(outbox_.now(), 1);
        wanted.only = only;
        return claim_in_transaction(wanted, how).entries;
    }

    /// By a plan of the caller's, who knows what else the process holds.
    [[nodiscard]] detail::claims claim_by(const detail::claim_plan& plan) {
        return claim_in_transaction(request(outbox_.now(), plan.limit), plan);
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

    /// Decides on an outcome whose `record` has failed; that may call the handler's `ended`.
    [[nodiscard]] handled<Store> handle_failed_record(handled<Store> h) const {
        const auto why = *h.record_failure;
        rules().fail_recording(h, why);
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

    /// Settles every outcome of the batch that has no landing yet; only those held up by a failing hook are left
    /// without one. Throws the store's faults; then the same batch may be settled again, under the same tickets.
    report settle(batch& handled) {
        std::ignore = land(handled, nullptr);
        return report_on(handled);
    }

    /// The same, and the next claim in the same commit where that is possible, else after it.
    [[nodiscard]] std::pair<report, std::vector<entry>> settle_and_claim(batch& handled) {
        const auto next = next_claim(plan());
        auto got = land(handled, &next);
        auto done = report_on(handled);
        if (got) {
            return {std::move(done), taken(told(std::move(*got)))};
        }
        auto how = plan();
        if (std::any_of(handled.begin(), handled.end(), [](const auto& h) { return !h.landing; })) {
            how.rule = detail::claim_plan::lapsed::handed_back;
        }
        return {std::move(done), taken(claim_by(how))};
    }

    /// For a worker: settles, and claims by `plan` in the same commit if every outcome lands; else claims nothing.
    /// Leaves what a failed `record` leads to for `handle_failed_record`.
    [[nodiscard]] std::pair<report, std::optional<detail::claims>>
    settle_and_try_claim(batch& handled, const detail::claim_plan& plan) {
        const auto next = next_claim(plan);
        auto got = land(handled, plan.limit > 0 ? &next : nullptr, false);
        auto done = report_on(handled);
        if (got) {
            return {std::move(done), told(std::move(*got))};
        }
        return {std::move(done), std::nullopt};
    }

    /// Reports the landings of a batch that were not reported yet, for a caller that gives up on the rest.
    report report_on(batch& handled) const {
        report out;
        const auto now = outbox_.now();
        for (auto& h : handled) {
            note(out, h, now);
        }
        return out;
    }

    // Passes.

    report run_once(const std::stop_token& stop = {}) {
        auto out = settle_kept();
        if (has_room()) {
            out += pass(claim(), stop);
        }
        return out;
    }

    /// Dispatches one entry right away, if it is due: for producers that do not want to wait for the next pass.
    report run_only(const id& only) {
        auto out = settle_kept();
        if (has_room()) {
            out += pass(claim(only), {});
        }
        return out;
    }

    /// Passes until nothing is due, each settle in one commit with the next claim; or until failing hooks hold up a
    /// whole batch of outcomes.
    report run_until_idle(const std::stop_token& stop = {}) {
        auto total = settle_kept();
        if (!has_room()) {
            return total;
        }
        auto entries = claim();
        total.claimed += entries.size();
        for (std::size_t passes = 0; !entries.empty(); ++passes) {
            auto done = handle_all(std::move(entries), stop);
            if (stop.stop_requested() || passes + 1 >= options_.passes_max || !has_room()) {
                total += settle(done);
                keep(done);
                check_passes(passes + 1);
                return total;
            }
            auto [settled, next] = settle_and_claim(done);
            total += settled;
            total.claimed += next.size();
            keep(done);
            entries = std::move(next);
        }
        return total;
    }

    /// Passes until nothing is left to wait for, moving the clock to each next due time, or until a hook fails. For
    /// tests: hours pass at once.
    report run_until_idle(const manual_clock& time) {
        report total;
        for (std::size_t passes = 0;; ++passes) {
            check_passes(passes);
            total += run_until_idle();
            const auto next = store_.next_due(options_.queue);
            if (!next || !kept_.empty()) {
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

    [[nodiscard]] handling<Store> rules() const { return {router_, outbox_, rules_, can_}; }

    // Claiming.

    /// What a pass claims. Where one entry with a lapse was, there are often more: they are then claimed one by one.
    [[nodiscard]] detail::claim_plan plan() const noexcept {
        using lapsed = detail::claim_plan::lapsed;
        return {.limit = kept_.empty() && was_alone_ ? 1 : options_.batch_size,
                .rule = kept_.empty() ? lapsed::alone : lapsed::handed_back};
    }

    [[nodiscard]] detail::next_claim next_claim(const detail::claim_plan& plan) const {
        return {.request = request(outbox_.now(), plan.limit), .plan = plan};
    }

    [[nodiscard]] detail::claims claim_in_transaction(const claim_request& wanted, const detail::claim_plan& plan) {
        return told(transact(store_, [&](auto& tx) { return detail::claim_apart(tx, wanted, plan); }));
    }

    [[nodiscard]] std::vector<entry> taken(detail::claims got) {
        was_alone_ = got.entries.size() == 1 && detail::has_lapsed(got.entries.front());
        return std::move(got.entries);
    }

    [[nodiscard]] detail::claims told(detail::claims got) const {
        for (const auto& e : got.entries) {
            auto seen = event_of(event_kind::claimed, e, *e.last_attempt_at);
            seen.late = std::max(seen.at - std::max(e.due_at, e.created_at), duration::zero());
            observers_.on(seen);
        }
        return got;
    }

    // Settling.

    report pass(std::vector<entry> entries, const std::stop_token& stop) {
        const auto count = entries.size();
        auto done = handle_all(std::move(entries), stop);
        auto out = settle(done);
        out.claimed = count;
        keep(done);
        return out;
    }

    [[nodiscard]] std::optional<detail::claims> land(batch& handled, const detail::next_claim* next,
                                                     bool calls_handlers = true) {
        if (handled.empty()) {
            return std::nullopt;
        }
        const auto how = rules();
        return settling<Store>(store_, outbox_, how, hooks_, calls_handlers)(std::span(handled), next);
    }

    /// Keeps the outcomes that a failing hook holds up, so that no handler is called again for them.
    void keep(batch& handled) {
        for (auto& h : handled) {
            if (!h.landing) {
                kept_.push_back(std::move(h));
            }
        }
    }
    [[nodiscard]] bool has_room() const noexcept { return kept_.size() < options_.batch_size; }

    report settle_kept() {
        if (kept_.empty()) {
            return {};
        }
        auto out = settle(kept_);
        std::erase_if(kept_, [](const auto& h) { return h.landing.has_value(); });
        std::vector<ticket> held;
        for (const auto& h : kept_) {
            held.push_back(ticket_of(h.entry));
        }
        if (!held.empty()) { // so that this runner does not claim them again
            transact(store_, [&](auto& tx) { std::ignore = tx.extend(held, outbox_.now(), options_.lease); });
        }
        return out;
    }

    void note(report& out, handled<Store>& h, time_point now) const {
        if (!h.landing && !h.held_up.empty()) {
            out.held_up += 1;
            out.trace.push_back({.id = h.entry.id,
                                 .topic = h.entry.topic,
                                 .attempt = h.entry.attempts,
                                 .what = event_kind::hook_failed,
                                 .error = h.held_up});
            if (!std::exchange(h.is_reported, true)) {
                auto seen = event_of(event_kind::hook_failed, h.entry, now);
                seen.error = h.held_up;
                observers_.on(seen);
            }
        } else if (h.landing && !h.landing->is_reported) {
            h.landing->is_reported = true;
            note(out, h, *h.landing, now);
        }
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
    handling_options rules_;
    capabilities can_;
    observer_list observers_;
    settling_hooks<transaction> hooks_;
    batch kept_{};           ///< outcomes that a failing hook holds up
    bool was_alone_ = false; ///< the last pass handled an entry with a lapse
};

} // namespace v0
} // namespace vouch
