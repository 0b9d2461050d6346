// SPDX-License-Identifier: MIT
// Compile-time messages for authors of stores: one plain sentence for each operation that a type lacks. The templates
// of vouch that take a store check `static_assert(explain_store<S>())` first; a store's own test can do the same.
#pragma once

#include <vouch/contract/store.hpp>

namespace vouch {
inline namespace v0 {

namespace detail {

template <class R>
consteval bool explain_reader() {
    static_assert(
        requires(const R& r, const id& i) {
            { r.find(i) } -> std::same_as<std::optional<entry>>;
        },
        "vouch: a reader needs `std::optional<entry> find(const id&) const`");
    static_assert(
        requires(const R& r, const query& q) {
            { r.list(q) } -> std::same_as<std::vector<entry>>;
        },
        "vouch: a reader needs `std::vector<entry> list(const query&) const`");
    static_assert(
        requires(const R& r, std::string_view queue) {
            { r.counts(queue) } -> std::same_as<state_counts>;
        },
        "vouch: a reader needs `state_counts counts(std::string_view queue) const`");
    static_assert(
        requires(const R& r, std::string_view queue) {
            { r.next_due(queue) } -> std::same_as<std::optional<time_point>>;
        },
        "vouch: a reader needs `std::optional<time_point> next_due(std::string_view queue) const`");
    return true;
}

template <class W>
consteval bool explain_upkeep() {
    static_assert(
        requires(W & w, const id& i, time_point now) {
            { w.nudge(i, now) } -> std::same_as<verdict>;
        },
        "vouch: a writer needs `verdict nudge(const id&, time_point now)`");
    static_assert(
        requires(W & w, const id& i, std::string_view error, time_point now) {
            { w.cancel(i, error, now) } -> std::same_as<verdict>;
        },
        "vouch: a writer needs `verdict cancel(const id&, std::string_view error, time_point now)`");
    static_assert(
        requires(W & w, const purge_request& request) {
            { w.purge(request) } -> std::same_as<std::size_t>;
        },
        "vouch: a writer needs `std::size_t purge(const purge_request&)`");
    return true;
}

} // namespace detail

/// True if `W` models `writer`. Otherwise the compiler prints a sentence for each operation that is missing.
template <class W>
consteval bool explain_writer() {
    detail::explain_reader<W>();
    static_assert(
        requires(W & w, std::span<const draft> drafts, time_point now) {
            { w.enqueue(drafts, now) } -> std::same_as<std::vector<receipt>>;
        },
        "vouch: a writer needs `std::vector<receipt> enqueue(std::span<const draft>, time_point now)`");
    static_assert(
        requires(W & w, const claim_request& request) {
            { w.claim(request) } -> std::same_as<std::vector<entry>>;
        },
        "vouch: a writer needs `std::vector<entry> claim(const claim_request&)`");
    static_assert(
        requires(W & w, std::span<const settle> settles, time_point now) {
            { w.settle(settles, now) } -> std::same_as<std::vector<settlement>>;
        },
        "vouch: a writer needs `std::vector<settlement> settle(std::span<const settle>, time_point now)`");
    static_assert(
        requires(W & w, std::span<const ticket> tickets, time_point now, duration lease) {
            { w.extend(tickets, now, lease) } -> std::same_as<std::vector<verdict>>;
        },
        "vouch: a writer needs `std::vector<verdict> extend(std::span<const ticket>, time_point now, duration lease)`");
    return detail::explain_upkeep<W>();
}

/// True if `S` models `store`. Otherwise the compiler prints a sentence for each operation that is missing.
template <class S>
consteval bool explain_store() {
    detail::explain_reader<S>();
    static_assert(
        requires { typename S::transaction; }, "vouch: a store needs a member type `transaction`");
    static_assert(
        requires(S & s) {
            { s.begin() } -> std::same_as<typename S::transaction>;
        },
        "vouch: a store needs `transaction begin()`");
    static_assert(
        requires(const S& s) {
            { s.capabilities() } -> std::same_as<capabilities>;
        },
        "vouch: a store needs `vouch::capabilities capabilities() const`");
    static_assert(
        requires {
            { S::contract_level } -> std::convertible_to<int>;
        },
        "vouch: a store needs `static constexpr int contract_level`");
    if constexpr (requires { typename S::transaction; }) {
        using transaction = typename S::transaction;
        explain_writer<transaction>();
        static_assert(std::movable<transaction>, "vouch: a transaction must be movable");
        static_assert(
            requires(transaction & tx) {
                { tx.commit() } -> std::same_as<void>;
            },
            "vouch: a transaction needs `void commit()`");
    }
    return true;
}

} // namespace v0
} // namespace vouch
