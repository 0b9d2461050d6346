// SPDX-License-Identifier: MIT
// The forms a handler may have, brought to one.
//
//   [](delivery&) { ... }                       done when it returns
//   [](delivery&) { return value; }             done, with a result (anything with a codec)
//   [](delivery&) -> outcome { ... }            says itself what became of it: succeed, retry, bury, release, advance
//   [](const user&, delivery&) { ... }          typed payload: `on<user>(pattern, handler)`; the delivery may be left out
//   struct { R work(delivery&);                 outside any transaction: calls, computes
//            void record(transaction&, const R&); }  inside the settling transaction: short, no I/O but the store's
//   struct { ...; outcome ended(delivery&, ending); }  called instead of burying when time or attempts have run out
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vouch/contract/outcome.hpp>
#include <vouch/outbox/codec.hpp>
#include <vouch/run/delivery.hpp>

namespace vouch {
inline namespace v0 {

/// Why an entry that nobody rejected is about to be buried.
enum class ending : std::uint8_t { expired, exhausted };

/// What a handler's work came to: an outcome, and what is to be recorded with it in the settling transaction.
template <class Transaction>
struct worked {
    vouch::outcome outcome{};
    std::function<void(Transaction&)> record{};
};

template <class Transaction>
struct handler {
    std::function<worked<Transaction>(delivery&)> work;
    std::function<outcome(delivery&, ending)> ended; ///< empty: bury
};

namespace detail {

template <class R>
[[nodiscard]] outcome outcome_of(R&& returned) {
    using value = std::remove_cvref_t<R>;
    if constexpr (std::constructible_from<outcome, R>) {
        return outcome(std::forward<R>(returned));
    } else if constexpr (std::convertible_to<R, std::string>) {
        return succeed{.result = std::string(std::forward<R>(returned))};
    } else if constexpr (encodable<value>) {
        return succeed{.result = encode(returned)};
    } else {
        return succeed{};
    }
}

/// Calls a handler with what it takes: the decoded payload (unless `T` is void) and the delivery, if it wants it.
template <class T, class F>
decltype(auto) call(F& f, delivery& d) {
    if constexpr (std::is_void_v<T>) {
        if constexpr (std::invocable<F&, delivery&>) {
            return f(d);
        } else {
            return f();
        }
    } else if constexpr (std::invocable<F&, const T&, delivery&>) {
        return f(static_cast<const T&>(d.as<T>()), d);
    } else {
        return f(static_cast<const T&>(d.as<T>()));
    }
}

template <class Transaction, class T, class F>
[[nodiscard]] worked<Transaction> work_plain(F& f, delivery& d) {
    if constexpr (std::is_void_v<decltype(call<T>(f, d))>) {
        call<T>(f, d);
        return {.outcome = succeed{}};
    } else {
        auto returned = call<T>(f, d);
        static_assert(std::constructible_from<outcome, decltype(returned)> ||
                          std::convertible_to<decltype(returned), std::string> || encodable<decltype(returned)>,
                      "vouch: a handler returns nothing, an outcome, or a value with a codec");
        return {.outcome = outcome_of(std::move(returned))};
    }
}

template <class Transaction, class H>
[[nodiscard]] worked<Transaction> work_and_record(const std::shared_ptr<H>& h, delivery& d) {
    if constexpr (std::is_void_v<decltype(h->work(d))>) {
        h->work(d);
        return {.outcome = succeed{}, .record = [h](Transaction& tx) { h->record(tx); }};
    } else {
        auto returned = std::make_shared<decltype(h->work(d))>(h->work(d));
        auto became = outcome_of(std::as_const(*returned));
        return {.outcome = std::move(became),
                .record = [h, returned](Transaction& tx) { h->record(tx, std::as_const(*returned)); }};
    }
}

} // namespace detail

/// Brings any of the forms above to the one a router keeps. `T` is the payload's type, void for none.
template <class Transaction, class T = void, class H>
[[nodiscard]] handler<Transaction> make_handler(H&& given) {
    using type = std::decay_t<H>;
    auto h = std::make_shared<type>(std::forward<H>(given));
    handler<Transaction> out;
    if constexpr (requires(delivery& d) { h->work(d); }) {
        if constexpr (requires(delivery& d, Transaction& tx) { h->record(tx, h->work(d)); } ||
                      requires(Transaction& tx) { h->record(tx); }) {
            out.work = [h](delivery& d) { return detail::work_and_record<Transaction>(h, d); };
        } else {
            auto work = [h](delivery& d) { return h->work(d); };
            out.work = [work](delivery& d) { return detail::work_plain<Transaction, void>(work, d); };
        }
    } else {
        out.work = [h](delivery& d) { return detail::work_plain<Transaction, T>(*h, d); };
    }
    if constexpr (requires(delivery& d) {
                      { h->ended(d, ending::expired) } -> std::convertible_to<outcome>;
                  }) {
        out.ended = [h](delivery& d, ending why) -> outcome { return h->ended(d, why); };
    }
    return out;
}

} // namespace v0
} // namespace vouch
