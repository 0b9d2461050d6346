// SPDX-License-Identifier: MIT
// A trail tells how work came about: the ids of the emissions that led to an entry, outermost first, its own last.
#pragma once

#include <cstddef>

#include <vouch/contract/draft.hpp>
#include <vouch/contract/id.hpp>
#include <vouch/contract/limits.hpp>

namespace vouch {
inline namespace v0 {

/// The trail below `above`, one emission further. A trail that grows too long keeps its first id, where everything
/// began, and its last 31.
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
