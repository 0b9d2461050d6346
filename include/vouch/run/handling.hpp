// SPDX-License-Identifier: MIT
// From a claimed entry to a settle that is sure to be valid: finds the handler, calls it, turns whatever happens into
// an outcome, and checks that the store will take it. Everything a handler can do wrong is converted here and nowhere
// else.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <vouch/contract/capability.hpp>
#include <vouch/contract/draft.hpp>
#include <vouch/contract/entry.hpp>
#include <vouch/contract/error.hpp>
#include <vouch/contract/is_saga.hpp>
#include <vouch/contract/outcome.hpp>
#include <vouch/contract/time.hpp>
#include <vouch/contract/validate.hpp>
#include <vouch/contract/verdict.hpp>
#include <vouch/observe/observer.hpp>
#include <vouch/outbox/outbox.hpp>
#include <vouch/outbox/tracking.hpp>
#include <vouch/policy/retry.hpp>
#include <vouch/run/delivery.hpp>
#include <vouch/run/failure.hpp>
#include <vouch/run/handler.hpp>
#include <vouch/run/router.hpp>

namespace vouch {
inline namespace v0 {

namespace detail {

/// What is kept of the exception being handled: its code, and whether another try makes sense. Its text is for a log
/// that asked for it, and is never stored.
struct caught {
    std::string code;
    bool is_permanent = false;
    std::string text{};

    static constexpr std::size_t text_max = 1000;
    [[nodiscard]] static std::string text_of(const std::exception& e) {
        const char* const text = e.what();
        return text == nullptr ? std::string{} : std::string(std::string_view(text).substr(0, text_max));
    }

    /// Call inside a catch clause.
    [[nodiscard]] static caught current() {
        try {
            throw;
        } catch (const reject& e) {
            return {error_code(e.code()), true};
        } catch (const failure& e) {
            return {error_code(e.code())};
        } catch (const error& e) {
            return {std::string(name_of(e.kind())), false, text_of(e)};
        } catch (const std::exception& e) {
            return {class_of(e), false, text_of(e)};
        } catch (...) {
            return {"unknown_exception"};
        }
    }
};

} // namespace detail

/// How the settle of a handled entry fared.
struct landing {
    enum class kind : std::uint8_t {
        landed,
        stale,     ///< another claim had taken over
        unsettled, ///< the store refuses the outcome; the entry stays claimed until its lease is over
    };
    landing::kind what = kind::landed;
    bool group_completed = false;
    std::string error{};      ///< unsettled: a code for what was thrown
    std::string text{};       ///< unsettled: its text, as in `handled`
    bool is_reported = false; ///< to the observers
};

/// A claimed entry with what became of it, ready to be settled.
template <class Store>
struct handled {
    vouch::entry entry{};
    vouch::outcome outcome{};
    std::vector<draft> emissions{};
    std::string tag{};  ///< the handler's word about the outcome
    death reason{};     ///< if the outcome is to bury
    std::string text{}; ///< of the exception behind the outcome; for observers that asked for it, never stored
    std::function<void(typename Store::transaction&)> record{};
    std::optional<duration> took{}; ///< from the handler's call to its end; none if it was not called

    // Kept by settling, so that a batch can be given again after a fault of the store or of a hook.
    std::optional<vouch::landing> landing{};
    std::string held_up{};      ///< a code for what an audit sink or a group callback threw; the outcome is kept
    std::string held_up_text{}; ///< its text, as in `text`
    bool is_untried = false;    ///< held up because the hooks of others failed
    std::optional<detail::caught> record_failure{}; ///< `record` threw; what follows is yet to be decided
    bool is_reported = false;                       ///< to the observers: that it is held up
    std::vector<receipt> receipts{};                ///< of the emissions, as the last try got them
    bool completes_group = false;                   ///< as the last try was told
    bool in_doubt = false;                          ///< an earlier commit may have landed
};

namespace detail {

/// Brings an outcome within the limits of the store.
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

[[nodiscard]] inline bool goes_on(const outcome& o) noexcept {
    return std::holds_alternative<succeed>(o) || std::holds_alternative<advance>(o);
}

} // namespace detail

/// What a runner does with an entry whose topic none of its routes fits.
enum class unhandled : std::uint8_t {
    bury,       ///< dead at once, with the error `no_handler`: a person sees it and requeues it
    look_again, ///< handed back, due again after `look_again_in`: for workers that are deployed after their producers
};

/// How long an entry waits that this runner has no handler for, but another may.
inline constexpr duration look_again_in = std::chrono::minutes{1};

struct handling_options {
    retry_policy retry{}; ///< for routes and entries that have none of their own
    vouch::unhandled unhandled = unhandled::bury;
};

template <class Store>
class handling {
  public:
    handling(const router<Store>& routes, const outbox& from, const handling_options& options, const capabilities& can)
        : router_(routes), outbox_(from), options_(options), can_(can) {}

    /// `started` is called right before the handler is.
    template <class Started>
    [[nodiscard]] handled<Store> operator()(entry claimed, std::stop_token stop, Started&& started) const {
        handled<Store> h{.entry = std::move(claimed)};
        const auto* const route = router_.find(h.entry.topic);
        if (route == nullptr || !fits(*route, h.entry)) {
            leave(h);
            return h;
        }
        delivery d(h.entry, outbox_, outbox_.now(), stop);
        auto spent = spent_before(h.entry, *route, d.now());
        if (!spent) {
            started(h.entry);
            spent = work(h, *route, d);
        }
        if (spent) {
            end(h, *route, *spent, std::move(stop));
        } else {
            finish(h, d);
        }
        return h;
    }

    /// Decides on an entry whose work went well but could not be recorded: the attempt failed.
    void fail_recording(handled<Store>& h, const detail::caught& why) const {
        h.record_failure.reset();
        h.emissions.clear();
        h.receipts.clear();
        h.tag.clear();
        h.record = nullptr;
        const auto* const route = router_.find(h.entry.topic);
        if (const auto spent = fail(h, *route, why)) {
            end(h, *route, *spent, {});
        }
    }

  private:
    using route_type = typename router<Store>::route;

    /// Time or attempts have run out, and what the entry is to be buried with.
    struct spending {
        ending why;
        std::string code;
    };

    /// A saga that has begun is run by its own handler only: any other would end it with its steps standing.
    [[nodiscard]] static bool fits(const route_type& route, const entry& e) noexcept {
        return route.handler.runs_sagas || !is_saga_progress(e.progress);
    }

    /// Nothing here can handle it.
    void leave(handled<Store>& h) const {
        const bool is_saga = is_saga_progress(h.entry.progress);
        const auto now = outbox_.now();
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

    /// What a route leaves open the runner's policy decides.
    [[nodiscard]] retry_policy policy_of(const route_type& route) const {
        return route.retry ? with_fallback(*route.retry, options_.retry) : options_.retry;
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

    [[nodiscard]] std::optional<spending> work(handled<Store>& h, const route_type& route, delivery& d) const {
        const detail::trail_scope scope(d.trail()); // for what it emits past the delivery
        try {
            auto worked = route.handler.work(d);
            h.outcome = std::move(worked.outcome);
            h.record = std::move(worked.record);
        } catch (...) {
            return fail(h, route, detail::caught::current());
        }
        return spent_after(h, route);
    }

    /// The attempt ends here: that is when the wait for the next one begins.
    [[nodiscard]] std::optional<spending> fail(handled<Store>& h, const route_type& route,
                                               const detail::caught& why) const {
        h.text = why.text;
        if (why.is_permanent) {
            h.reason = death::rejected;
            // An entry with a parent is a saga's command: that it was rejected, and has not just died, is the reply.
            h.outcome = bury{.error = why.code, .result = reply_of_rejecting(h.entry)};
            return std::nullopt;
        }
        h.outcome = after_failure(h.entry, why.code, policy_of(route), outbox_.now());
        if (std::holds_alternative<bury>(h.outcome)) {
            return spending{ending::exhausted, why.code};
        }
        return spent_after(h, route);
    }

    [[nodiscard]] static std::optional<std::string> reply_of_rejecting(const entry& e) {
        return e.parent.is_nil() ? std::nullopt : std::optional<std::string>(std::in_place);
    }

    /// A retry that can never come is none.
    [[nodiscard]] std::optional<spending> spent_after(const handled<Store>& h, const route_type& route) const {
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

    /// Buries, unless the handler's `ended` turns the entry round: with a delivery of its own, so that nothing of the
    /// failed attempt is left. A claim beyond twice attempts_max calls nobody.
    void end(handled<Store>& h, const route_type& route, const spending& spent, std::stop_token stop) const {
        h.record = nullptr;
        h.reason = spent.why == ending::expired ? death::expired : death::exhausted;
        const std::uint64_t most = attempts_max(h.entry, route);
        const std::uint64_t claims = h.entry.attempts;
        if (!route.handler.ended || claims > 2 * most) {
            h.outcome = bury{.error = error_code(spent.code)};
            return;
        }
        delivery d(h.entry, outbox_, outbox_.now(), std::move(stop));
        const detail::trail_scope scope(d.trail());
        try {
            h.outcome = route.handler.ended(d, spent.why);
        } catch (...) {
            const auto error = detail::caught::current();
            h.text = error.text;
            h.reason = error.is_permanent ? death::rejected : death::exhausted;
            const auto again = claims < most ? claims : claims - most + 1; // the delays begin anew
            const auto delay = delay_after(policy_of(route), h.entry.id, static_cast<std::uint32_t>(again));
            if (error.is_permanent || claims == 2 * most || !delay) {
                h.outcome = bury{.error = error.code};
            } else {
                h.outcome = retry{.error = error.code, .at = later(outbox_.now(), *delay)};
            }
        }
        finish(h, d);
    }

    /// Emissions and records go with succeed and advance only, and nothing is sent that the store would refuse.
    void finish(handled<Store>& h, const delivery& d) const {
        const auto meant = h.outcome.index();
        detail::make_valid(h.outcome, can_.limits);
        h.text = d.explanation().empty() ? std::move(h.text) : d.explanation();
        const bool is_as_meant = h.outcome.index() == meant;
        h.tag = is_as_meant ? d.tag() : std::string{};
        h.reason = !is_as_meant ? death::invalid : h.reason == death::none ? death::buried : h.reason;
        if (detail::goes_on(h.outcome)) {
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
    const outbox& outbox_;
    const handling_options& options_;
    const capabilities& can_;
};

} // namespace v0
} // namespace vouch
