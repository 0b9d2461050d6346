// SPDX-License-Identifier: MIT
// Every bound of the contract, by name. A store may raise `payload_max`, `result_max` and `progress_max` in its
// capabilities; it never lowers any.
#pragma once

#include <cstddef>

#include <vouch/contract/time.hpp>

namespace vouch {
inline namespace v0 {

struct limits {
    std::size_t name_max = 255;             ///< bytes of a queue, topic, key, group, lane, worker or header name
    std::size_t error_max = 100;            ///< bytes of an error code
    std::size_t payload_max = 1024 * 1024;  ///< bytes of a payload
    std::size_t result_max = 1024 * 1024;   ///< bytes of a result
    std::size_t progress_max = 1024 * 1024; ///< bytes of a progress
    std::size_t trail_max = 32;             ///< ids of a trail
    std::size_t headers_max = 64;           ///< headers of a draft
    std::size_t header_value_max = 4096;    ///< bytes of one header's value
    std::size_t batch_max = 10'000;         ///< items of one call, and the largest `limit` of a claim, list or purge
    duration lease_min{1};                  ///< the shortest lease
    duration lease_max = std::chrono::hours{24 * 366}; ///< the longest lease

    [[nodiscard]] friend constexpr bool operator==(const limits&, const limits&) noexcept = default;
};

} // namespace v0
} // namespace vouch
