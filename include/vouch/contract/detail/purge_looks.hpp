// SPDX-License-Identifier: MIT
// How much of a queue one purge of our stores reads, so that a purge costs no more than its limit allows even if most
// ended entries are still needed.
#pragma once

#include <cstddef>

#include <vouch/version.hpp>

namespace vouch {
inline namespace v0 {
namespace detail {

/// The number of ended entries that a purge with this limit reads in each of its two parts: among the oldest, and among
/// those that earlier purges have not read.
[[nodiscard]] constexpr std::size_t purge_looks(std::size_t limit) noexcept { return 1000 + 2 * limit; }

} // namespace detail
} // namespace v0
} // namespace vouch
