// SPDX-License-Identifier: MIT
// Which handler runs an entry, by its topic, within one queue. The most specific pattern that fits wins: fewest `#`,
// then fewest `*`, then most literal words. Of equally specific patterns the one registered first wins.
//
//   vouch::router router(outbox);
//   router.on("user.created", greet, {.backoff = vouch::fixed{1s}});
//   router.on(order_saga);
//   router.on_batch("mail.#", send_together, {.size_max = 100});
//
// Register all routes before the first use. After that any number of threads may read the router.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <vouch/contract/explain.hpp>
#include <vouch/outbox/outbox.hpp>
#include <vouch/outbox/topic.hpp>
#include <vouch/policy/retry.hpp>
#include <vouch/run/batch_options.hpp>
#include <vouch/run/detail/batch_handler.hpp>
#include <vouch/run/detail/handler.hpp>
#include <vouch/run/handler.hpp>

namespace vouch {
inline namespace v0 {

namespace detail {

template <class Store>
class dispatcher;
template <class Store>
class phases;

} // namespace detail

template <class Store>
class router {
    static_assert(explain_store<Store>());

  public:
    using transaction = typename Store::transaction;

    /// The outbox, which gives the router its type, must outlive it. Sagas use the outbox's store. A runner may share a
    /// router with another outbox only if both are bound to the same stored work.
    explicit router(const vouch::outbox<Store>& from) noexcept : outbox_(&from) {}
    explicit router(const vouch::outbox<Store>&&) = delete; // the router would outlive its outbox

    /// Gives entries whose topic fits `pattern` to `handler`, which has one of the forms in `handler.hpp`. The runner's
    /// policy decides what `retry` leaves unset.
    template <class Handler>
    router& on(std::string pattern, Handler&& handler, retry_policy retry = {}) {
        return add(std::move(pattern), detail::make_handler<transaction>(std::forward<Handler>(handler)),
                   std::move(retry));
    }

    /// The same, with the payload decoded to a `T`.
    template <class T, class Handler>
    router& on(std::string pattern, Handler&& handler, retry_policy retry = {}) {
        static_assert(decodable<T>, "vouch: specialise vouch::codec for the payload's type");
        return add(std::move(pattern), detail::make_handler<transaction, T>(std::forward<Handler>(handler)),
                   std::move(retry));
    }

    /// Gives entries whose topic fits `pattern` to `handler` in batches; `handler.hpp` lists its forms. Throws
    /// `invalid_argument` if `how.size_max` is 0 or `how.wait` is negative or longer than the store's longest lease.
    template <class Handler>
    router& on_batch(std::string pattern, Handler&& handler, batch_options how = {}, retry_policy retry = {}) {
        detail::check_batch_options(how, outbox_->store().capabilities().limits.lease_max);
        add(std::move(pattern), detail::make_batch_handler<transaction>(std::forward<Handler>(handler), how),
            std::move(retry));
        largest_batch_ = std::max(largest_batch_, how.size_max);
        return *this;
    }

    /// Adds something that brings its own topic and policy: a saga definition, several versions of one as a
    /// `std::vector`, or a `webhook`.
    template <class Routable>
        requires requires(router& self, Routable&& what) { add_route(self, std::forward<Routable>(what)); }
    router& on(Routable&& what) {
        add_route(*this, std::forward<Routable>(what));
        return *this;
    }

    /// Whether there is a route with exactly this pattern.
    [[nodiscard]] bool has_route(std::string_view pattern) const noexcept {
        return std::any_of(routes_.begin(), routes_.end(), [&](const route& r) { return r.pattern.text() == pattern; });
    }

    [[nodiscard]] const vouch::outbox<Store>& outbox() const noexcept { return *outbox_; }

  private:
    friend class detail::dispatcher<Store>;
    friend class detail::phases<Store>;

    struct route {
        topic_pattern pattern;
        detail::handler<transaction> handler;
        retry_policy retry; ///< what it leaves unset is the runner's to decide
    };

    [[nodiscard]] const route* find(std::string_view topic) const noexcept {
        for (const auto& r : routes_) {
            if (r.pattern.matches(topic)) {
                return &r;
            }
        }
        return nullptr;
    }

    router& add(std::string pattern, detail::handler<transaction> handler, retry_policy retry) {
        route added{topic_pattern(std::move(pattern)), std::move(handler), std::move(retry)};
        const auto before = std::upper_bound(routes_.begin(), routes_.end(), added, [](const route& a, const route& b) {
            return a.pattern.specificity() < b.pattern.specificity();
        });
        routes_.insert(before, std::move(added));
        return *this;
    }

    const vouch::outbox<Store>* outbox_;
    std::vector<route> routes_;     // most specific first, equals as registered
    std::size_t largest_batch_ = 1; // entries
};

} // namespace v0
} // namespace vouch
