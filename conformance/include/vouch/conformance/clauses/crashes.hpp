// SPDX-License-Identifier: MIT
// Crashes: the process dies between any two commands, and inside a command if the store has a seam. What was
// acknowledged must be stored; a transaction that was not is stored as a whole or not at all.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string_view>
#include <utility>

#include <vouch/conformance/clause.hpp>
#include <vouch/conformance/detail/model/falsify.hpp>
#include <vouch/conformance/detail/model/model_run.hpp>
#include <vouch/conformance/detail/steps.hpp>
#include <vouch/conformance/detail/trial.hpp>
#include <vouch/conformance/location.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace crash_checks {

/// Thrown through the store to leave it, as the death of the process does.
struct death {};

/// Ends the process and starts another one. The handles and the transaction are open at that moment. If the fixture has
/// no `crash`, the files are restored as they were then, so that closing the handles does not change them.
inline void die(trial& t, const location& p, model_run& s) {
    if (t.hooks().crash) {
        t.hooks().crash(p);
        s.close();
    } else {
        auto image = p.directory();
        image += ".image";
        std::filesystem::copy(p.directory(), image, std::filesystem::copy_options::recursive);
        s.close();
        std::filesystem::remove_all(p.directory());
        std::filesystem::rename(image, p.directory());
    }
    t.tally().crash_points += 1;
    s.reopen(t.context().open(p));
}

/// Without the hook only files can show what survives a crash.
inline void require_files(trial& t) {
    if (!t.can().durable || t.hooks().crash) {
        return;
    }
    const auto p = t.fresh_location();
    bool has_files = false;
    {
        auto store = t.context().open(p);
        put(store, draft_of(1));
        has_files = !std::filesystem::is_empty(p.directory());
    }
    t.abandon(p);
    if (!has_files) {
        throw untested{"the store has no files in the folder of its location, and the fixture has no crash"};
    }
}

/// Runs random commands. After about every fourth the process dies.
inline void between(trial& t, const words& list) {
    const auto p = t.fresh_location();
    {
        model_run s(t.context().open(p), t.can(), t.tally());
        for (const auto word : list) {
            s.step(word);
            if (word % 4 == 0) {
                die(t, p, s);
            }
        }
        s.end(true);
        die(t, p, s);
    }
    t.abandon(p);
}

/// Like `between`, but the process dies at a seam inside a later command.
inline void inside(trial& t, const words& list) {
    const auto p = t.fresh_location();
    {
        std::size_t left = 0;
        t.hooks().seam([&left](std::string_view) {
            if (left > 0 && --left == 0) {
                throw death{};
            }
        });
        model_run s(t.context().open(p), t.can(), t.tally());
        for (const auto word : list) {
            left = word % 3 == 0 ? 1 + word / 3 % 9 : left;
            try {
                s.step(word);
            } catch (const death&) {
                die(t, p, s);
            }
        }
        left = 0;
        s.end(true);
        die(t, p, s);
    }
    t.hooks().seam(nullptr);
    t.abandon(p);
}

template <class Play>
void until_enough(trial& t, Play&& play) {
    constexpr std::size_t length = 60;
    constexpr std::size_t crashes_per_story = 12;
    auto found =
        falsify(t, 1 + t.budget().crash_points / crashes_per_story, length, [&](const words& list) { play(t, list); });
    if (found) {
        throw std::move(found->second);
    }
}

inline void at_boundaries(trial& t) {
    require_files(t);
    until_enough(t, between);
}

inline void at_seams(trial& t) {
    if (!t.hooks().seam) {
        throw untested{"the fixture has no seam"};
    }
    require_files(t);
    until_enough(t, inside);
}

} // namespace crash_checks

inline constexpr std::array crashes{
    clause{"CRASH-01", layer::crashes, level::must, needs::nothing,
           "If a process dies between two calls, everything committed is stored byte for byte, and nothing else.",
           crash_checks::at_boundaries},
    clause{"CRASH-02", layer::crashes, level::may, needs::nothing,
           "If a process dies inside a call, its transaction is stored as a whole or not at all.",
           crash_checks::at_seams},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch
