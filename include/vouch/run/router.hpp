// SPDX-License-Identifier: MIT
// Which handler gets an entry, by its topic, within one queue. The most specific pattern that fits wins (fewest `#`,
// then fewest `*`, then most words spelled out); of equals the one registered first.
//
// A router is filled before it is used and then only read, by as many threads as like.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <vouch/contract/explain.hpp>
#include <vouch/outbox/topic.hpp>
#include <vouch/policy/retry.hpp>
#include <vouch/run/handler.hpp>

namespace vouch {
inline namespace v0 {

template <class Store>
class router {
    static_assert(explain_store<Store>());

  public:
    using transaction = typename Store::transaction;

    struct route {
        topic_pattern pattern;
        vouch::handler<transaction> handler;
        std::optional<retry_policy> retry; ///< unset: the runner's
    };

    /// Hands entries whose topic fits to `handler`, in any of the forms of `handler.hpp`, and retries by the runner's
    /// policy.
    template <class Handler>
    router& on(std::string pattern, Handler&& handler) {
        return add(std::move(pattern), make_handler<transaction>(std::forward<Handler>(handler)), {});
    }
    /// The same, with a retry policy of its own.
    template <class Handler>
    router& on(std::string pattern, Handler&& handler, retry_policy retry) {
        return add(std::move(pattern), make_handler<transaction>(std::forward<Handler>(handler)), std::move(retry));
    }

    /// The same, with the payload decoded to a `T`.
    template <class T, class Handler>
    router& on(std::string pattern, Handler&& handler) {
        return add(std::move(pattern), make_typed<T>(std::forward<Handler>(handler)), {});
    }
    template <class T, class Handler>
    router& on(std::string pattern, Handler&& handler, retry_policy retry) {
        return add(std::move(pattern), make_typed<T>(std::forward<Handler>(handler)), std::move(retry));
    }

    /// The route of a topic, or null if nobody handles it.
    [[nodiscard]] const route* find(std::string_view topic) const noexcept {
        for (const auto& r : routes_) {
            if (r.pattern.matches(topic)) {
                return &r;
            }
        }
        return nullptr;
    }

  private:
    template <class T, class Handler>
    [[nodiscard]] static vouch::handler<transaction> make_typed(Handler&& handler) {
        static_assert(decodable<T>, "vouch: specialise vouch::codec for the payload's type");
        return make_handler<transaction, T>(std::forward<Handler>(handler));
    }

    router& add(std::string pattern, vouch::handler<transaction> handler, std::optional<retry_policy> retry) {
        route added{topic_pattern(std::move(pattern)), std::move(handler), std::move(retry)};
        const auto before = std::upper_bound(routes_.begin(), routes_.end(), added, [](const route& a, const route& b) {
            return a.pattern.specificity() < b.pattern.specificity();
        });
        routes_.insert(before, std::move(added));
        return *this;
    }

    std::vector<route> routes_; // most specific first, equals as registered
};

} // namespace v0
} // namespace vouch
