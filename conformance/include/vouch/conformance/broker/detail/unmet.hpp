// SPDX-License-Identifier: MIT
// How a clause fails: by an exception that says what was expected and what was seen.
#pragma once

#include <string>
#include <utility>

#include <vouch/version.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::broker::detail {

struct unmet {
    std::string what{};
    std::string expected{};
    std::string seen{};
};

inline void expect(bool holds, std::string what, std::string expected, std::string seen) {
    if (!holds) {
        throw unmet{std::move(what), std::move(expected), std::move(seen)};
    }
}

inline void expect_equal(std::string what, const std::string& expected, const std::string& seen) {
    expect(expected == seen, std::move(what), expected, seen);
}

} // namespace conformance::broker::detail
} // namespace v0
} // namespace vouch
