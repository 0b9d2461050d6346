// SPDX-License-Identifier: MIT
// Random numbers that are the same on every machine. (RapidCheck's own ranges depend on its size parameter.)
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include <vouch/contract/id.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::detail {

/// A SplitMix64 generator.
class random_source {
  public:
    explicit random_source(std::uint64_t seed) : state_(vouch::detail::mix(seed)) {}

    std::uint64_t roll() { return vouch::detail::mix(state_ += 0x9e3779b97f4a7c15U); }
    std::size_t below(std::size_t n) { return static_cast<std::size_t>(roll() % n); }
    bool chance(std::size_t percent) { return below(100) < percent; }
    template <class T>
    T one_of(std::initializer_list<T> values) {
        return values.begin()[below(values.size())];
    }

  private:
    std::uint64_t state_;
};

} // namespace conformance::detail
} // namespace v0
} // namespace vouch
