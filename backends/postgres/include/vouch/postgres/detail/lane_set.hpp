// SPDX-License-Identifier: MIT
// Lanes, sorted, as the parameters of statements. All transactions lock lanes in this order.
#pragma once

#include <set>
#include <string>
#include <utility>

#include <vouch/postgres/detail/parameters.hpp>

namespace vouch {
inline namespace v0 {
namespace postgres::detail {

/// Pairs of queue and lane.
using lane_set = std::set<std::pair<std::string, std::string>>;

[[nodiscard]] inline parameters parameters_of(const lane_set& lanes) {
    array queues(pg_type::text);
    array names(pg_type::text);
    for (const auto& [queue, lane] : lanes) {
        queues.add(queue);
        names.add(lane);
    }
    return parameters(queues, names);
}

} // namespace postgres::detail
} // namespace v0
} // namespace vouch
