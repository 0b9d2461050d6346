// SPDX-License-Identifier: MIT
// A store under test with its results so far, and a function that tests many of them, several at a time.
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

#include "../row_locks/fixture.hpp"
#include "committing_store.hpp"
#include "contained_run.hpp"
#include "kill_search.hpp"
#include "mutants.hpp"
#include "plain_fixture.hpp"
#include "sqlite_fixture.hpp"

namespace mutants {

/// Calls `use(fixture)`. The fixture opens stores of this variant or, if `statement` is set, SQLite stores with that
/// rewrite.
template <class Use>
auto with_fixture(const mutants::variant& variant, const rewrite* statement, const Use& use) {
    if (statement != nullptr) {
        active_rewrite = statement;
        sqlite_fixture fixture;
        return use(fixture);
    }
    if (variant.row_locks) {
        const auto& how = *variant.row_locks;
        row_locks::fixture fixture(
            {.defect = how.defect, .claims_wait = how.claims_wait, .locks_absence = how.locks_absence});
        return use(fixture);
    }
    if (variant.committing) {
        committing_fixture fixture(variant);
        return use(fixture);
    }
    plain_fixture fixture(variant);
    return use(fixture);
}

struct subject {
    std::string name{};
    mutants::variant variant{};
    const rewrite* statement = nullptr;
    bool must_pass = false;
    search_options task{}; ///< what remains to be tested
    std::vector<kill_record> kills{};
    std::string error{};

    void search(std::FILE* to) const {
        with_fixture(variant, statement, [&](auto& fixture) { kill_search(fixture, task, to).run(); });
    }

    /// Adds the result of a child. Returns whether another child must continue, because this one ended early.
    [[nodiscard]] bool record(const child_result& result) {
        error += result.error;
        kills.insert(kills.end(), result.kills.begin(), result.kills.end());
        if (!result.was_cut_off) {
            return false;
        }
        const auto& last = kills.back();
        if (task.wants_all) {
            task.after = last.clause;
            return true;
        }
        std::erase_if(task.seeds, [&](const auto seed) { return seed <= last.seed; });
        task.killer = last.clause;
        constexpr std::size_t known_to_hang = 2;
        task.seconds_per_clause = last.how == "hangs" ? known_to_hang : task.seconds_per_clause;
        return !task.seeds.empty();
    }

    [[nodiscard]] std::size_t seeds_that_kill() const {
        std::set<std::uint64_t> seeds;
        for (const auto& d : kills) {
            seeds.insert(d.seed);
        }
        return seeds.size();
    }
};

/// Tests all subjects, `jobs` at a time. Calls `begins` before each child, which may change the subject's task, and
/// `done` as each subject is finished.
inline void run_all(std::vector<subject>& all, std::size_t jobs, const std::function<void(subject&)>& begins,
                    const std::function<void(const subject&)>& done) {
    struct child {
        subject* tested;
        std::unique_ptr<contained_run> run;
    };
    std::vector<child> running;
    std::size_t next = 0;
    const auto start = [&](subject& c) {
        begins(c);
        running.push_back({&c, std::make_unique<contained_run>([&c](std::FILE* to) { c.search(to); })});
    };
    while (next < all.size() || !running.empty()) {
        while (next < all.size() && running.size() < jobs) {
            start(all[next++]);
        }
        std::vector<pollfd> ready;
        for (const auto& r : running) {
            ready.push_back({r.run->descriptor(), POLLIN, 0});
        }
        poll(ready.data(), ready.size(), -1);
        for (std::size_t i = ready.size(); i-- > 0;) {
            if (ready[i].revents == 0 || running[i].run->read()) {
                continue;
            }
            auto& c = *running[i].tested;
            const bool is_unfinished = c.record(running[i].run->finish());
            running.erase(running.begin() + static_cast<std::ptrdiff_t>(i));
            is_unfinished ? start(c) : done(c);
        }
    }
}

} // namespace mutants
