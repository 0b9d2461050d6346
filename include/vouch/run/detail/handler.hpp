// SPDX-License-Identifier: MIT
// Brings every form of a handler to the one that a router keeps.
#pragma once

#include <concepts>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <vouch/contract/outcome.hpp>
#include <vouch/outbox/codec.hpp>
#include <vouch/run/batch_options.hpp>
#include <vouch/run/delivery.hpp>
#include <vouch/run/handler.hpp>

namespace vouch {
inline namespace v0 {

class delivery_batch;

namespace detail {

/// The outcome of a handler's work, and what to record with it in the settling transaction.
template <class Transaction>
struct work_result {
    vouch::outcome outcome{};
    std::function<void(Transaction&)> record{};
};

template <class Transaction>
struct handler {
    std::function<work_result<Transaction>(delivery&)> work;
    std::function<outcome(delivery&, ending)> ended; ///< empty: bury
    /// Decides instead of every burial, for handlers that owe an answer even for a dead entry; empty: bury.
    std::function<outcome(delivery&, const bury&)> buried;
    bool runs_sagas = false; ///< its entries have a saga's progress
    /// Set for batch handlers only; their `work` is a batch of one.
    std::function<std::vector<outcome>(delivery_batch&)> work_together;
    batch_options batch{};
};

template <class R>
concept returnable = std::constructible_from<outcome, R> || std::convertible_to<R, std::string_view> ||
    encodable<std::remove_cvref_t<R>>;

template <class R>
[[nodiscard]] outcome outcome_of(R&& returned) {
    if constexpr (std::constructible_from<outcome, R>) {
        return outcome(std::forward<R>(returned));
    } else if constexpr (std::convertible_to<R, std::string_view>) {
        return succeed{.result = std::string(std::string_view(returned))};
    } else if constexpr (encodable<std::remove_cvref_t<R>>) {
        return succeed{.result = encode(returned)};
    } else {
        return succeed{};
    }
}

/// Calls `f` with the arguments it takes: the payload (unless `T` is void) and the delivery.
template <class T, class F, class Body>
decltype(auto) call(F& f, const Body& body, delivery& d) {
    if constexpr (std::is_void_v<T>) {
        static_assert(
            std::invocable<F&, delivery&> || std::invocable<F&>,
            "vouch: a handler takes `delivery&` or nothing; with on<T>() it takes `const T&`, then `delivery&`");
        if constexpr (std::invocable<F&, delivery&>) {
            return f(d);
        } else {
            return f();
        }
    } else {
        static_assert(std::invocable<F&, const T&, delivery&> || std::invocable<F&, const T&>,
                      "vouch: a handler of on<T>() takes `const T&`, or `const T&` and then `delivery&`");
        if constexpr (std::invocable<F&, const T&, delivery&>) {
            return f(body, d);
        } else {
            return f(body);
        }
    }
}

struct no_body {};

/// The decoded payload. It outlives the call, because the handler's result may refer to it.
template <class T>
[[nodiscard]] auto body_of(const delivery& d) {
    if constexpr (std::is_void_v<T>) {
        return no_body{};
    } else {
        return d.as<T>();
    }
}

template <class Transaction, class T, class F>
[[nodiscard]] work_result<Transaction> run_work(F& f, delivery& d) {
    const auto body = body_of<T>(d);
    using returned = decltype(call<T>(f, body, d));
    if constexpr (std::is_void_v<returned>) {
        call<T>(f, body, d);
        return {.outcome = succeed{}};
    } else {
        static_assert(returnable<returned>,
                      "vouch: a handler returns nothing, an outcome, a string, or a value with a vouch::codec");
        return {.outcome = outcome_of(call<T>(f, body, d))};
    }
}

/// Keeps what `work` returns for `record`.
template <class Transaction, class T, class H, class F>
[[nodiscard]] work_result<Transaction> run_work_and_record(const std::shared_ptr<H>& h, F& work, delivery& d) {
    const auto body = body_of<T>(d);
    using returned = decltype(call<T>(work, body, d));
    if constexpr (std::is_void_v<returned>) {
        call<T>(work, body, d);
        static_assert(
            requires(Transaction & tx) { h->record(tx); },
            "vouch: the `record` of a `work` that returns nothing must be public and take `transaction&`");
        return {.outcome = succeed{}, .record = [h](Transaction& tx) { h->record(tx); }};
    } else {
        using kept = std::remove_cvref_t<returned>;
        const auto value = std::make_shared<const kept>(call<T>(work, body, d));
        if constexpr (requires(Transaction & tx) { h->record(tx, *value); }) {
            return {.outcome = outcome_of(*value), .record = [h, value](Transaction& tx) { h->record(tx, *value); }};
        } else {
            static_assert(
                requires(Transaction & tx) { h->record(tx); },
                "vouch: `record` must be public and take `transaction&`, "
                "optionally followed by the result of `work` as `const R&`");
            return {.outcome = outcome_of(*value), .record = [h](Transaction& tx) { h->record(tx); }};
        }
    }
}

// Whether a handler has a member of a given name, even if it is a template, overloaded or private: such a member makes
// the name ambiguous in a class that inherits it twice. (Final classes cannot be inherited from: there `&H::name` must
// find the member.)
struct names {
    int work;
    int record;
    int ended;
};
template <class H>
struct with_names : H, names {};
template <class H>
concept inheritable = std::is_class_v<H> && !std::is_final_v<H>;

template <class H>
concept has_work = (inheritable<H> && !requires { &with_names<H>::work; }) || requires {
    &H::work;
};
template <class H>
concept has_record = (inheritable<H> && !requires { &with_names<H>::record; }) || requires {
    &H::record;
};
template <class H>
concept has_ended = (inheritable<H> && !requires { &with_names<H>::ended; }) || requires {
    &H::ended;
};

template <class Transaction, class H>
void add_ended(handler<Transaction>& to, const std::shared_ptr<H>& h) {
    if constexpr (has_ended<H>) {
        static_assert(
            requires(delivery & d) {
                { h->ended(d, ending::expired) } -> std::convertible_to<outcome>;
            },
            "vouch: `ended` must be a public `outcome ended(delivery&, ending)`");
        to.ended = [h](delivery& d, ending why) -> outcome { return h->ended(d, why); };
    }
}

/// Brings any form of a handler to the one a router keeps. `T` is the payload's type, void for none.
template <class Transaction, class T = void, class H>
[[nodiscard]] handler<Transaction> make_handler(H&& given) {
    using type = std::decay_t<H>;
    auto h = std::make_shared<type>(std::forward<H>(given));
    handler<Transaction> out;
    if constexpr (has_work<type>) {
        auto work = [h](auto&&... args) -> decltype(h->work(std::forward<decltype(args)>(args)...)) {
            return h->work(std::forward<decltype(args)>(args)...);
        };
        if constexpr (has_record<type>) {
            out.work = [h, work](delivery& d) { return run_work_and_record<Transaction, T>(h, work, d); };
        } else {
            out.work = [work](delivery& d) { return run_work<Transaction, T>(work, d); };
        }
    } else {
        static_assert(!has_record<type>, "vouch: a handler with `record` must have `work` too");
        out.work = [h](delivery& d) { return run_work<Transaction, T>(*h, d); };
    }
    add_ended(out, h);
    if constexpr (requires { type::answers_burials; }) {
        out.buried = [h](delivery& d, const bury& dead) -> outcome { return h->buried(d, dead); };
    }
    if constexpr (requires { type::runs_sagas; }) {
        out.runs_sagas = type::runs_sagas;
    }
    return out;
}

} // namespace detail
} // namespace v0
} // namespace vouch
