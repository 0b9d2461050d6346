// SPDX-License-Identifier: MIT
// What the tests that a failure prints are made of. Values are compared as they are shown, so that a test can be read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <vouch/conformance/detail/show.hpp>
#include <vouch/contract/draft.hpp>
#include <vouch/contract/entry.hpp>
#include <vouch/contract/error.hpp>
#include <vouch/contract/outcome.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance {

namespace detail {

inline void expect_text(const std::string& seen, std::string_view wanted) {
    if (seen != wanted) {
        throw std::logic_error("expected " + std::string(wanted) + ", seen " + seen);
    }
}

[[nodiscard]] inline id& id_in(draft& d) noexcept { return d.id; }
[[nodiscard]] inline id& id_in(ticket& t) noexcept { return t.id; }
[[nodiscard]] inline id& id_in(settle& s) noexcept { return s.ticket.id; }

} // namespace detail

/// So many bytes, no two stretches of them alike.
[[nodiscard]] inline std::string pattern(std::size_t size) {
    std::string out(size, '\0');
    std::uint32_t x = 1;
    for (auto& c : out) {
        x = x * 1664525U + 1013904223U;
        c = static_cast<char>(x >> 24U);
    }
    return out;
}

/// As many as said, each as the first, but with the next id.
template <class T>
[[nodiscard]] std::vector<T> numbered(std::size_t count, const T& first) {
    std::vector<T> out(count, first);
    for (std::size_t i = 0; i < count; ++i) {
        detail::id_in(out[i]).low += i;
    }
    return out;
}

/// As shown elsewhere, but of a long list its beginning, its end and its length.
template <class T>
[[nodiscard]] std::string show_briefly(const T& value) {
    return show(value);
}
template <class T>
[[nodiscard]] std::string show_briefly(const std::vector<T>& values) {
    constexpr std::size_t many = 20;
    if (values.size() <= many) {
        return show(values);
    }
    return "[" + show(values[0]) + ", " + show(values[1]) + ", ... " + show(values.back()) + "], " +
           std::to_string(values.size()) + " in all";
}

template <class T>
void expect(const T& seen, std::string_view wanted) {
    detail::expect_text(show_briefly(seen), wanted);
}

/// That `f` throws a `vouch::error` of this kind.
template <class F>
void expect_error(error_kind wanted, const F& f) {
    std::string seen = "no error";
    try {
        f();
    } catch (const error& e) {
        seen = show(e.kind());
    }
    detail::expect_text(seen, show(wanted));
}

/// Goes on, whether `f` throws a `vouch::error` or not.
template <class F>
void let_fail(const F& f) {
    try {
        f();
    } catch (const error&) { // NOLINT(bugprone-empty-catch): it did so when it was written down
    }
}

[[nodiscard]] inline std::vector<ticket> tickets_of(const std::vector<entry>& entries) {
    std::vector<ticket> out;
    out.reserve(entries.size());
    for (const auto& e : entries) {
        out.push_back(ticket_of(e));
    }
    return out;
}

} // namespace conformance
} // namespace v0
} // namespace vouch
