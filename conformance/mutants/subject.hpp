// SPDX-License-Identifier: MIT
// A store to be judged, what has become of it so far, and all of them at once, some at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <poll.h>

#include "contained_run.hpp"
#include "kill_search.hpp"
#include "mutants.hpp"
#include "plain_fixture.hpp"
#include "sqlite_fixture.hpp"

namespace mutants {

/// Calls `use(fixture)` with one that opens stores of this temper, or SQLite stores with this statement rewritten.
template <class Use>
auto with_fixture(const mutants::temper& temper, const rewrite* statement, const Use& use) {
    if (statement != nullptr) {
        rewrite_in_force = statement;
        sqlite_fixture fixture;
        return use(fixture);
    }
    plain_fixture fixture(temper);
    return use(fixture);
}

struct candidate {
    std::string name{};
    mutants::temper temper{};
    const rewrite* statement = nullptr;
    bool must_pass = false;
    errand task{}; ///< what is left to do
    std::vector<death> deaths{};
    std::string trouble{};

    void hunt_in(std::FILE* to) const {
        with_fixture(temper, statement, [&](auto& fixture) { hunt(fixture, task, to).run(); });
    }

    /// Takes in what a child has said. Says whether another one has to go on, because it did not come to the end.
    [[nodiscard]] bool hear(tidings news) {
        trouble += news.trouble;
        deaths.insert(deaths.end(), news.deaths.begin(), news.deaths.end());
        if (!news.was_cut_off) {
            return false;
        }
        const auto& last = deaths.back();
        if (task.wants_all) {
            task.after = last.clause;
            return true;
        }
        std::erase_if(task.seeds, [&](const auto seed) { return seed <= last.seed; });
        task.killer = last.clause;
        constexpr std::size_t known_to_hang = 2;
        task.patience = last.how == "hangs" ? known_to_hang : task.patience;
        return !task.seeds.empty();
    }

    [[nodiscard]] std::size_t seeds_that_kill() const {
        std::set<std::uint64_t> seeds;
        for (const auto& d : deaths) {
            seeds.insert(d.seed);
        }
        return seeds.size();
    }
};

/// Runs all, `jobs` at a time. `begins` may change what is to be done; `done` is called in the order of their ends.
inline void run_all(std::vector<candidate>& all, std::size_t jobs, const std::function<void(candidate&)>& begins,
                    const std::function<void(const candidate&)>& done) {
    struct running {
        candidate* whose;
        std::unique_ptr<contained_run> run;
    };
    std::vector<running> at_work;
    std::size_t next = 0;
    const auto start = [&](candidate& c) {
        begins(c);
        at_work.push_back({&c, std::make_unique<contained_run>([&c](std::FILE* to) { c.hunt_in(to); })});
    };
    while (next < all.size() || !at_work.empty()) {
        while (next < all.size() && at_work.size() < jobs) {
            start(all[next++]);
        }
        std::vector<pollfd> ready;
        for (const auto& r : at_work) {
            ready.push_back({r.run->descriptor(), POLLIN, 0});
        }
        poll(ready.data(), ready.size(), -1);
        for (std::size_t i = ready.size(); i-- > 0;) {
            if (ready[i].revents == 0 || at_work[i].run->read()) {
                continue;
            }
            auto& c = *at_work[i].whose;
            const bool goes_on = c.hear(at_work[i].run->finish());
            at_work.erase(at_work.begin() + static_cast<std::ptrdiff_t>(i));
            goes_on ? start(c) : done(c);
        }
    }
}

} // namespace mutants
