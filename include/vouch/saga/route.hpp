// SPDX-License-Identifier: MIT
// Sagas as routes: `router.on(order_saga)` gives the entries of a saga to the saga engine. A router of the saga's queue
// needs it; a saga that has begun is never given to any other handler.
#pragma once

#include <chrono>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <vouch/contract/validate.hpp>
#include <vouch/policy/backoff.hpp>
#include <vouch/policy/retry.hpp>
#include <vouch/run/router.hpp>
#include <vouch/saga/definition.hpp>
#include <vouch/saga/detail/engine.hpp>

namespace vouch {
inline namespace v0 {

namespace detail {

template <class Rules, class Store>
void add_saga(router<Store>& to, std::vector<saga_definition> versions) {
    saga_engine<Store, Rules> engine(to.outbox().store(), std::move(versions));
    auto topic = engine.topic();
    if (to.has_route(topic)) {
        refuse({"saga", "name"}, "has a route already; give all versions of a saga in one call, as a std::vector");
    }
    // Steps have policies of their own; this one is for failures between them.
    to.on(std::move(topic), std::move(engine),
          retry_policy{.backoff = exponential{.base = std::chrono::seconds{1}, .max = saga_recheck_interval},
                       .attempts_max = std::numeric_limits<std::uint32_t>::max()});
}

} // namespace detail

/// Makes `router.on(definition)` work; call that.
template <class Store>
void add_route(router<Store>& to, const saga_definition& only) {
    detail::add_saga<detail::saga_rules>(to, {only});
}
/// All versions of one saga that may still be running. Throws `invalid_argument` if they are not versions of one saga.
template <class Store>
void add_route(router<Store>& to, std::vector<saga_definition> versions) {
    detail::add_saga<detail::saga_rules>(to, std::move(versions));
}

} // namespace v0
} // namespace vouch
