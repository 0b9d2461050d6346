// SPDX-License-Identifier: MIT
// A hook for tests of the memory store. The store calls its seam after each row that it inserts, changes or removes;
// the seam may throw. If a seam has `looked()`, the store calls it for every row that a purge looks at. If a seam has a
// static `begin_limit`, `begin` waits at most that long. Called under the store's lock.
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
