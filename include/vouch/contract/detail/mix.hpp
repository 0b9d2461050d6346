// SPDX-License-Identifier: MIT
// One step of scrambling for hashes, derived ids and jitter: cheap, the same on every machine, and not a secret.
#pragma once

#include <cstdint>

#include <vouch/version.hpp>

namespace vouch {
inline namespace v0 {
namespace detail {

/// The finaliser of SplitMix64: every input bit affects every output bit.
[[nodiscard]] constexpr std::uint64_t mix(std::uint64_t x) noexcept {
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9U;
    x ^= x >> 27;
    x *= 0x94d049bb133111ebU;
    x ^= x >> 31;
    return x;
}

} // namespace detail
} // namespace v0
} // namespace vouch
