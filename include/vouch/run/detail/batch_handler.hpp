// SPDX-License-Identifier: MIT
// Brings every form of a batch handler to the one that a router keeps. A single entry of a batch route is a batch of one.
#pragma once

#include <concepts>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <vouch/contract/detail/field_checks.hpp>
#include <vouch/contract/id.hpp>
#include <vouch/contract/outcome.hpp>
#include <vouch/contract/time.hpp>
#include <vouch/outbox/tracking.hpp>
#include <vouch/run/batch_options.hpp>
#include <vouch/run/delivery.hpp>
#include <vouch/run/delivery_batch.hpp>
#include <vouch/run/detail/handler.hpp>
#include <vouch/run/failure.hpp>

namespace vouch {
inline namespace v0 {
namespace detail {

/// The error of entries whose handler returned more or fewer outcomes than it got entries.
inline constexpr std::string_view wrong_outcome_count = "wrong_outcome_count";

/// The retry of a batch handler that leaves its time to the policy, as an exception of a single handler does.
[[nodiscard]] inline const retry* retry_by_policy(const outcome& o) noexcept {
    const auto* const again = std::get_if<retry>(&o);
    return again != nullptr && again->at == time_point{} ? again : nullptr;
}

/// Throws `invalid_argument` for options that no batch can have. `wait_max` is the store's longest lease.
inline void check_batch_options(const batch_options& how, duration wait_max) {
    if (how.size_max == 0) {
        refuse({"on_batch", "size_max"}, "is 0; it must be at least 1");
    }
    if (how.wait < duration::zero() || how.wait > wait_max) {
        refuse({"on_batch", "wait"}, "is " + std::to_string(how.wait.count()) + " us; it must be between 0 and " +
                                         std::to_string(wait_max.count()) + " us, the longest lease");
    }
}

template <class F>
[[nodiscard]] std::vector<outcome> run_batch(F& f, delivery_batch& all) {
    static_assert(std::invocable<F&, delivery_batch&>, "vouch: a batch handler takes `delivery_batch&`");
    using returned = decltype(f(all));
    if constexpr (std::is_void_v<returned>) {
        f(all);
        return std::vector<outcome>(all.size());
    } else {
        static_assert(std::convertible_to<returned, std::vector<outcome>>,
                      "vouch: a batch handler returns nothing or a `std::vector<vouch::outcome>`");
        return f(all);
    }
}

/// Calls `work` for one entry. What differs from a single handler becomes an exception, as a single handler throws it.
template <class Work>
[[nodiscard]] outcome run_batch_of_one(Work& work, delivery& d) {
    delivery* const only = &d;
    delivery_batch one(&only, 1, d.stop());
    const id_list no_trail;
    const trail_scope scope(no_trail);
    auto outcomes = work(one);
    if (outcomes.size() != 1) {
        throw failure(std::string(wrong_outcome_count));
    }
    if (const auto* const again = retry_by_policy(outcomes.front())) {
        throw failure(again->error);
    }
    return std::move(outcomes.front());
}

template <class Transaction, class H>
[[nodiscard]] handler<Transaction> make_batch_handler(H&& given, const batch_options& how) {
    using type = std::decay_t<H>;
    static_assert(!has_record<type>,
                  "vouch: a batch handler has no `record`; register a handler with `record` by on()");
    auto h = std::make_shared<type>(std::forward<H>(given));
    const auto work = [h](delivery_batch& all) {
        if constexpr (has_work<type>) {
            auto member = [&](delivery_batch& of) -> decltype(h->work(of)) { return h->work(of); };
            return run_batch(member, all);
        } else {
            return run_batch(*h, all);
        }
    };
    handler<Transaction> out;
    out.batch = how;
    out.work_together = work;
    out.work = [work](delivery& d) -> work_result<Transaction> { return {.outcome = run_batch_of_one(work, d)}; };
    add_ended(out, h);
    return out;
}

} // namespace detail
} // namespace v0
} // namespace vouch
