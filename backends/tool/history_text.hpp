// SPDX-License-Identifier: MIT
// The attempts at an entry, if the application records them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <vouch/vouch.hpp>

#include "arguments.hpp"
#include "json.hpp"
#include "table.hpp"
#include "times.hpp"

namespace tool {

[[nodiscard]] inline json json_of(const std::vector<vouch::attempt_line>& history) {
    auto out = json::array();
    for (const auto& line : history) {
        out.push_back({{"claim", line.epoch},
                       {"outcome", name_of(line.what)},
                       {"error", line.error},
                       {"worker", line.worker},
                       {"attempt", line.attempt},
                       {"claimed_at", json_of(line.claimed_at)},
                       {"at", json_of(line.at)}});
    }
    return out;
}

/// A line per attempt, and one for claims without an outcome. Empty without a history.
[[nodiscard]] inline std::string history_table(const std::vector<vouch::attempt_line>& history, vouch::time_point now) {
    if (history.empty()) {
        return {};
    }
    const arguments as_text;
    table rows(as_text, {"CLAIM", "OUTCOME", "ERROR", "WORKER", "TOOK", "ENDED"});
    auto expected = history.front().epoch;
    for (const auto& line : history) {
        if (line.epoch > expected) {
            rows.add(
                {std::to_string(expected) + (line.epoch == expected + 1 ? "" : " to " + std::to_string(line.epoch - 1)),
                 "none: the lease expired, or it was handed back", "", "", "", ""},
                {});
        }
        expected = line.epoch + 1;
        const auto name = std::string(name_of(line.what));
        rows.add({std::to_string(line.epoch),
                  {name, colour_of(name)},
                  cell_text(line.error),
                  cell_text(line.worker),
                  roughly(std::max(until(line.at, line.claimed_at), vouch::duration{})),
                  with_time(line.at, now)},
                 {});
    }
    return "\n" + rows.text();
}

} // namespace tool
