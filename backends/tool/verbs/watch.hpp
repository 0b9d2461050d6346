// SPDX-License-Identifier: MIT
// `vouch watch`: the queues, drawn again and again, with what has changed since the last picture.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <map>
#include <optional>
#include <string>

#include <time.h>
#include <unistd.h>

#include <vouch/vouch.hpp>

#include "../arguments.hpp"
#include "../database.hpp"
#include "../interrupt.hpp"
#include "../json.hpp"
#include "../output.hpp"
#include "../search.hpp"
#include "../table.hpp"
#include "../times.hpp"

namespace tool {

/// Draws pictures and remembers the last one.
class watcher {
  public:
    watcher(database& in, const arguments& with) : in_(in), with_(with) {}

    void draw() {
        const auto now = vouch::system_now();
        table rows(with_, {"QUEUE", "WAITING", "RUNNING", "SUCCEEDED", "DEAD", "DONE/S", "NEW DEAD", "NEXT DUE"});
        const auto& stored = in_.stored();
        for (const auto& queue : queues_of(in_, with_)) {
            add(rows, queue, stored.counts(queue), stored.next_due(queue), now);
        }
        if (isatty(STDOUT_FILENO) != 0 && !with_.json && !with_.ndjson) {
            print("\x1b[H\x1b[J"); // to the first line, and clear what is below
        }
        if (!with_.json && !with_.ndjson) {
            print(utc_of(now) + ", every " + roughly(with_.every) + "; Ctrl-C ends\n\n");
        }
        rows.print_all("no entries\n");
        std::fflush(stdout);
        last_at_ = now;
    }

  private:
    void add(table& rows, const std::string& queue, const vouch::state_counts& counts,
             const std::optional<vouch::time_point>& next, vouch::time_point now) {
        using vouch::state;
        const auto waiting = counts[state::pending] + counts[state::retrying];
        const auto before = last_.find(queue);
        std::string rate;
        std::size_t new_dead = 0;
        if (before != last_.end() && now > last_at_) {
            // Purges make the number smaller; then the rate is not known.
            const auto was = before->second[state::succeeded];
            const auto seconds = std::chrono::duration<double>(now - last_at_).count();
            rate = counts[state::succeeded] < was
                       ? "?"
                       : tenths(static_cast<double>(counts[state::succeeded] - was) / seconds);
            new_dead = counts[state::dead] - std::min(counts[state::dead], before->second[state::dead]);
        }
        rows.add({cell_text(queue),
                  std::to_string(waiting),
                  std::to_string(counts[state::claimed]),
                  std::to_string(counts[state::succeeded]),
                  {std::to_string(counts[state::dead]), counts[state::dead] == 0 ? "" : "31"},
                  rate,
                  new_dead == 0 ? "" : '+' + std::to_string(new_dead),
                  next ? due(*next, now) : ""},
                 {{"at", json_of(now)}, {"queue", queue}, {"entries", json_of(counts)}, {"next_due", json_of(next)}});
        last_[queue] = counts;
    }

    [[nodiscard]] static std::string tenths(double value) {
        std::array<char, 32> text{};
        std::snprintf(text.data(), text.size(), "%.1f", value);
        return text.data();
    }

    database& in_;
    const arguments& with_;
    std::map<std::string, vouch::state_counts> last_{};
    vouch::time_point last_at_{};
};

inline int watch(database& in, const arguments& with) {
    if (with.every < std::chrono::milliseconds{100}) {
        throw bad_usage("--every must be at least 100ms");
    }
    catch_interrupts();
    watcher pictures(in, with);
    for (std::uint64_t n = 1; was_interrupted == 0; ++n) {
        pictures.draw();
        if (n == with.count || !is_written()) {
            break;
        }
        const auto whole = std::chrono::duration_cast<std::chrono::seconds>(with.every);
        const timespec pause{.tv_sec = whole.count(), .tv_nsec = (with.every - whole).count() * 1000};
        nanosleep(&pause, nullptr);
    }
    return done;
}

} // namespace tool
