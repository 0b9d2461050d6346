// SPDX-License-Identifier: MIT
// The phases of a pass over one queue: claim, handle, settle. A runner puts them together into passes; a worker runs
// them on several threads. Each phase ends at a point where the process may die: what was claimed and not settled is
// claimed again when its lease ends.
//
// Used by one thread at a time, except `handle`, `handle_together`, `handle_all` and `convert_record_failure`, which any
// number of threads may call.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include <vouch/contract/capability.hpp>
#include <vouch/contract/entry.hpp>
#include <vouch/contract/request.hpp>
#include <vouch/contract/ticket.hpp>
#include <vouch/contract/transact.hpp>
#include <vouch/contract/validate.hpp>
#include <vouch/contract/verdict.hpp>
#include <vouch/outbox/outbox.hpp>
#include <vouch/run/batch_options.hpp>
#include <vouch/run/detail/batch_dispatcher.hpp>
#include <vouch/run/detail/batch_plan.hpp>
#include <vouch/run/detail/batch_settler.hpp>
#include <vouch/run/detail/completion.hpp>
#include <vouch/run/detail/dispatcher.hpp>
#include <vouch/run/detail/event_reporter.hpp>
#include <vouch/run/detail/isolation.hpp>
#include <vouch/run/report.hpp>
#include <vouch/run/router.hpp>

namespace vouch {
inline namespace v0 {
namespace detail {

struct phase_options {
    std::string queue{};
    std::string worker{};
    std::size_t batch_size = 0;
    duration lease{};
    dispatch_options dispatch{};
    bool exception_text = false;
};

template <class Store>
class phases {
  public:
    using transaction = typename Store::transaction;
    using completion = detail::completion<Store>;
    using batch = std::vector<completion>;

    /// Outbox and router must outlive the phases. Throws `invalid_argument` for options that no claim would accept.
    phases(const outbox<Store>& from, const router<Store>& routes, phase_options options)
        : outbox_(from), router_(routes), options_(std::move(options)), can_(from.store().capabilities()),
          events_(from.observers(), options_.worker, options_.exception_text) {
        validate(request(options_.batch_size, {}), can_.limits);
        if (options_.batch_size == 0) {
            refuse({"runner", "batch_size"}, "is 0; it must be at least 1");
        }
    }

    [[nodiscard]] event_reporter& events() noexcept { return events_; }
    [[nodiscard]] settle_hooks<transaction>& hooks() noexcept { return hooks_; }
    [[nodiscard]] const phase_options& options() const noexcept { return options_; }

    [[nodiscard]] claims claim(const claim_plan& plan) { return claim(request(plan.limit, outbox_.now()), plan); }

    /// Claims this entry only, if it is due.
    [[nodiscard]] claims claim_only(const id& only, const claim_plan& plan) {
        auto wanted = request(1, outbox_.now());
        wanted.only = only;
        return claim(wanted, plan);
    }

    /// Calls the handler. The store accepts the outcome that this returns.
    [[nodiscard]] completion handle(entry e, std::stop_token stop) const {
        std::optional<time_point> start;
        auto h = dispatch()(std::move(e), std::move(stop), [&](const entry& s) {
            start = outbox_.now();
            events_.started(s, *start);
        });
        if (start) {
            h.took = std::max(outbox_.now() - *start, duration::zero());
        }
        return h;
    }

    /// Calls a batch handler once. All entries have the batch route whose `batch_of` is not null.
    [[nodiscard]] batch handle_together(std::vector<claimed_entry<Store>> some, const std::stop_token& stop) const {
        const auto rules = dispatch();
        std::optional<time_point> start;
        auto done = batch_dispatcher<Store>(rules)(std::move(some), stop, [&](completion& h) {
            start = start ? start : outbox_.now();
            h.took = duration::zero();
            events_.started(h.entry, *start);
        });
        for (auto& h : done) {
            if (h.took) {
                h.took = std::max(outbox_.now() - *start, duration::zero());
            }
        }
        return done;
    }

    /// The batch of the entry's route; null if the entry is handled by itself.
    [[nodiscard]] const batch_options* batch_of(const entry& e) const noexcept { return dispatch().batch_of(e); }

    /// The `size_max` of the largest batch route; 1 if there is none.
    [[nodiscard]] std::size_t largest_batch() const noexcept { return router_.largest_batch_; }

    /// Calls the handlers of all entries; `runner::handle_all` gives the order. Entries that have not started when a stop
    /// is requested are handed back untouched.
    [[nodiscard]] batch handle_all(std::vector<entry> entries, const std::stop_token& stop) const {
        batch out(entries.size());
        const auto plan = plan_calls(entries, [this](const entry& e) { return batch_of(e); });
        for (std::size_t first = 0; first < entries.size(); ++first) {
            const auto size = plan[first].size;
            if (size > 0 && stop.stop_requested()) {
                for (auto i = first; i != no_entry; i = plan[i].next) {
                    out[i] = {.entry = std::move(entries[i]), .outcome = release{}};
                }
            } else if (size == 1) {
                out[first] = handle(std::move(entries[first]), stop);
            } else if (size > 1) {
                std::vector<claimed_entry<Store>> some;
                some.reserve(size);
                for (auto i = first; i != no_entry; i = plan[i].next) {
                    some.push_back({std::move(entries[i]), stop});
                }
                auto done = handle_together(std::move(some), stop);
                for (auto i = first, at = std::size_t{0}; i != no_entry; i = plan[i].next) {
                    out[i] = std::move(done[at++]);
                }
            }
        }
        return out;
    }

    /// Converts a failed `record` into an outcome, which may call the handler's `ended`.
    [[nodiscard]] completion convert_record_failure(completion h) const {
        const auto why = *h.record_failure;
        dispatch().fail_recording(h, why);
        return h;
    }

    struct settled {
        vouch::report report{};
        std::optional<detail::claims> claims{}; ///< set if the settle and the claim shared a commit
    };

    /// Settles every completion without a result and, if `next` is given and every completion gets a result, claims in
    /// the same commit. Reports the outcomes, then the claims. With `calls_handlers` unset, failed records are left for
    /// `convert_record_failure`.
    [[nodiscard]] settled settle(batch& done, const claim_plan* next, bool calls_handlers) {
        if (done.empty()) {
            return {};
        }
        const auto rules = dispatch();
        batch_settler<Store> settler(outbox_.store(), outbox_.clock(), rules, hooks_, calls_handlers);
        next_claim wanted;
        if (next != nullptr) {
            wanted = {.request = request(next->limit, outbox_.now()), .plan = *next};
        }
        auto got = settler(std::span(done), next != nullptr ? &wanted : nullptr);
        settled out{.report = report_all(done)};
        if (got) {
            out.claims = reported(std::move(*got));
        }
        return out;
    }

    /// Extends the leases of completions that wait to be settled. One whose claim was taken over is stale.
    void extend(batch& waiting) {
        const auto most = can_.limits.batch_max;
        for (std::size_t first = 0; first < waiting.size(); first += most) {
            const auto some = std::span(waiting).subspan(first, std::min(most, waiting.size() - first));
            std::vector<ticket> tickets;
            for (const auto& h : some) {
                tickets.push_back(ticket_of(h.entry));
            }
            const auto answers =
                transact(outbox_.store(), [&](auto& tx) { return tx.extend(tickets, outbox_.now(), options_.lease); });
            for (std::size_t i = 0; i < some.size(); ++i) {
                if (answers[i] != verdict::applied && !some[i].in_doubt) {
                    some[i].result = settle_result{.what = settle_result::kind::stale};
                }
            }
        }
    }

    /// Reports the results that were not reported yet.
    report report_results(batch& done) const {
        return report_if(done, [](const completion& h) { return h.result.has_value(); });
    }
    /// The same, and what hooks hold up.
    report report_all(batch& done) const {
        return report_if(done, [](const completion&) { return true; });
    }

  private:
    template <class Predicate>
    report report_if(batch& done, const Predicate& is_wanted) const {
        report out;
        const auto now = outbox_.now();
        for (auto& h : done) {
            if (is_wanted(h)) {
                events_.settled(out, h, now);
            }
        }
        return out;
    }

    [[nodiscard]] claim_request request(std::size_t limit, time_point now) const {
        return {
            .queue = options_.queue, .limit = limit, .now = now, .lease = options_.lease, .worker = options_.worker};
    }

    [[nodiscard]] claims claim(const claim_request& wanted, const claim_plan& plan) {
        if (auto at_once = claim_at_once(outbox_.store(), wanted)) {
            return reported({.entries = std::move(*at_once)});
        }
        return reported(transact(outbox_.store(), [&](auto& tx) { return claim_apart(tx, wanted, plan); }));
    }

    [[nodiscard]] claims reported(claims got) const {
        for (const auto& e : got.entries) {
            events_.claimed(e);
        }
        return got;
    }

    [[nodiscard]] dispatcher<Store> dispatch() const { return {router_, outbox_, options_.dispatch, can_}; }

    const outbox<Store>& outbox_;
    const router<Store>& router_;
    phase_options options_;
    capabilities can_;
    event_reporter events_;
    settle_hooks<transaction> hooks_{};
};

} // namespace detail
} // namespace v0
} // namespace vouch
