// SPDX-License-Identifier: MIT
// Validation of a store's options.
#pragma once

#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>

#include <vouch/contract/error.hpp>
#include <vouch/contract/limits.hpp>
#include <vouch/sqlite/options.hpp>

namespace vouch {
inline namespace v0 {
namespace sqlite::detail {

/// Throws `invalid_argument` if a duration is too short. Cuts longer ones to a year, so that adding them to the current
/// time cannot overflow.
[[nodiscard]] inline options checked(options how) {
    using std::chrono::milliseconds;
    const auto check = [](milliseconds& value, milliseconds least, std::string_view name) {
        if (value < least) {
            throw error(error_kind::invalid_argument, "sqlite: options: " + std::string(name) + " is " +
                                                          std::to_string(value.count()) + " ms; it must be at least " +
                                                          std::to_string(least.count()) + " ms");
        }
        value = std::min(value, std::chrono::duration_cast<milliseconds>(limits{}.lease_max));
    };
    check(how.busy_limit, milliseconds{0}, "busy_limit");
    check(how.watch_every, milliseconds{1}, "watch_every");
    return how;
}

} // namespace sqlite::detail
} // namespace v0
} // namespace vouch
