// SPDX-License-Identifier: MIT
// Entries as a readable table, for a failing test or a debugger.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include <vouch/contract/entry.hpp>
#include <vouch/contract/id.hpp>
#include <vouch/contract/time.hpp>

namespace vouch {
inline namespace v0 {
namespace testing {

/// A duration in its largest whole unit: 0, 90s, 5min, 2h, 250ms, -3us.
[[nodiscard]] inline std::string to_text(duration d) {
    struct unit {
        duration::rep size;
        const char* name;
    };
    constexpr std::array<unit, 5> units{
        {{3'600'000'000, "h"}, {60'000'000, "min"}, {1'000'000, "s"}, {1000, "ms"}, {1, "us"}}};
    if (d == duration::zero()) {
        return "0";
    }
    for (const auto& u : units) {
        if (d.count() % u.size == 0) {
            return std::to_string(d.count() / u.size) + u.name;
        }
    }
    return {};
}

/// An id of `counting_ids` as its number, any other id in full.
[[nodiscard]] inline std::string to_text(const id& i) { return i.high == 0 ? std::to_string(i.low) : to_string(i); }

/// One row per entry; times are relative to `start`.
[[nodiscard]] inline std::string table(std::span<const entry> entries, time_point start) {
    using row = std::array<std::string, 7>;
    std::vector<row> rows{{"id", "queue", "topic", "state", "attempts", "due", "last error"}};
    for (const auto& e : entries) {
        const bool waits = e.state == state::pending || e.state == state::retrying;
        const auto when = e.state == state::claimed ? "held to " + to_text(*e.lease_until - start)
                          : waits                   ? to_text(e.due_at - start)
                                                    : std::string{"-"};
        rows.push_back({to_text(e.id), e.queue, e.topic, std::string(name_of(e.state)), std::to_string(e.attempts),
                        when, e.last_error});
    }
    std::array<std::size_t, 7> width{};
    for (const auto& r : rows) {
        for (std::size_t i = 0; i < r.size(); ++i) {
            width[i] = std::max(width[i], r[i].size());
        }
    }
    std::string out;
    for (const auto& r : rows) {
        std::string line;
        for (std::size_t i = 0; i < r.size(); ++i) {
            line += r[i] + std::string(width[i] - r[i].size() + 2, ' ');
        }
        line.erase(line.find_last_not_of(' ') + 1);
        out += line + '\n';
    }
    return out;
}

} // namespace testing
} // namespace v0
} // namespace vouch
