// SPDX-License-Identifier: MIT
// The saga engine: a handler that runs one step per claim and settles it with `advance`, so that leases, fences,
// retries and dead letters are those of any entry. A saga ends succeeded, tagged `completed` or `compensated`, or dead
// where a compensation is stuck, from where `resume` goes on.
//
//   vouch::add_saga(router, store, order_saga);                       // on the runner of the saga's queue
//   outbox.emit(tx, order_saga.begin("orders", order{...}));
//
// A saga is only read when it runs, by as many threads as like, if its definitions' actions may.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <vouch/contract/error.hpp>
#include <vouch/contract/outcome.hpp>
#include <vouch/contract/time.hpp>
#include <vouch/contract/validate.hpp>
#include <vouch/policy/backoff.hpp>
#include <vouch/policy/retry.hpp>
#include <vouch/run/delivery.hpp>
#include <vouch/run/failure.hpp>
#include <vouch/run/handler.hpp>
#include <vouch/run/router.hpp>
#include <vouch/saga/cancel.hpp>
#include <vouch/saga/definition.hpp>
#include <vouch/saga/detail/claim.hpp>
#include <vouch/saga/detail/claim_state.hpp>
#include <vouch/saga/detail/outcome.hpp>
#include <vouch/saga/detail/rules.hpp>
#include <vouch/saga/progress.hpp>

namespace vouch {
inline namespace v0 {

/// The handler of all versions of one saga.
template <class Store, class Rules = detail::saga_rules>
class saga {
  public:
    using transaction = typename Store::transaction;

    /// The store outlives the saga. Throws `invalid_argument` for definitions that cannot be run, of several names, or
    /// twice of the same version.
    saga(Store& store, std::vector<saga_definition> versions) : store_(store), versions_(std::move(versions)) {
        if (versions_.empty()) {
            detail::refuse({"saga", "definitions"}, "are none");
        }
        for (std::size_t i = 0; i < versions_.size(); ++i) {
            validate(versions_[i]);
            for (std::size_t earlier = 0; earlier < i; ++earlier) {
                if (versions_[i].name != versions_[earlier].name) {
                    detail::refuse({"saga", "definitions"}, "have different names");
                }
                if (versions_[i].options.version == versions_[earlier].options.version) {
                    detail::refuse({"saga", "version"}, "is given twice");
                }
            }
        }
    }

    static constexpr bool runs_sagas = true; ///< no other handler is given a saga that has begun

    [[nodiscard]] const std::string& topic() const noexcept { return versions_.front().name; }

    [[nodiscard]] detail::saga_outcome work(delivery& d) const {
        return with_claim(d, [](auto& claim) { return claim.run(); });
    }

    /// A request to cancel that came while the saga was completing is not overlooked.
    void record(transaction& tx, const detail::saga_outcome& result) const {
        if (result.completes && tx.find(cancel_mark_of(result.origin))) {
            throw failure("cancelled");
        }
    }

    [[nodiscard]] outcome ended(delivery& d, ending why) const {
        return with_claim(d, [&](auto& claim) { return claim.end(why); });
    }

  private:
    template <class Use>
    [[nodiscard]] detail::saga_outcome with_claim(delivery& d, Use&& use) const {
        const auto& bytes = d.entry().progress;
        const bool is_new = bytes.empty();
        const auto decoded = is_new ? std::optional{saga_progress{}} : decode_progress(bytes);
        if (!decoded) {
            return look_again(d, "unreadable_progress");
        }
        if (!is_new && decoded->definition != topic()) {
            return look_again(d, "unknown_definition");
        }
        const auto* const definition = is_new ? newest() : find(decoded->version);
        if (definition == nullptr || !fits(*decoded, *definition)) {
            return look_again(d, "unknown_version");
        }
        auto progress = *decoded;
        progress.definition = definition->name;
        progress.version = definition->options.version;
        if (definition->check) {
            try {
                definition->check(d);
            } catch (const reject&) {
                if (progress.steps.empty() && d.attempt() == 1 && d.entry().lapses == 0) {
                    throw; // nothing has been done
                }
                return look_again(d, "undecodable");
            }
        }
        try {
            detail::saga_claim<Store, Rules> claim(store_, *definition, std::move(progress), d);
            return use(claim);
        } catch (const error& e) { // the store's trouble, not the step's: it costs no attempt
            return look_again(d, std::string(name_of(e.kind())));
        }
    }

    [[nodiscard]] static detail::saga_outcome look_again(delivery& d, std::string tag) {
        d.tag(std::move(tag));
        return {release{.at = later(d.now(), detail::saga_recheck_interval)}};
    }

    /// Steps that have been changed without changing the version are another version all the same.
    [[nodiscard]] static bool fits(const saga_progress& p, const saga_definition& d) noexcept {
        const bool is_at_its_end = p.at == p.steps.size() && !p.steps.empty();
        return p.steps.size() <= d.steps.size() && (!is_at_its_end || p.at == d.steps.size()) &&
               std::equal(p.steps.begin(), p.steps.end(), d.steps.begin(),
                          [](const step_record& begun, const saga_step& step) { return begun.name == step.name; });
    }

    [[nodiscard]] const saga_definition* find(std::uint32_t version) const noexcept {
        for (const auto& d : versions_) {
            if (d.options.version == version) {
                return &d;
            }
        }
        return nullptr;
    }
    [[nodiscard]] const saga_definition* newest() const noexcept {
        return &*std::max_element(versions_.begin(), versions_.end(),
                                  [](const auto& a, const auto& b) { return a.options.version < b.options.version; });
    }

    Store& store_;
    std::vector<saga_definition> versions_;
};

/// Lets the router hand entries of this saga, of any of these versions, to the engine. The store outlives the router.
template <class Store, class Rules = detail::saga_rules>
router<Store>& add_saga(router<Store>& to, Store& store, std::vector<saga_definition> versions) {
    saga<Store, Rules> handler(store, std::move(versions));
    auto topic = handler.topic();
    // Steps have policies of their own; the route's is for what goes wrong between them.
    return to.on(
        std::move(topic), std::move(handler),
        retry_policy{.backoff = exponential{.base = std::chrono::seconds{1}, .max = detail::saga_recheck_interval},
                     .attempts_max = std::numeric_limits<std::uint32_t>::max()});
}
template <class Store>
router<Store>& add_saga(router<Store>& to, Store& store, saga_definition only) {
    return add_saga(to, store, std::vector{std::move(only)});
}

} // namespace v0
} // namespace vouch
