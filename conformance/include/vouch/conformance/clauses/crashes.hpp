// SPDX-License-Identifier: MIT
// Layer 5: the process dies between any two commands, and inside them where the store has seams; what was acknowledged
// is there, what was not is wholly there or not at all.
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
#include <vouch/conformance/detail/trial.hpp>
#include <vouch/conformance/location.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance::clauses {

namespace crash_checks {

/// Thrown through the store to get out of it, as a death does.
struct death {};

/// The process dies and another one takes over. Unless the fixture knows better, its files are as they were at the
/// moment of death, whatever closing the handles would still have done to them.
inline void die(trial& t, const place& p, story& s) {
    if (t.hooks().crash) {
        s.close();
        t.hooks().crash(p);
    } else {
        auto image = p.directory();
        image += ".image";
        std::filesystem::copy(p.directory(), image, std::filesystem::copy_options::recursive);
        s.close();
        std::filesystem::remove_all(p.directory());
        std::filesystem::rename(image, p.directory());
    }
    t.tally().crash_points += 1;
    s.go_on(t.on().open(p));
}

/// Tells a story in which every fourth command or so is the last of its process.
inline void between(trial& t, const words& list) {
    const auto p = t.fresh_place();
    {
        story s(t.on().open(p), t.can(), t.tally());
        for (const auto word : list) {
            s.tell(word);
            if (word % 4 == 0) {
                die(t, p, s);
            }
        }
        s.end(true);
        die(t, p, s);
    }
    t.leave(p);
}

/// The same, but death comes at a seam some way ahead.
inline void inside(trial& t, const words& list) {
    const auto p = t.fresh_place();
    {
        std::size_t left = 0;
        t.hooks().seam([&left](std::string_view) {
            if (left > 0 && --left == 0) {
                throw death{};
            }
        });
        story s(t.on().open(p), t.can(), t.tally());
        for (const auto word : list) {
            left = word % 3 == 0 ? 1 + word / 3 % 9 : left;
            try {
                s.tell(word);
            } catch (const death&) {
                die(t, p, s);
            }
        }
        left = 0;
        s.end(true);
        die(t, p, s);
    }
    t.hooks().seam(nullptr);
    t.leave(p);
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

inline void at_boundaries(trial& t) { until_enough(t, between); }

inline void at_seams(trial& t) {
    if (!t.hooks().seam) {
        throw untested{"the fixture has no seam"};
    }
    until_enough(t, inside);
}

} // namespace crash_checks

inline constexpr std::array crashes{
    clause{"CRASH-01", layer::crashes, level::must, needs::nothing,
           "When a process dies between two calls, what was committed is there to the byte and nothing else is.",
           crash_checks::at_boundaries},
    clause{"CRASH-02", layer::crashes, level::may, needs::nothing,
           "When a process dies inside a call, its transaction is wholly there or not at all.", crash_checks::at_seams},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch
