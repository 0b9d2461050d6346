// SPDX-License-Identifier: MIT
// Webhook deliveries: one entry per (event, subscription), however often the event is routed. Each subscription has its
// own limits and delays, as they are at the time of an attempt; the defaults apply to what it leaves open.
//
//   const vouch::webhook hook(find_subscription, send);
//   router.on(hook);
//   outbox.emit(tx, vouch::webhook::of({.queue = "hooks", .event = "order 7", .to = subscription, .body = body}));
//
// What other systems call these parts:
//
//   Pending, InProgress, PendingRetry, Completed, DeadLettered   the states pending, claimed, retrying, succeeded, dead
//   attempt_count      failures, plus one if it succeeded
//   next_attempt_at    due_at
//   final_error_code   last_error: of the last failed attempt; kept after a success
//
// The handler knows nothing of HTTP: the application gives it a function that sends. Any number of threads may run it,
// if that function allows that.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <vouch/contract/entry.hpp>
#include <vouch/contract/id.hpp>
#include <vouch/contract/outcome.hpp>
#include <vouch/contract/validate.hpp>
#include <vouch/outbox/emission.hpp>
#include <vouch/policy/backoff.hpp>
#include <vouch/policy/retry.hpp>
#include <vouch/run/audit.hpp>
#include <vouch/run/delivery.hpp>
#include <vouch/run/detail/caught_exception.hpp>
#include <vouch/run/failure.hpp>
#include <vouch/run/router.hpp>

namespace vouch {
inline namespace v0 {

class webhook {
  public:
    static constexpr std::string_view topic = "webhook";

    struct subscription {
        std::string id{};
        std::string url{};
        std::uint32_t attempts_max = 0; ///< 0: one more than its schedule has delays; without a schedule the default
        std::optional<vouch::backoff> backoff{}; ///< unset: the default
    };

    /// An event for a subscription.
    struct message {
        std::string queue{};
        std::string event{}; ///< names the event: one delivery per event and subscription
        webhook::subscription to{};
        std::string body{};
    };

    /// What to send.
    struct request {
        vouch::id id{}; ///< the idempotency key: the same for every attempt
        std::string event{};
        webhook::subscription subscription{};
        std::string body{};
        std::uint32_t attempt = 0; ///< counted from 1
    };

    /// Returns nothing if the subscription does not exist any more.
    using lookup = std::function<std::optional<subscription>(std::string_view id)>;
    /// Sends, and returns the status of the response. An exception is a failed attempt.
    using sender = std::function<int(const request&)>;

    webhook(lookup subscriptions, sender send, retry_policy defaults = {})
        : subscriptions_(std::move(subscriptions)), send_(std::move(send)), defaults_(std::move(defaults)) {}

    /// The policy of the route. It sets no limit: the subscription does, at each attempt.
    [[nodiscard]] retry_policy retry() const {
        return {.backoff = defaults_.backoff, .attempts_max = std::numeric_limits<std::uint32_t>::max()};
    }

    /// The policy of a subscription, completed by the defaults.
    [[nodiscard]] retry_policy retry_of(const subscription& s) const {
        const bool has_schedule = s.backoff && s.backoff->attempts();
        const auto otherwise = has_schedule ? *s.backoff->attempts() : attempts_max_of(entry{}, defaults_);
        return {.backoff = s.backoff ? s.backoff : defaults_.backoff,
                .attempts_max = s.attempts_max != 0 ? s.attempts_max : otherwise};
    }

    /// The delivery of an event to a subscription. Emit it in the transaction of the event. The same pair again is a
    /// duplicate while the first is stored. Only the subscription's id is stored.
    [[nodiscard]] static emission of(message m) {
        if (m.event.empty() || m.to.id.empty()) {
            detail::refuse({"webhook", m.event.empty() ? "event" : "subscription id"}, "is empty");
        }
        // The length keeps ("a/b", "c") and ("a", "b/c") apart.
        auto key = std::to_string(m.event.size()) + '/' + m.event + '/' + m.to.id;
        return {.queue = std::move(m.queue),
                .topic = std::string(topic),
                .payload = std::move(m.body),
                .key = std::move(key),
                .headers = {{"webhook-event", std::move(m.event)}, {"webhook-subscription", std::move(m.to.id)}}};
    }

    /// A 2xx status is a success, any other a failed attempt with the code `http_<status>`. The delivery is dead at once
    /// if its subscription is gone, or if the subscription's limit is below the attempts made.
    [[nodiscard]] outcome operator()(delivery& d) const {
        const auto event = d.header("webhook-event");
        const auto to = d.header("webhook-subscription");
        if (!event || !to) {
            throw reject("no_webhook");
        }
        const auto known = subscriptions_(*to);
        if (!known) {
            throw reject("no_subscription");
        }
        const auto policy = retry_of(*known);
        if (d.attempt() > attempts_max_of(d.entry(), policy)) {
            return bury{.error = "attempts_exhausted"};
        }
        std::string code;
        try {
            const int status = send_({.id = d.id(),
                                      .event = std::string(*event),
                                      .subscription = *known,
                                      .body = d.payload(),
                                      .attempt = d.attempt()});
            if (status >= 200 && status < 300) {
                return succeed{};
            }
            code = "http_" + std::to_string(status);
        } catch (...) {
            const auto why = detail::caught_exception::current();
            if (why.is_permanent) {
                throw;
            }
            code = why.code;
            d.explain(why.text);
        }
        return after_failure(d.entry(), code, policy, d.time());
    }

    /// An audit sink that calls `hook(transaction, audit_line)` for every delivery that dies, in the same transaction.
    /// If the hook throws, the delivery is not dead yet; it is settled again later.
    template <class Transaction, class Hook>
    [[nodiscard]] static audit_sink<Transaction> dead_letters(Hook&& hook) {
        return [hook = std::forward<Hook>(hook)](Transaction& tx, const audit_line& line) {
            if (line.what == audit_line::kind::dead && line.topic == topic) {
                hook(tx, line);
            }
        };
    }

  private:
    lookup subscriptions_;
    sender send_;
    retry_policy defaults_;
};

/// Makes `router.on(hook)` work; call that.
template <class Store>
void add_route(router<Store>& to, webhook hook) {
    auto retry = hook.retry();
    to.on(std::string(webhook::topic), std::move(hook), std::move(retry));
}

} // namespace v0
} // namespace vouch
