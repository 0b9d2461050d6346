// SPDX-License-Identifier: MIT
// Every bound of the contract, by name. A store may raise `payload_max`, `result_max` and `progress_max` in its
// capabilities; it must not lower any. A call that exceeds a bound throws `invalid_argument`.
#pragma once

#include <cstddef>

#include <vouch/contract/time.hpp>

namespace vouch {
inline namespace v0 {

/// The defaults are the bounds that every store accepts.
struct limits {
    std::size_t name_max = 255;             ///< bytes of a queue, topic, key, group, lane, worker or header name
    std::size_t error_max = 100;            ///< bytes of an error code
    std::size_t payload_max = 1024 * 1024;  ///< bytes of a payload
    std::size_t result_max = 1024 * 1024;   ///< bytes of a result
    std::size_t progress_max = 1024 * 1024; ///< bytes of a checkpoint
    std::size_t trail_max = 32;             ///< ids in a trail
    std::size_t headers_max = 64;           ///< headers in a draft
    std::size_t header_value_max = 4096;    ///< bytes of a header's value
    std::size_t batch_max = 10'000;         ///< items in one call, and the largest `limit` of a claim, list or purge
    duration lease_min{1};                  ///< the shortest lease
    duration lease_max = std::chrono::hours{24 * 366}; ///< the longest lease

    [[nodiscard]] friend constexpr bool operator==(const limits&, const limits&) noexcept = default;
};

} // namespace v0
} // namespace vouch
