// SPDX-License-Identifier: MIT
// Crashes: the process dies between any two commands, and inside a command if the store has a seam. What was
// acknowledged must be stored; a transaction that was not is stored as a whole or not at all.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <vouch/conformance/any_store.hpp>
#include <vouch/conformance/clause.hpp>
#include <vouch/conformance/clauses/sizes_values.hpp>
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

/// Ends the process. The handles and the transaction are open at that moment; `close` closes them. If the fixture has no
/// `crash`, the files are restored as they were then, so that closing the handles does not change them.
template <class Close>
void end_process(trial& t, const location& p, Close&& close) {
    if (t.hooks().crash) {
        t.hooks().crash(p);
        close();
    } else {
        auto image = p.directory();
        image += ".image";
        std::filesystem::copy(p.directory(), image, std::filesystem::copy_options::recursive);
        close();
        std::filesystem::remove_all(p.directory());
        std::filesystem::rename(image, p.directory());
    }
    t.tally().crash_points += 1;
}

/// Ends the process and starts another one.
inline void die(trial& t, const location& p, model_run& s) {
    end_process(t, p, [&] { s.close(); });
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
        s.commit_apart();
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

/// The entries of queue q, with their payloads.
[[nodiscard]] inline std::vector<entry> stored_in(const any_store& store) {
    auto all = query::all("q");
    all.payloads = true;
    return store.list(all);
}

/// Values of several sizes in all fields are committed, another one is not, and the process dies.
inline void with_large_values(trial& t) {
    require_files(t);
    const auto p = t.fresh_location();
    std::uint64_t n = 1;
    for (const std::size_t size : sizes_checks::content_sizes) {
        std::optional<any_store> store(t.context().open(p));
        sizes_checks::keeps_content(t, *store, n, size);
        const auto before = stored_in(*store);
        {
            std::optional<any_transaction> tx(store->begin());
            tx->enqueue(std::array{draft_of(1000, {.payload = pattern(size)})}, at(0));
            end_process(t, p, [&] {
                tx.reset();
                store.reset();
            });
        }
        const auto after = stored_in(t.context().open(p));
        t.equal(after.size(), before.size(), "the number of entries after the death of the process");
        for (std::size_t i = 0; i < after.size(); ++i) {
            t.equal(after[i], before[i], "an entry with large values after the death of the process");
        }
        n += 10;
    }
    t.abandon(p);
}

} // namespace crash_checks

inline constexpr std::array crashes{
    clause{"CRASH-01", layer::crashes, level::must, needs::nothing,
           "If a process dies between two calls, everything committed is stored byte for byte, and nothing else.",
           crash_checks::at_boundaries},
    clause{"CRASH-02", layer::crashes, level::may, needs::nothing,
           "If a process dies inside a call, its transaction is stored as a whole or not at all.",
           crash_checks::at_seams},
    clause{"CRASH-03", layer::crashes, level::must, needs::nothing,
           "If a process dies, committed payloads, progress and results of all sizes are stored to the byte, and those "
           "of an open transaction are not.",
           crash_checks::with_large_values},
};

} // namespace conformance::clauses
} // namespace v0
} // namespace vouch
