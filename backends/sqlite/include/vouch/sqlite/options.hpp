// SPDX-License-Identifier: MIT
// How a store uses its file.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include <vouch/contract/error.hpp>
#include <vouch/contract/limits.hpp>
#include <vouch/sqlite/schema.hpp>

namespace vouch {
inline namespace v0 {
namespace sqlite {

/// What a commit waits for, on connections the store opens.
enum class synchronous : std::uint8_t {
    full,   ///< the disk: a committed transaction survives the loss of power
    normal, ///< the operating system: many times faster; the loss of power may undo the newest commits, in order and
            ///< whole, so an enqueue somebody was told of may be gone and a settled entry may run again. A crash of the
            ///< process loses nothing, and the file stays sound in any case.
};

struct options {
    std::string prefix{default_prefix}; ///< of every table and index
    bool create = true;                 ///< create or migrate the tables; false: they must be there, in this version
    sqlite::synchronous synchronous = sqlite::synchronous::full;
    /// How long to wait for other writers, of this process and of others, before `busy`. Not negative.
    std::chrono::milliseconds busy_limit{10'000};
    /// How often `wait` looks for commits of other processes. At least 1 ms.
    std::chrono::milliseconds watch_every{20};
    std::string vfs{}; ///< empty: SQLite's default
};

namespace detail {

/// The options, with durations that can be added to any present time: a wait longer than a year is one of a year.
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

} // namespace detail

} // namespace sqlite
} // namespace v0
} // namespace vouch
