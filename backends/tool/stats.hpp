// SPDX-License-Identifier: MIT
// `vouch stats`: entries by queue and state, and when the next one is due.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <vouch/vouch.hpp>

#include "arguments.hpp"
#include "json.hpp"
#include "list.hpp"
#include "output.hpp"
#include "times.hpp"

namespace tool {

/// The lines of all queues, as text and as JSON.
class stats_lines {
  public:
    explicit stats_lines(vouch::time_point now) : now_(now) {}

    void add(const std::string& queue, const vouch::state_counts& counts,
             const std::optional<vouch::time_point>& next) {
        json_object row;
        row.text("queue", queue).raw("entries", json_of(counts)).time("next_due", next);
        rows_.push_back(row.str());
        text_ += plain(queue) + ":";
        for (const auto s : vouch::all_states) {
            text_ +=
                ' ' + std::to_string(counts[s]) + ' ' + std::string(name_of(s)) + (s == vouch::state::dead ? "" : ",");
        }
        text_ += (next ? "; next due " + relative(*next, now_) : "") + "\n";
    }
    void print_as(const arguments& with) const {
        print(with.json ? json_list(rows_) + "\n" : text_.empty() ? "no entries\n" : text_);
    }

  private:
    vouch::time_point now_;
    std::vector<std::string> rows_{};
    std::string text_{};
};

template <class Database>
int stats(Database& in, const arguments& with) {
    stats_lines lines(vouch::system_now());
    const auto& stored = in.stored();
    for (const auto& queue : queues_of(in, with)) {
        lines.add(queue, stored.counts(queue), stored.next_due(queue));
    }
    lines.print_as(with);
    return done;
}

} // namespace tool
