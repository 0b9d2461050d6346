// SPDX-License-Identifier: MIT
// How a store uses its file.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include <vouch/sqlite/prefix.hpp>

namespace vouch {
inline namespace v0 {
namespace sqlite {

/// What a commit waits for, on connections that the store opens.
enum class synchronous : std::uint8_t {
    full,   ///< the disk: a committed transaction survives a power failure
    normal, ///< the operating system: many times faster. A power failure may undo the newest commits, in order and
            ///< whole: an entry that `enqueue` reported as stored may be gone, and a settled entry may run again. A
            ///< crash of the process loses nothing. The file is never damaged.
};

/// Every member has a usable default.
struct options {
    std::string prefix{default_prefix}; ///< of every table and index
    bool create = true; ///< create or migrate the file and the tables; false: they must exist, in this version
    sqlite::synchronous synchronous = sqlite::synchronous::full;
    /// How long `begin` waits for other writers, in this process and in others, before it throws `busy`. Not negative.
    std::chrono::milliseconds busy_limit{10'000};
    /// How often `wait` looks for commits of other processes, at least 1 ms. Where the system tells of them (Linux), it
    /// hears of them at once and looks fifty times more rarely.
    std::chrono::milliseconds watch_every{20};
    std::string vfs{}; ///< the name of a registered SQLite VFS; empty: SQLite's default
};

} // namespace sqlite
} // namespace v0
} // namespace vouch
