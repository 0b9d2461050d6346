// SPDX-License-Identifier: MIT
// What a transaction remembers between calls.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include <vouch/contract/time.hpp>

namespace vouch {
inline namespace v0 {
namespace postgres::detail {

struct session {
    std::uint64_t transaction_number = 0;                          ///< the server's; 0 until something was written
    std::map<std::string, time_point, std::less<>> woken_queues{}; ///< in which work may be due sooner; the lowest gate
    bool has_plain_settles = false; ///< whether those of the last settle were successes that reach no other entry

    void wake(const std::string& queue, time_point gate) {
        const auto [at, is_new] = woken_queues.emplace(queue, gate);
        at->second = std::min(at->second, gate);
    }
};

} // namespace postgres::detail
} // namespace v0
} // namespace vouch
