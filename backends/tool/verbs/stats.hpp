// SPDX-License-Identifier: MIT
// `vouch stats`: entries by queue and state, and when the next one is due.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <vouch/vouch.hpp>

#include "../arguments.hpp"
#include "../database.hpp"
#include "../json.hpp"
#include "../search.hpp"
#include "../table.hpp"
#include "../times.hpp"

namespace tool {

class stats_table {
  public:
    stats_table(const arguments& with, vouch::time_point now)
        : rows_(with, {"QUEUE", "PENDING", "RETRYING", "CLAIMED", "SUCCEEDED", "DEAD", "NEXT DUE"}), now_(now) {}

    void add(const std::string& queue, const vouch::state_counts& counts,
             const std::optional<vouch::time_point>& next) {
        std::vector<table::cell> row{cell_text(queue)};
        for (const auto s : vouch::all_states) {
            row.emplace_back(std::to_string(counts[s]), counts[s] == 0 ? std::string_view{} : colour_of(name_of(s)));
        }
        row.emplace_back(next ? due(*next, now_) : "");
        rows_.add(std::move(row), {{"queue", queue}, {"entries", json_of(counts)}, {"next_due", json_of(next)}});
    }
    void print_all() const { rows_.print_all("no entries\n"); }

  private:
    table rows_;
    vouch::time_point now_;
};

inline int stats(database& in, const arguments& with) {
    stats_table rows(with, vouch::system_now());
    const auto& stored = in.stored();
    for (const auto& queue : queues_of(in, with)) {
        rows.add(queue, stored.counts(queue), stored.next_due(queue));
    }
    rows.print_all();
    return done;
}

} // namespace tool
