// SPDX-License-Identifier: MIT
// The answer to /api/overview: what every queue looked like when it was last counted, and before.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <vouch/contract/state.hpp>
#include <vouch/contract/time.hpp>
#include <vouch/page/detail/json.hpp>
#include <vouch/page/detail/looks.hpp>

namespace vouch {
inline namespace v0 {
namespace page {
namespace detail {

[[nodiscard]] inline std::string json_of(const state_counts& counts) {
    json out;
    for (const auto s : all_states) {
        out.number(name_of(s), counts[s]);
    }
    return out.object();
}

/// Entries that ended between two looks, per second. A purge in between makes it smaller, and never negative.
[[nodiscard]] inline double ended_per_second(const look& before, const look& after) {
    const auto ended = [](const look& l) { return l.counts[state::succeeded] + l.counts[state::dead]; };
    const auto seconds = std::chrono::duration<double>(after.at - before.at).count();
    return ended(after) <= ended(before) || seconds <= 0 ? 0.0
                                                         : static_cast<double>(ended(after) - ended(before)) / seconds;
}

[[nodiscard]] inline std::string json_history(const std::deque<look>& history) {
    json out;
    for (std::size_t i = 0; i < history.size(); ++i) {
        const auto& l = history[i];
        json one;
        one.time("at", l.at).number("live", l.counts.live()).number("dead", l.counts[state::dead]);
        one.raw("ended_per_second", i == 0 ? "null" : std::to_string(ended_per_second(history[i - 1], l)));
        one.raw("overdue", std::to_string(std::chrono::duration<double>(l.overdue()).count()));
        out.item(one.object());
    }
    return out.array();
}

[[nodiscard]] inline std::string json_queue(const std::string& name, const std::deque<look>& history) {
    json out;
    out.text("queue", name);
    if (history.empty()) { // not counted yet
        return out.raw("counts", "null").raw("counted_at", "null").raw("history", "[]").object();
    }
    const auto& last = history.back();
    out.raw("counts", json_of(last.counts)).time("counted_at", last.at).time("next_due", last.next_due);
    out.id("oldest", last.oldest)
        .time("oldest_since", last.oldest_since)
        .number("stuck", last.stuck)
        .raw("history", json_history(history));
    return out.object();
}

/// How old the numbers of /metrics are, in the text format of Prometheus.
[[nodiscard]] inline std::string look_ages(const std::vector<std::string>& queues, const looks& seen, time_point now) {
    std::string out = "# HELP vouch_look_age_seconds How long ago the store was looked at for the gauges.\n"
                      "# TYPE vouch_look_age_seconds gauge\n";
    for (const auto& queue : queues) {
        const auto history = seen.at(queue);
        if (history.empty()) {
            continue;
        }
        std::string label;
        for (const char c : queue) { // a queue's name has no control characters
            label += c == '"' || c == '\\' ? "\\" : "";
            label += c;
        }
        out += "vouch_look_age_seconds{queue=\"" + label + "\"} " +
               std::to_string(std::chrono::duration<double>(now - history.back().at).count()) + '\n';
    }
    return out;
}

} // namespace detail
} // namespace page
} // namespace v0
} // namespace vouch
