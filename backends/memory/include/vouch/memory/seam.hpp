// SPDX-License-Identifier: MIT
// A seam is a function object that a test passes to the memory store. The store calls it after each row that it
// inserts, changes or removes; the seam may throw. If it has a member `looked()`, the store calls that for every row
// that a purge looks at. If a seam has a static `begin_limit`, `begin` waits at most that long. Called under the
// store's lock.
#pragma once

#include <string_view>

#include <vouch/version.hpp>

namespace vouch {
inline namespace v0 {
namespace memory {

/// The default: does nothing and costs nothing.
struct no_seam {
    void operator()(std::string_view) const noexcept {}
};

} // namespace memory
} // namespace v0
} // namespace vouch
