// SPDX-License-Identifier: MIT
// Turns a claimed entry into an outcome that the store will accept: finds the handler, calls it, converts whatever
// happens, and validates the result. Every mistake a handler can make is converted here and nowhere else.
#pragma once

#include <cstdint>
#include <exception>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <variant>

#include <vouch/contract/capability.hpp>
#include <vouch/contract/entry.hpp>
#include <vouch/contract/error.hpp>
#include <vouch/contract/is_saga.hpp>
#include <vouch/contract/outcome.hpp>
#include <vouch/contract/time.hpp>
#include <vouch/contract/validate.hpp>
#include <vouch/observe/observer.hpp>
#include <vouch/outbox/emitter.hpp>
#include <vouch/outbox/tracking.hpp>
#include <vouch/policy/retry.hpp>
#include <vouch/run/batch_options.hpp>
#include <vouch/run/delivery.hpp>
#include <vouch/run/detail/caught_exception.hpp>
#include <vouch/run/detail/completion.hpp>
#include <vouch/run/detail/isolation.hpp>
#include <vouch/run/failure.hpp>
#include <vouch/run/handler.hpp>
#include <vouch/run/router.hpp>
#include <vouch/run/unhandled.hpp>

namespace vouch {
inline namespace v0 {
namespace detail {

/// Replaces an outcome that exceeds the store's limits by one that the store accepts.
inline void make_valid(outcome& o, const limits& limit) {
    const auto too_large = [&](const std::string& result) { return result.size() > limit.result_max; };
    if (const auto* const done = std::get_if<succeed>(&o)) {
        if (too_large(done->result)) {
            o = bury{.error = "result_too_large"};
        }
    } else if (auto* const again = std::get_if<retry>(&o)) {
        again->error = error_code(again->error);
    } else if (auto* const dead = std::get_if<bury>(&o)) {
        if (dead->result && too_large(*dead->result)) {
            o = bury{.error = "result_too_large"};
        } else {
            dead->error = error_code(dead->error);
        }
    } else if (const auto* const further = std::get_if<advance>(&o)) {
        if (further->progress.size() > limit.progress_max) {
            o = bury{.error = "progress_too_large"};
        }
    }
}

[[nodiscard]] inline bool continues(const outcome& o) noexcept {
    return std::holds_alternative<succeed>(o) || std::holds_alternative<advance>(o);
}

struct dispatch_options {
    retry_policy retry{}; ///< for routes and entries that have none of their own
    vouch::unhandled unhandled = unhandled::bury;
};

template <class Store>
class batch_dispatcher;

template <class Store>
class dispatcher {
  public:
    /// All arguments must outlive the dispatcher.
    dispatcher(const router<Store>& routes, const emitter& from, const dispatch_options& options,
               const capabilities& can)
        : router_(routes), emitter_(from), options_(options), can_(can) {}

    /// Calls the handler and returns its outcome. `started` is called right before the handler.
    template <class Started>
    [[nodiscard]] completion<Store> operator()(entry claimed, std::stop_token stop, Started&& started) const {
        completion<Store> h{.entry = std::move(claimed)};
        const auto* const route = route_of(h.entry);
        if (route == nullptr || !fits(*route, h.entry)) {
            leave(h);
            return h;
        }
        delivery d(h.entry, emitter_, emitter_.now(), stop);
        auto spent = spent_before(h.entry, *route, d.now());
        if (!spent) {
            started(h.entry);
            spent = work(h, *route, d);
        }
        if (spent) {
            keep_text(h, d);
            end(h, *route, *spent, std::move(stop));
        } else {
            finish(h, *route, d);
        }
        return h;
    }

    /// Converts a failed `record` into a failed attempt.
    void fail_recording(completion<Store>& h, const caught_exception& why) const {
        h.record_failure.reset();
        h.emissions.clear();
        h.receipts.clear();
        h.tag.clear();
        h.record = nullptr;
        const auto* const route = route_of(h.entry);
        if (const auto spent = fail(h, *route, why)) {
            end(h, *route, *spent, {});
        } else {
            answer_burial(h, *route);
        }
    }

    /// The batch of the entry's route, which is the same object for all entries of the route. Null if the entry is
    /// handled by itself: its route is no batch route, or it has a lapse and may kill the process that handles it.
    [[nodiscard]] const batch_options* batch_of(const entry& e) const noexcept {
        if (router_.largest_batch_ == 1 || has_lapsed(e)) {
            return nullptr;
        }
        const auto* const route = route_of(e);
        return route != nullptr && route->handler.work_together && fits(*route, e) ? &route->handler.batch : nullptr;
    }

  private:
    friend class batch_dispatcher<Store>;

    using delivery_type = delivery; ///< a name that depends on the store, for the same reason as `claimed_entry`
    using route_type = typename router<Store>::route;

    [[nodiscard]] const route_type* route_of(const entry& e) const noexcept { return router_.find(e.topic); }

    /// Why an entry has no attempt left, and the error it is buried with.
    struct spending {
        ending why;
        std::string code;
    };

    /// Only a saga handler may run a saga that has begun: any other would end it with its steps not undone.
    [[nodiscard]] static bool fits(const route_type& route, const entry& e) noexcept {
        return route.handler.runs_sagas || !is_saga_progress(e.progress);
    }

    /// No route of this router can handle the entry.
    void leave(completion<Store>& h) const {
        const bool is_saga = is_saga_progress(h.entry.progress);
        const auto now = emitter_.now();
        if (!is_saga && h.entry.expires_at && *h.entry.expires_at <= now) {
            h.outcome = bury{.error = "expired"};
            h.reason = death::expired;
            return;
        }
        if (!is_saga && options_.unhandled == unhandled::bury) {
            h.outcome = bury{.error = "no_handler"};
            h.reason = death::no_handler;
            return;
        }
        h.outcome = release{.at = later(now, look_again_in)};
        h.tag = is_saga ? "no_saga_handler" : "no_handler";
    }

    /// The route's policy, completed by the runner's.
    [[nodiscard]] retry_policy policy_of(const route_type& route) const {
        return with_fallback(route.retry, options_.retry);
    }

    [[nodiscard]] std::uint32_t attempts_max(const entry& e, const route_type& route) const {
        return e.attempts_max != 0 ? e.attempts_max : attempts_max_of(e, policy_of(route));
    }

    [[nodiscard]] std::optional<spending> spent_before(const entry& e, const route_type& route, time_point now) const {
        if (e.expires_at && *e.expires_at <= now) {
            return spending{ending::expired, "expired"};
        }
        if (e.attempts > attempts_max(e, route)) {
            return spending{ending::exhausted, "attempts_exhausted"};
        }
        return std::nullopt;
    }

    [[nodiscard]] std::optional<spending> work(completion<Store>& h, const route_type& route, delivery& d) const {
        const trail_scope scope(d.trail()); // for what the handler emits through an outbox
        try {
            auto worked = route.handler.work(d);
            h.outcome = std::move(worked.outcome);
            h.record = std::move(worked.record);
        } catch (...) {
            return fail(h, route, caught_exception::current());
        }
        return spent_after(h, route);
    }

    /// The delay before the next attempt counts from here.
    [[nodiscard]] std::optional<spending> fail(completion<Store>& h, const route_type& route,
                                               const caught_exception& why) const {
        h.text = why.text;
        if (why.is_permanent) {
            h.reason = death::rejected;
            // An entry with a parent is a saga's command. The (empty) result tells the saga that it was rejected.
            h.outcome = bury{.error = why.code, .result = reply_of_rejecting(h.entry)};
            return std::nullopt;
        }
        h.outcome = after_failure(h.entry, why.code, policy_of(route), emitter_.now());
        if (std::holds_alternative<bury>(h.outcome)) {
            return spending{ending::exhausted, why.code};
        }
        return spent_after(h, route);
    }

    [[nodiscard]] static std::optional<std::string> reply_of_rejecting(const entry& e) {
        return e.parent.is_nil() ? std::nullopt : std::optional<std::string>(std::in_place);
    }

    /// A retry beyond the attempts or the expiry would never run.
    [[nodiscard]] std::optional<spending> spent_after(const completion<Store>& h, const route_type& route) const {
        const auto* const again = std::get_if<retry>(&h.outcome);
        if (again == nullptr) {
            return std::nullopt;
        }
        if (h.entry.attempts >= attempts_max(h.entry, route)) {
            return spending{ending::exhausted, again->error};
        }
        if (h.entry.expires_at && again->at >= *h.entry.expires_at) {
            return spending{ending::expired, "expired"};
        }
        return std::nullopt;
    }

    /// Buries the entry, unless the handler has an `ended`, which decides. `ended` gets a delivery of its own, so nothing
    /// of the failed attempt remains. If it buries without a code, the entry has the code of the failure that ended it.
    /// Beyond twice attempts_max no `ended` is called.
    void end(completion<Store>& h, const route_type& route, const spending& spent, std::stop_token stop) const {
        h.record = nullptr;
        h.reason = spent.why == ending::expired ? death::expired : death::exhausted;
        const std::uint64_t most = attempts_max(h.entry, route);
        const std::uint64_t claims = h.entry.attempts;
        if (!route.handler.ended || claims > 2 * most) {
            h.outcome = bury{.error = error_code(spent.code)};
            answer_burial(h, route);
            return;
        }
        delivery d(h.entry, emitter_, emitter_.now(), std::move(stop));
        const trail_scope scope(d.trail());
        try {
            h.outcome = route.handler.ended(d, spent.why);
            if (auto* const dead = std::get_if<bury>(&h.outcome); dead != nullptr && dead->error.empty()) {
                dead->error = spent.code;
            }
        } catch (...) {
            const auto error = caught_exception::current();
            h.text = error.text;
            h.reason = error.is_permanent ? death::rejected : death::exhausted;
            const auto again = claims < most ? claims : claims - most + 1; // `ended` has delays of its own
            const auto delay = delay_after(policy_of(route), h.entry.id, static_cast<std::uint32_t>(again));
            if (error.is_permanent || claims == 2 * most || !delay) {
                h.outcome = bury{.error = error.code};
            } else {
                h.outcome = retry{.error = error.code, .at = later(emitter_.now(), *delay)};
            }
        }
        finish(h, route, d);
    }

    /// An explanation of the handler's tells more than the text of the exception that it leads to.
    static void keep_text(completion<Store>& h, const delivery& d) {
        h.text = d.explanation().empty() ? std::move(h.text) : d.explanation();
    }

    void finish(completion<Store>& h, const route_type& route, const delivery& d) const {
        make_acceptable(h, d);
        answer_burial(h, route);
    }

    /// Lets a handler that owes an answer give it instead of the burial, with a delivery of its own, so nothing of the
    /// failed attempt remains. An answer that the store would refuse leaves the burial as it is. If the handler throws,
    /// the entry is handled again later.
    void answer_burial(completion<Store>& h, const route_type& route) const {
        const auto* const dead = std::get_if<bury>(&h.outcome);
        if (dead == nullptr || !route.handler.buried) {
            return;
        }
        const auto burial = *dead;
        const auto reason = h.reason;
        delivery d(h.entry, emitter_, emitter_.now());
        try {
            h.outcome = route.handler.buried(d, burial);
        } catch (...) {
            h.outcome = release{.at = later(emitter_.now(), look_again_in)};
            h.tag = "unanswered";
            return;
        }
        make_acceptable(h, d);
        if (std::holds_alternative<bury>(h.outcome)) {
            h.outcome = burial;
            h.reason = reason;
        }
    }

    /// Emissions and records belong to succeed and advance only. Replaces whatever the store would refuse.
    void make_acceptable(completion<Store>& h, const delivery& d) const {
        const auto meant = h.outcome.index();
        make_valid(h.outcome, can_.limits);
        keep_text(h, d);
        const bool is_as_meant = h.outcome.index() == meant;
        h.tag = is_as_meant ? d.tag() : std::string{};
        h.reason = !is_as_meant ? death::invalid : h.reason == death::none ? death::buried : h.reason;
        if (continues(h.outcome)) {
            try {
                h.emissions = d.emitted();
                validate(h.emissions, can_);
                return;
            } catch (const error& e) {
                h.tag.clear();
                h.reason = death::invalid;
                h.outcome = bury{.error = e.kind() == error_kind::unrouted ? "unrouted" : "invalid_emission"};
            }
        }
        h.emissions.clear();
        h.record = nullptr;
    }

    const router<Store>& router_;
    const emitter& emitter_;
    const dispatch_options& options_;
    const capabilities& can_;
};

} // namespace detail
} // namespace v0
} // namespace vouch
