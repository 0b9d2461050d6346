// SPDX-License-Identifier: MIT
// Calls a batch handler once for several claimed entries and turns the call into one outcome per entry, by the rules of
// the dispatcher. Entries that are expired or exhausted do not reach the handler. The order of one call is: `started` of
// each entry, the handler, then the end of each entry, `ended` included; each in the order of the entries.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <vouch/contract/entry.hpp>
#include <vouch/contract/id.hpp>
#include <vouch/contract/outcome.hpp>
#include <vouch/outbox/tracking.hpp>
#include <vouch/run/delivery.hpp>
#include <vouch/run/delivery_batch.hpp>
#include <vouch/run/detail/batch_handler.hpp>
#include <vouch/run/detail/caught_exception.hpp>
#include <vouch/run/detail/completion.hpp>
#include <vouch/run/detail/dispatcher.hpp>

namespace vouch {
inline namespace v0 {
namespace detail {

/// An entry of a batch, with the stop that is requested when its claim is lost. A template, because a header that names a
/// vector of it would otherwise instantiate that vector in every program.
template <class Store>
struct claimed_entry {
    vouch::entry entry{};
    std::stop_token stop{};
};

template <class Store>
class batch_dispatcher {
  public:
    /// `rules` must outlive this.
    explicit batch_dispatcher(const dispatcher<Store>& rules) : rules_(rules) {}

    /// All entries have the same batch route, and there is at least one. `started` is called with the completion of each
    /// entry that reaches the handler, right before the handler.
    template <class Started>
    [[nodiscard]] std::vector<completion<Store>> operator()(std::vector<claimed_entry<Store>> claimed,
                                                            const std::stop_token& stop, Started&& started) const {
        const auto& route = *rules_.route_of(claimed.front().entry);
        const auto now = rules_.emitter_.now();
        std::vector<completion<Store>> done(claimed.size()); // never resized: deliveries refer to its entries
        std::vector<part> parts(claimed.size());
        for (std::size_t i = 0; i < claimed.size(); ++i) {
            done[i].entry = std::move(claimed[i].entry);
            parts[i].with = std::make_unique<delivery_type>(done[i].entry, rules_.emitter_, now, claimed[i].stop);
            parts[i].spent = rules_.spent_before(done[i].entry, route, now);
            parts[i].is_called = !parts[i].spent;
        }
        work(done, parts, route, stop, started);
        for (std::size_t i = 0; i < claimed.size(); ++i) {
            if (parts[i].spent) {
                rules_.keep_text(done[i], *parts[i].with);
                rules_.end(done[i], route, *parts[i].spent, std::move(claimed[i].stop));
            } else {
                rules_.finish(done[i], route, *parts[i].with);
            }
        }
        return done;
    }

  private:
    using delivery_type = typename dispatcher<Store>::delivery_type;
    using route_type = typename dispatcher<Store>::route_type;
    using spending = typename dispatcher<Store>::spending;

    struct part {
        std::unique_ptr<delivery_type> with{};
        std::optional<spending> spent{};
        bool is_called = false;
    };

    /// Calls the handler, and sets the outcome of each entry that reaches it.
    template <class Started>
    void work(std::vector<completion<Store>>& done, std::vector<part>& parts, const route_type& route,
              const std::stop_token& stop, Started&& started) const {
        std::vector<delivery_type*> called;
        for (std::size_t i = 0; i < parts.size(); ++i) {
            if (parts[i].is_called) {
                called.push_back(parts[i].with.get());
                started(done[i]);
            }
        }
        if (called.empty()) {
            return;
        }
        std::vector<outcome> outcomes;
        const auto failed = call(outcomes, called, route, stop);
        std::size_t next = 0;
        for (std::size_t i = 0; i < parts.size(); ++i) {
            if (parts[i].is_called) {
                parts[i].spent =
                    failed ? rules_.fail(done[i], route, *failed) : take(done[i], route, std::move(outcomes[next++]));
            }
        }
    }

    /// Returns how the whole call has failed, if it has.
    [[nodiscard]] static std::optional<caught_exception> call(std::vector<outcome>& outcomes,
                                                              const std::vector<delivery_type*>& called,
                                                              const route_type& route, const std::stop_token& stop) {
        delivery_batch all(called.data(), called.size(), stop);
        const id_list no_trail;
        const trail_scope scope(no_trail); // what the handler emits through an outbox continues no entry's trail
        try {
            outcomes = route.handler.work_together(all);
        } catch (...) {
            return caught_exception::current();
        }
        if (outcomes.size() == called.size()) {
            return std::nullopt;
        }
        return caught_exception{.code = std::string(wrong_outcome_count),
                                .text = std::to_string(outcomes.size()) + " outcomes for " +
                                        std::to_string(called.size()) + " entries"};
    }

    [[nodiscard]] std::optional<spending> take(completion<Store>& h, const route_type& route, outcome o) const {
        if (const auto* const again = retry_by_policy(o)) {
            return rules_.fail(h, route, {.code = error_code(again->error)});
        }
        h.outcome = std::move(o);
        return rules_.spent_after(h, route);
    }

    const dispatcher<Store>& rules_;
};

} // namespace detail
} // namespace v0
} // namespace vouch
