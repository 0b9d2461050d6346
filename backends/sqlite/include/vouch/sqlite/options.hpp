// SPDX-License-Identifier: MIT
// How a store uses its file.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

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
    std::chrono::milliseconds busy_limit{10'000}; ///< how long to wait for other writers before `busy`
    std::chrono::milliseconds watch_every{20};    ///< how often `wait` looks for commits of other processes
    std::string vfs{};                            ///< empty: SQLite's default
};

} // namespace sqlite
} // namespace v0
} // namespace vouch
