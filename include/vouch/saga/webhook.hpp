// SPDX-License-Identifier: MIT
// Webhook deliveries: one entry per (event, subscription), however often the event is routed; limits and delays of each
// subscription, as they are at the time of the attempt, over defaults; dead letters in the same transaction as the
// death; a requeue that begins anew. Its words, for those who know them as a delivery saga:
//
//   status Pending, InProgress, PendingRetry, Completed, DeadLettered    state pending, claimed, retrying, succeeded,
//   dead attempt_count        failures, and one more if it succeeded next_attempt_at      due_at final_error_code
//   last_error: of the last failed attempt; kept after a success
//
// The handler knows nothing of HTTP: it is given a function that sends. It is only read when it runs, by as many
// threads as like, if that function may.
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
#include <vouch/observe/audit.hpp>
#include <vouch/outbox/outbox.hpp>
#include <vouch/policy/backoff.hpp>
#include <vouch/policy/retry.hpp>
#include <vouch/run/delivery.hpp>
#include <vouch/run/failure.hpp>
#include <vouch/run/handling.hpp>

namespace vouch {
inline namespace v0 {

class webhook {
  public:
    static constexpr std::string_view topic = "webhook";

    struct subscription {
        std::string id{};
        std::string url{};
        std::uint32_t attempts_max = 0; ///< 0: as many as its own schedule has delays, and one; else the default
        std::optional<vouch::backoff> backoff{}; ///< unset: the default
    };

    /// What is to be sent.
    struct request {
        vouch::id id{}; ///< the idempotency key: the same for every attempt
        std::string event{};
        webhook::subscription subscription{};
        std::string body{};
        std::uint32_t attempt = 0; ///< counted from 1
    };

    /// Nothing: there is no such subscription any more.
    using lookup = std::function<std::optional<subscription>(std::string_view id)>;
    /// Sends, and gives the status of the response. Whatever it throws is a failed attempt.
    using sender = std::function<int(const request&)>;

    webhook(lookup subscriptions, sender send, retry_policy defaults = {})
        : subscriptions_(std::move(subscriptions)), send_(std::move(send)), defaults_(std::move(defaults)) {}

    /// For the route: `router.on(std::string(webhook::topic), hook, hook.retry())`. It sets no limit of its own: the
    /// subscription does, at each attempt. A route without it cuts every subscription at the runner's limit.
    [[nodiscard]] retry_policy retry() const {
        return {.backoff = defaults_.backoff, .attempts_max = std::numeric_limits<std::uint32_t>::max()};
    }

    /// What holds for a subscription: what it says, over the defaults.
    [[nodiscard]] retry_policy retry_of(const subscription& s) const {
        const bool has_schedule = s.backoff && s.backoff->attempts();
        const auto otherwise = has_schedule ? *s.backoff->attempts() : attempts_max_of(entry{}, defaults_);
        return {.backoff = s.backoff ? s.backoff : defaults_.backoff,
                .attempts_max = s.attempts_max != 0 ? s.attempts_max : otherwise};
    }

    /// The delivery of an event to a subscription, to be emitted in the transaction of the event. The same pair again
    /// is a duplicate, as long as the first is stored. Nothing of the subscription but its id is stored.
    [[nodiscard]] static emission of(std::string queue, const std::string& event, const subscription& to,
                                     std::string body) {
        if (event.empty() || to.id.empty()) {
            detail::refuse({"webhook", event.empty() ? "event" : "subscription"}, "is empty");
        }
        return {.queue = std::move(queue),
                .topic = std::string(topic),
                .payload = std::move(body),
                // The length keeps ("a/b", "c") and ("a", "b/c") apart.
                .key = std::to_string(event.size()) + '/' + event + '/' + to.id,
                .headers = {{"webhook-event", event}, {"webhook-subscription", to.id}}};
    }

    /// 2xx is a success, anything else a failed attempt with the code `http_<status>`. A subscription that is gone ends
    /// it at once, and so does one whose limit lies below the attempts there were.
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
            const auto why = detail::caught::current();
            if (why.is_permanent) {
                throw;
            }
            code = why.code;
            d.explain(why.text);
        }
        return after_failure(d.entry(), code, policy, d.time());
    }

    /// For `runner::audit`: calls `hook(transaction, audit_line)` for every delivery that is given up, in the
    /// transaction in which it dies. If it throws, the delivery is not dead yet; it is settled again later.
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

} // namespace v0
} // namespace vouch
