// SPDX-License-Identifier: MIT
// A look at how deep a queue is: what is stored, what is late, what is stuck, which sagas are under way. It reads
// entries page by page, without payloads, up to a limit, and says what it has not seen.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <vouch/contract/query.hpp>
#include <vouch/contract/state.hpp>
#include <vouch/contract/time.hpp>

namespace vouch {
inline namespace v0 {

struct look_options {
    duration stuck_after = std::chrono::minutes{5}; ///< an entry that is due and has not moved for so long is stuck
    std::size_t entries_max = 10'000;               ///< live entries looked at, oldest first; 0: only what is counted
    std::vector<std::string> saga_topics{};         ///< whose live entries are sagas under way
};

namespace detail {

struct depth {
    state_counts counts{};
    duration overdue{}; ///< for how long the next entry has been due
    std::size_t stuck = 0;
    std::map<std::string, std::size_t> sagas{}; ///< under way, by topic
    std::size_t unseen = 0;                     ///< live entries past the limit
};

template <class Reader>
[[nodiscard]] depth depth_of(const Reader& store, std::string_view queue, time_point now, const look_options& how) {
    constexpr std::size_t page_size = 1000;
    depth out{.counts = store.counts(queue)};
    if (const auto next = store.next_due(queue); next && *next < now) {
        out.overdue = now - *next;
    }
    for (const auto& topic : how.saga_topics) {
        out.sagas[topic] = 0;
    }
    const auto since = later(now, -how.stuck_after);
    auto page = query::live(std::string(queue));
    for (auto left = how.entries_max;;) {
        page.limit = std::min(left, page_size);
        const auto found = store.list(page);
        for (const auto& e : found) {
            out.stuck += e.updated_at < since && (e.lease_until ? *e.lease_until : e.due_at) < since ? 1U : 0U;
            if (const auto saga = out.sagas.find(e.topic); saga != out.sagas.end()) {
                saga->second += 1;
            }
        }
        left -= found.size();
        if (found.size() < page.limit) {
            return out;
        }
        if (left == 0) {
            out.unseen = out.counts.live() - std::min<std::size_t>(out.counts.live(), how.entries_max);
            return out;
        }
        page.after = found.back().sequence;
    }
}

} // namespace detail
} // namespace v0
} // namespace vouch
