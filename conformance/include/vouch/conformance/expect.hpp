// SPDX-License-Identifier: MIT
// The expectations in the tests that the suite prints for a failure. Values are compared in their printed form, so that
// a person can read the test. An expectation that is not met throws `std::logic_error`.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include <vouch/conformance/detail/show.hpp>
#include <vouch/conformance/values.hpp> // IWYU pragma: export
#include <vouch/contract/error.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance {

namespace detail {

inline void expect_text(const std::string& seen, std::string_view wanted) {
    if (seen != wanted) {
        throw std::logic_error("expected " + std::string(wanted) + ", seen " + seen);
    }
}

} // namespace detail

/// Requires that `seen` prints as `wanted`.
template <class T>
void expect(const T& seen, std::string_view wanted) {
    detail::expect_text(detail::show_briefly(seen), wanted);
}

/// Requires that `f` throws a `vouch::error` of this kind.
template <class F>
void expect_error(error_kind wanted, const F& f) {
    std::string seen = "no error";
    try {
        f();
    } catch (const error& e) {
        seen = detail::show(e.kind());
    }
    detail::expect_text(seen, detail::show(wanted));
}

/// Requires that `f` throws no `vouch::error`.
template <class F>
void expect_no_error(const F& f) {
    try {
        f();
    } catch (const error& e) {
        detail::expect_text(detail::show(e.kind()), "no error");
    }
}

/// Calls `f` and ignores a `vouch::error`.
template <class F>
void let_fail(const F& f) {
    try {
        f();
    } catch (const error&) { // NOLINT(bugprone-empty-catch): the printed test marks a call that may fail
    }
}

} // namespace conformance
} // namespace v0
} // namespace vouch
