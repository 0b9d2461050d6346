// SPDX-License-Identifier: MIT
// A trail records what led to an entry: the ids of the emissions, from the first cause to the entry's own.
#pragma once

#include <cstddef>

#include <vouch/contract/draft.hpp>
#include <vouch/contract/id.hpp>
#include <vouch/contract/limits.hpp>

namespace vouch {
inline namespace v0 {

/// The trail `above`, extended by one emission. A trail that grows too long keeps its first id and its last 31.
[[nodiscard]] inline id_list trail_below(const id_list& above, const id& emission) {
    const auto most = limits{}.trail_max;
    id_list out;
    out.reserve(above.size() + 1);
    out.assign(above.begin(), above.end());
    out.push_back(emission);
    if (out.size() > most) {
        const auto surplus = static_cast<std::ptrdiff_t>(out.size() - most);
        out.erase(out.begin() + 1, out.begin() + 1 + surplus);
    }
    return out;
}

} // namespace v0
} // namespace vouch
