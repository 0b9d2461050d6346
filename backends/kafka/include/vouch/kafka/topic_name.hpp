// SPDX-License-Identifier: MIT
// Kafka's rule for names of topics, checked before a name reaches a broker, a shell or a log.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

#include <vouch/contract/error.hpp>

namespace vouch {
inline namespace v0 {
namespace kafka {

inline constexpr std::size_t topic_name_max = 249; ///< bytes

/// Whether Kafka accepts the name: 1 to 249 letters, digits, dots, underscores and hyphens, but not `.` or `..`.
[[nodiscard]] constexpr bool is_topic_name(std::string_view name) noexcept {
    const auto fits = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
               c == '-';
    };
    return !name.empty() && name.size() <= topic_name_max && name != "." && name != ".." &&
           std::all_of(name.begin(), name.end(), fits);
}

namespace detail {

/// Throws `invalid_argument` that names the option. The name itself is shown only if it is harmless to print.
inline void check_topic_name(std::string_view option, std::string_view name) {
    if (is_topic_name(name)) {
        return;
    }
    throw error(error_kind::invalid_argument,
                "kafka: " + std::string(option) + " has " + std::to_string(name.size()) +
                    " bytes and is no name of a Kafka topic: use 1 to 249 letters, digits, '.', '_' and '-', and not "
                    "'.' or '..'");
}

} // namespace detail

} // namespace kafka
} // namespace v0
} // namespace vouch
