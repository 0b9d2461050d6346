// SPDX-License-Identifier: MIT
// `vouch ages`: how long due entries have been waiting, as a histogram.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
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

/// Waiting times in classes.
class age_histogram {
  public:
    void add(vouch::duration waited) {
        const auto at =
            std::find_if(classes.begin(), classes.end() - 1, [&](const age_class& c) { return waited < c.below; });
        counts_[static_cast<std::size_t>(at - classes.begin())] += 1;
        longest_ = std::max(longest_, waited);
    }

    void print_as(const arguments& with) const {
        table rows(with, {"WAITING", "ENTRIES", ""});
        const auto most = std::max<std::size_t>(1, *std::max_element(counts_.begin(), counts_.end()));
        for (std::size_t i = 0; i < classes.size(); ++i) {
            constexpr std::size_t width = 50;
            // At least one mark for a class that is not empty.
            const auto length = (counts_[i] * width + most - 1) / most;
            rows.add({std::string(classes[i].name), std::to_string(counts_[i]), std::string(length, '#')},
                     {{"waiting", classes[i].name}, {"entries", counts_[i]}});
        }
        rows.print_all("");
    }

    [[nodiscard]] vouch::duration longest() const noexcept { return longest_; }

  private:
    struct age_class {
        std::string_view name;
        vouch::duration below;
    };
    static constexpr std::array classes{
        age_class{"under 1 s", std::chrono::seconds{1}},   age_class{"under 10 s", std::chrono::seconds{10}},
        age_class{"under 1 min", std::chrono::minutes{1}}, age_class{"under 10 min", std::chrono::minutes{10}},
        age_class{"under 1 h", std::chrono::hours{1}},     age_class{"under 6 h", std::chrono::hours{6}},
        age_class{"under 1 day", std::chrono::hours{24}},  age_class{"1 day or more", vouch::duration::max()}};
    std::array<std::size_t, classes.size()> counts_{};
    vouch::duration longest_{};
};

inline int ages(database& in, const arguments& with) {
    auto live = with;
    live.only_live = true;
    const auto& stored = in.stored();
    const filter by(in, live);
    search found(stored, by);
    age_histogram waiting;
    std::size_t later = 0;
    std::size_t due_now = 0;
    for (auto e = found.next(); e; e = found.next()) {
        if (e->state == vouch::state::claimed) {
            continue;
        }
        const auto left = until(e->due_at, by.now);
        if (left > vouch::duration::zero()) {
            later += 1;
        } else {
            due_now += 1;
            waiting.add(-left);
        }
    }
    waiting.print_as(with);
    if (!with.json && !with.ndjson) {
        print(std::to_string(due_now) + " due" +
              (due_now == 0 ? "" : ", the oldest for " + roughly(waiting.longest())) + "; " + std::to_string(later) +
              " due later\n");
    }
    found.remark();
    return done;
}

} // namespace tool
