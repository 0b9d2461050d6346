// SPDX-License-Identifier: MIT
// Where a test may step in between two internal steps of the store: a seam is called after each row that was inserted,
// changed or removed, and may throw. The default does nothing and costs nothing. A seam that has `looked()` hears of
// every row a purge looks at, and one that has a static `begin_limit` says how long `begin` waits.
#pragma once

#include <string_view>

#include <vouch/version.hpp>

namespace vouch {
inline namespace v0 {
namespace memory {

struct no_seam {
    void operator()(std::string_view) const noexcept {}
};

} // namespace memory
} // namespace v0
} // namespace vouch
