// SPDX-License-Identifier: MIT
// The forms in which a definition accepts actions and conditions, and their conversion to `step_action` and
// `step_condition`.
#pragma once

#include <concepts>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <vouch/outbox/codec.hpp>
#include <vouch/run/delivery.hpp>
#include <vouch/saga/definition.hpp>
#include <vouch/saga/step_call.hpp>
#include <vouch/saga/step_results.hpp>

namespace vouch {
inline namespace v0 {
namespace detail {

template <class F, class Context>
concept action_of = std::invocable<F&, const Context&, step_call&> || std::invocable<F&, const Context&> ||
    std::invocable<F&, step_call&> || std::invocable<F&>;

template <class F, class Context>
concept condition_of = std::predicate<F&, const Context&, const step_results&> || std::predicate<F&, const Context&> ||
    std::predicate<F&, const step_results&>;

/// Wraps a condition of any accepted form.
template <class Context, class F>
[[nodiscard]] step_condition make_condition(F&& given) {
    static_assert(condition_of<std::decay_t<F>, Context>,
                  "vouch: a condition takes `const Context&`, then `const step_results&`, and returns a bool; either "
                  "argument may be left out");
    return [f = std::forward<F>(given)](const delivery& d, const step_results& results) mutable -> bool {
        if constexpr (std::predicate<decltype(f)&, const step_results&>) {
            return f(results);
        } else if constexpr (std::predicate<decltype(f)&, const Context&>) {
            return f(d.as<Context>());
        } else {
            return f(d.as<Context>(), results);
        }
    };
}

template <class Context, class F>
[[nodiscard]] decltype(auto) call_action(F& f, step_call& call) {
    if constexpr (std::invocable<F&, step_call&>) {
        return f(call);
    } else if constexpr (std::invocable<F&>) {
        return f();
    } else if constexpr (std::invocable<F&, const Context&>) {
        return f(call.template as<Context>());
    } else {
        return f(call.template as<Context>(), call);
    }
}

/// Wraps an action of any accepted form, and encodes its result.
template <class Context, class F>
[[nodiscard]] step_action make_action(F&& given) {
    static_assert(action_of<std::decay_t<F>, Context>,
                  "vouch: an action takes `const Context&`, then `step_call&`; either may be left out");
    return [f = std::forward<F>(given)](step_call& call) mutable -> std::string {
        using returned = std::remove_cvref_t<decltype(call_action<Context>(f, call))>;
        if constexpr (std::is_void_v<returned>) {
            call_action<Context>(f, call);
            return {};
        } else if constexpr (std::convertible_to<returned, std::string_view>) {
            return std::string(std::string_view(call_action<Context>(f, call)));
        } else {
            static_assert(encodable<returned>, "vouch: an action returns nothing, a string, or a value with a codec");
            return encode(call_action<Context>(f, call));
        }
    };
}

} // namespace detail
} // namespace v0
} // namespace vouch
