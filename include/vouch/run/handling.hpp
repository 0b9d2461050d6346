// SPDX-License-Identifier: MIT
// From a claimed entry to a settle that is sure to be valid: finds the handler, calls it, turns whatever happens into an
// outcome, and checks that the store will take it. Everything a handler can do wrong is converted here and nowhere else.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <variant>
#include <vector>
#include <vouch/contract/capability.hpp>
#include <vouch/contract/draft.hpp>
#include <vouch/contract/entry.hpp>
#include <vouch/contract/error.hpp>
#include <vouch/contract/outcome.hpp>
#include <vouch/contract/validate.hpp>
#include <vouch/outbox/outbox.hpp>
#include <vouch/policy/retry.hpp>
#include <vouch/run/delivery.hpp>
#include <vouch/run/failure.hpp>
#include <vouch/run/handler.hpp>
#include <vouch/run/router.hpp>

namespace vouch {
inline namespace v0 {

/// How the settle of a handled entry fared.
struct landing {
    enum class kind : std::uint8_t {
        landed,
        stale,     ///< another claim had taken over
        unsettled, ///< a hook threw; the entry stays claimed and its lease heals it
    };
    landing::kind what = kind::landed;
    bool group_completed = false;
    std::string error{}; ///< unsettled: a code for what was thrown
};

/// A claimed entry with what became of it, ready to be settled.
template <class Store>
struct handled {
    vouch::entry entry{};
    vouch::outcome outcome{};
    std::vector<draft> emissions{};
    std::function<void(typename Store::transaction&)> record{};
    const retry_policy* retry = nullptr; ///< that applies to this entry

    // Kept by settling, so that a batch can be given again after a fault of the store.
    std::optional<vouch::landing> landing{};
    bool in_doubt = false; ///< an earlier commit may have landed
};

namespace detail {

/// Brings an outcome within the limits of the store.
struct make_valid {
    const limits& limit;

    outcome operator()(succeed o) const {
        return o.result.size() > limit.result_max ? outcome{bury{.error = "result_too_large"}} : outcome{std::move(o)};
    }
    outcome operator()(retry o) const { return retry{.error = error_code(o.error), .at = o.at}; }
    outcome operator()(bury o) const {
        if (o.result && o.result->size() > limit.result_max) {
            return bury{.error = "result_too_large"};
        }
        return bury{.error = error_code(o.error), .result = std::move(o.result)};
    }
    outcome operator()(release o) const { return o; }
    outcome operator()(advance o) const {
        return o.progress.size() > limit.progress_max ? outcome{bury{.error = "progress_too_large"}}
                                                      : outcome{std::move(o)};
    }
};

[[nodiscard]] inline bool goes_on(const outcome& o) noexcept {
    return std::holds_alternative<succeed>(o) || std::holds_alternative<advance>(o);
}

/// What is kept of the exception being handled: its code, and whether another try makes sense.
struct caught {
    std::string code;
    bool is_permanent = false;

    /// Call inside a catch clause.
    [[nodiscard]] static caught current() {
        try {
            throw;
        } catch (const reject& e) {
            return {error_code(e.code()), true};
        } catch (const failure& e) {
            return {error_code(e.code())};
        } catch (const std::exception& e) {
            return {class_of(e)};
        } catch (...) {
            return {"unknown_exception"};
        }
    }
};

} // namespace detail

template <class Store>
class handling {
  public:
    handling(const router<Store>& routes, const outbox& from, const retry_policy& fallback, const capabilities& can)
        : router_(routes), outbox_(from), fallback_(fallback), can_(can) {}

    [[nodiscard]] handled<Store> operator()(entry claimed, std::stop_token stop) const {
        handled<Store> h{.entry = std::move(claimed)};
        const auto* const route = router_.find(h.entry.topic);
        if (route == nullptr) {
            h.outcome = bury{.error = "no_handler"};
            return h;
        }
        h.retry = route->retry ? &*route->retry : &fallback_;
        delivery d(h.entry, outbox_, outbox_.now(), std::move(stop));
        if (h.entry.expires_at && *h.entry.expires_at <= d.now()) {
            end(h, *route, d, ending::expired, "expired");
        } else if (h.entry.attempts > attempts_max_of(h.entry, *h.retry)) {
            end(h, *route, d, ending::exhausted, "attempts_exhausted");
        } else {
            work(h, *route, d);
        }
        finish(h, d);
        return h;
    }

    /// The outcome of an entry whose work went well but could not be recorded.
    static void fail_recording(handled<Store>& h, const detail::caught& why, time_point now) {
        h.outcome = why.is_permanent ? outcome{bury{.error = why.code}} : after_failure(h.entry, why.code, *h.retry, now);
        h.emissions.clear();
        h.record = nullptr;
    }

  private:
    using route_type = typename router<Store>::route;

    void work(handled<Store>& h, const route_type& route, delivery& d) const {
        try {
            auto worked = route.handler.work(d);
            h.outcome = std::move(worked.outcome);
            h.record = std::move(worked.record);
        } catch (...) {
            const auto why = detail::caught::current();
            if (why.is_permanent) {
                h.outcome = bury{.error = why.code};
                return;
            }
            h.outcome = after_failure(h.entry, why.code, *h.retry, d.now());
            if (std::holds_alternative<bury>(h.outcome)) {
                end(h, route, d, ending::exhausted, why.code);
                return;
            }
        }
        const auto* const again = std::get_if<retry>(&h.outcome);
        if (again != nullptr && h.entry.expires_at && again->at >= *h.entry.expires_at) {
            end(h, route, d, ending::expired, "expired");
        }
    }

    /// Time or attempts have run out. `ended` may turn the entry round; a claim beyond twice attempts_max calls nobody.
    void end(handled<Store>& h, const route_type& route, delivery& d, ending why, std::string code) const {
        const std::uint64_t most = attempts_max_of(h.entry, *h.retry);
        const std::uint64_t claims = h.entry.attempts;
        if (!route.handler.ended || claims > 2 * most) {
            h.outcome = bury{.error = std::move(code)};
            return;
        }
        try {
            h.outcome = route.handler.ended(d, why);
        } catch (...) {
            const auto error = detail::caught::current();
            const auto again = claims < most ? claims : claims - most + 1; // the delays begin anew
            const auto delay = delay_after(h.retry->backoff, h.entry.id, static_cast<std::uint32_t>(again));
            if (error.is_permanent || claims == 2 * most || !delay) {
                h.outcome = bury{.error = error.code};
            } else {
                h.outcome = retry{.error = error.code, .at = later(d.now(), *delay)};
            }
        }
    }

    /// Emissions and records go with succeed and advance only, and nothing is sent that the store would refuse.
    void finish(handled<Store>& h, const delivery& d) const {
        h.outcome = std::visit(detail::make_valid{can_.limits}, std::move(h.outcome));
        if (detail::goes_on(h.outcome)) {
            try {
                h.emissions = d.emitted();
                validate(h.emissions, can_);
                return;
            } catch (const error& e) {
                h.outcome = bury{.error = e.kind() == error_kind::unrouted ? "unrouted" : "invalid_emission"};
            }
        }
        h.emissions.clear();
        h.record = nullptr;
    }

    const router<Store>& router_;
    const outbox& outbox_;
    const retry_policy& fallback_;
    const capabilities& can_;
};

} // namespace v0
} // namespace vouch
