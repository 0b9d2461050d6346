// SPDX-License-Identifier: MIT
// The depth of a queue at one moment: entries by state, how late the next one is, how many are stuck, which sagas are
// running. `depth_of` reads live entries page by page, without payloads, up to a limit, and counts those past the
// limit.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <vouch/contract/entry.hpp>
#include <vouch/contract/is_saga.hpp>
#include <vouch/contract/query.hpp>
#include <vouch/contract/state.hpp>
#include <vouch/contract/time.hpp>
#include <vouch/observe/detail/label_counts.hpp>
#include <vouch/observe/look_options.hpp>

namespace vouch {
inline namespace v0 {
namespace detail {

struct saga_depth {
    std::size_t active = 0;
    std::size_t stuck = 0;
};

struct depth {
    state_counts counts{};
    duration overdue{};               ///< since when the next entry is due
    std::size_t stuck = 0;            ///< including sagas
    label_counts<saga_depth> sagas{}; ///< by topic
    std::size_t unseen = 0;           ///< live entries past the limit

    depth& operator+=(const depth& more) {
        for (const auto s : all_states) {
            counts[s] += more.counts[s];
        }
        overdue = std::max(overdue, more.overdue);
        stuck += more.stuck;
        for (const auto& [topic, n] : more.sagas) {
            auto& sum = sagas[topic];
            sum.active += n.active;
            sum.stuck += n.stuck;
        }
        unseen += more.unseen;
        return *this;
    }
};

/// See `look_options::stuck_after`; `since` is that long ago.
[[nodiscard]] inline bool is_stuck(const entry& e, bool is_saga, time_point since) noexcept {
    const bool is_early = (e.lease_until ? *e.lease_until : e.due_at) >= since;
    const bool has_begun = e.epoch > 0;
    return e.updated_at < since && (!is_early || (is_saga && has_begun));
}

[[nodiscard]] inline bool is_one_of(const std::vector<std::string>& names, std::string_view name) noexcept {
    return std::find(names.begin(), names.end(), name) != names.end();
}

template <class Reader>
[[nodiscard]] depth depth_of(const Reader& store, std::string_view queue, time_point now, const look_options& how) {
    constexpr std::size_t page_size = 1000;
    depth out{.counts = store.counts(queue)};
    if (const auto next = store.next_due(queue); next && *next < now) {
        out.overdue = now - *next;
    }
    for (const auto& topic : how.saga_topics) {
        out.sagas[topic] = {};
    }
    const auto since = later(now, -how.stuck_after);
    auto page = query::live(std::string(queue));
    for (auto left = how.entries_max;;) {
        page.limit = std::min(left, page_size);
        const auto found = store.list(page);
        for (const auto& e : found) {
            const bool is_saga = is_saga_progress(e.progress) || is_one_of(how.saga_topics, e.topic);
            const std::size_t stuck = is_stuck(e, is_saga, since) ? 1 : 0;
            out.stuck += stuck;
            if (is_saga) {
                auto& saga = out.sagas[e.topic];
                saga.active += 1;
                saga.stuck += stuck;
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
