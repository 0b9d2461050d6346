// SPDX-License-Identifier: MIT
// What a transaction remembers between calls.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include <vouch/version.hpp>

namespace vouch {
inline namespace v0 {
namespace postgres::detail {

struct session {
    std::uint64_t transaction_number = 0; ///< the server's; 0 until something was written
    std::set<std::string> woken_queues{}; ///< queues in which work may be due sooner

    void wake(const std::string& queue) { woken_queues.insert(queue); }
};

} // namespace postgres::detail
} // namespace v0
} // namespace vouch
