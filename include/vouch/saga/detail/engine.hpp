// SPDX-License-Identifier: MIT
// The saga engine: a handler that runs one step per claim and settles it with `advance`. So a saga has the leases,
// fences, retries and dead letters of any other entry. A saga ends succeeded, tagged `completed` or `compensated`, or
// dead where a compensation is stuck; `resume` continues it from there.
//
// Any number of threads may run the engine at once, if the definitions' actions allow that.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <vouch/contract/error.hpp>
#include <vouch/contract/outcome.hpp>
#include <vouch/contract/time.hpp>
#include <vouch/contract/validate.hpp>
#include <vouch/outbox/cancel.hpp>
#include <vouch/run/delivery.hpp>
#include <vouch/run/failure.hpp>
#include <vouch/run/handler.hpp>
#include <vouch/saga/definition.hpp>
#include <vouch/saga/detail/claim.hpp>
#include <vouch/saga/detail/claim_state.hpp>
#include <vouch/saga/detail/outcome.hpp>
#include <vouch/saga/detail/rules.hpp>
#include <vouch/saga/progress.hpp>

namespace vouch {
inline namespace v0 {
namespace detail {

/// The handler of all versions of one saga.
template <class Store, class Rules = saga_rules>
class saga_engine {
  public:
    using transaction = typename Store::transaction;

    /// The store must outlive the engine. Throws `invalid_argument` for definitions that cannot be run, that have
    /// different names, or that have the same version.
    saga_engine(Store& store, std::vector<saga_definition> versions) : store_(store), versions_(std::move(versions)) {
        if (versions_.empty()) {
            refuse({"saga", "definitions"}, "are empty; give at least one");
        }
        for (std::size_t i = 0; i < versions_.size(); ++i) {
            validate(versions_[i]);
            for (std::size_t earlier = 0; earlier < i; ++earlier) {
                if (versions_[i].name != versions_[earlier].name) {
                    refuse({"saga", "definitions"}, "have different names; all must be versions of one saga");
                }
                if (versions_[i].options.version == versions_[earlier].options.version) {
                    refuse({"saga", "version"}, "is given twice");
                }
            }
        }
    }

    static constexpr bool runs_sagas = true; ///< only this handler is given sagas that have begun

    [[nodiscard]] const std::string& topic() const noexcept { return versions_.front().name; }

    [[nodiscard]] saga_outcome work(delivery& d) const {
        return with_claim(d, [](auto& claim) { return claim.run(); });
    }

    /// Sees a request to cancel that was made while the last step ran.
    void record(transaction& tx, const saga_outcome& result) const {
        if (result.completes && tx.find(cancel_mark_of(result.origin))) {
            throw failure("cancelled");
        }
    }

    [[nodiscard]] outcome ended(delivery& d, ending why) const {
        return with_claim(d, [&](auto& claim) { return claim.end(why); });
    }

  private:
    template <class Use>
    [[nodiscard]] saga_outcome with_claim(delivery& d, Use&& use) const {
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
            saga_claim<Store, Rules> claim(store_, *definition, std::move(progress), d);
            return use(claim);
        } catch (const error& e) { // the store failed, not the step: that costs no attempt
            return look_again(d, std::string(name_of(e.kind())));
        }
    }

    [[nodiscard]] static saga_outcome look_again(delivery& d, std::string tag) {
        d.tag(std::move(tag));
        return {release{.at = later(d.now(), saga_recheck_interval)}};
    }

    /// Steps that were changed without changing the version count as another version.
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

} // namespace detail
} // namespace v0
} // namespace vouch
