// SPDX-License-Identifier: MIT
// Runs the clauses against a fixture: `check(fixture, options) -> report`, free of any test framework.
//
// A fixture has one function, `open(const place&)`, which returns a store. Hooks are found by their names:
// `crash(place)`, `seam(callback)`, `fail_at(n)`. A missing one lowers what can be said, and the report says so.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <functional>
#include <mutex>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <vouch/conformance/any_store.hpp>
#include <vouch/conformance/clause.hpp>
#include <vouch/conformance/clauses/all_clauses.hpp>
#include <vouch/conformance/detail/replay/test_source.hpp>
#include <vouch/conformance/detail/trial.hpp>
#include <vouch/conformance/location.hpp>
#include <vouch/conformance/options.hpp>
#include <vouch/conformance/report.hpp>
#include <vouch/contract/error.hpp>
#include <vouch/contract/id.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance {

namespace detail {

/// Ends the program when a clause takes too long: a store that hangs cannot be interrupted, only named.
class watchdog {
  public:
    explicit watchdog(std::chrono::seconds patience)
        : patience_(patience), thread_([this](const std::stop_token& stop) { watch(stop); }) {}

    void begin(std::string what) {
        const std::lock_guard lock(mutex_);
        what_ = std::move(what);
        until_ = std::chrono::steady_clock::now() + patience_;
        changed_.notify_all();
    }
    void end() { begin({}); }

  private:
    void watch(const std::stop_token& stop) {
        std::unique_lock lock(mutex_);
        while (!stop.stop_requested()) {
            if (what_.empty()) {
                changed_.wait(lock, stop, [&] { return !what_.empty(); });
                continue;
            }
            const auto was = until_; // a copy, because the wait looks at it while the lock is open
            if (!changed_.wait_until(lock, stop, was, [&] { return until_ != was; }) && !stop.stop_requested()) {
                std::fprintf(stderr, "\n%s: HANGS: no answer for %lld s\n", what_.c_str(),
                             static_cast<long long>(patience_.count()));
                std::fflush(nullptr);
                std::_Exit(3);
            }
        }
    }

    std::chrono::seconds patience_;
    std::mutex mutex_{};
    std::condition_variable_any changed_{};
    std::string what_{};
    std::chrono::steady_clock::time_point until_{};
    std::jthread thread_; // last: the others are there before it starts and after it ends
};

[[nodiscard]] inline std::uint64_t seed_of(const clause& c, std::uint64_t seed) noexcept {
    auto mixed = vouch::detail::mix(seed);
    for (const char letter : c.id) {
        mixed = vouch::detail::mix(mixed ^ static_cast<unsigned char>(letter));
    }
    return mixed;
}

/// Whether the check of this layer takes a conflict as it comes and goes on. The others are repeated.
[[nodiscard]] constexpr bool bears_conflicts(layer l) noexcept {
    return l == layer::stories || l == layer::interleavings || l == layer::histories || l == layer::crashes;
}

/// Runs the check once; what it throws that is not ours is a failure as well.
inline void attempt_once(stage& on, const clause& c, clause_report& into, script* written) {
    try {
        trial t(on, seed_of(c, on.options.seed), written);
        c.check(t);
        into.result = result::pass;
    } catch (const untested& u) {
        into.result = result::untested;
        into.why = u.why;
    } catch (const failure& f) {
        into.result = result::fail;
        into.failure = f;
    } catch (const error& e) {
        into.result = result::fail;
        into.failure = {.what = "the store threw where it should not",
                        .seen = show(e.kind()) + ": " + e.what(),
                        .expected = "no error"};
    } catch (const std::exception& e) {
        into.result = result::fail;
        into.failure = {.what = "something that is no vouch::error was thrown", .seen = e.what(), .expected = {}};
    }
}

/// Any call may end in `conflict`, and then all that was answered is void: a check that fails after one is repeated, on
/// a fresh store. Who has a conflict each time gets nowhere, and fails.
inline void attempt(stage& on, const clause& c, clause_report& into, script* written) {
    constexpr int tries = 40;
    for (int left = tries; left > 0; --left) {
        const auto tally = on.tally;
        const auto conflicts = on.counts->conflicts.load();
        attempt_once(on, c, into, written);
        const bool is_void =
            into.result == result::fail && on.counts->conflicts != conflicts && !bears_conflicts(c.layer);
        if (!is_void || left == 1) {
            return;
        }
        on.tally = tally;
        into.failure = {};
        if (written != nullptr) {
            *written = {};
        }
    }
}

[[nodiscard]] inline clause_report run_clause(stage& on, const clause& c) {
    clause_report out{.clause = c, .seed = on.options.seed};
    const auto begun = std::chrono::steady_clock::now();
    if (!has(on.can, c.needs)) {
        out.result = result::unsupported;
        return out;
    }
    const auto calls = on.counts->calls.load();
    attempt(on, c, out, nullptr);
    out.calls = on.counts->calls - calls;
    if (out.result == result::fail && out.failure.story.empty() && on.options.explains) {
        // Once more, to write down what led there. What several threads did cannot be told this way.
        script written;
        clause_report again{.clause = c};
        attempt(on, c, again, &written);
        if (again.result == result::fail && written.size() > 0) {
            out.failure.story = written.text();
        }
    }
    out.milliseconds = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begun).count();
    return out;
}

template <class Fixture>
[[nodiscard]] hooks hooks_of(Fixture& fixture, report& r) {
    hooks out;
    const auto note = [&](bool there, const char* name, const char* without) {
        if (there) {
            r.hooks.emplace_back(name);
        } else {
            r.missing.push_back(std::string(name) + ": " + without);
        }
    };
    constexpr bool can_crash = requires(const place& p) { fixture.crash(p); };
    constexpr bool has_seam = requires(std::function<void(std::string_view)> f) { fixture.seam(f); };
    constexpr bool can_fail = requires(std::size_t n) {
        { fixture.fail_at(n) } -> std::convertible_to<bool>;
    };
    note(can_crash, "crash", "a crash is the end of all handles, with the files as they were then");
    note(has_seam, "seam", "threads meet by chance and not by schedule");
    note(can_fail, "fail_at", "faults are put before and after calls, not inside them");
    if constexpr (can_crash) {
        out.crash = [&fixture](const place& p) { fixture.crash(p); };
    }
    if constexpr (requires(const place& p) { fixture.forget(p); }) {
        out.forget = [&fixture](const place& p) { fixture.forget(p); }; // saves memory, proves nothing
    }
    if constexpr (has_seam) {
        out.seam = [&fixture](std::function<void(std::string_view)> f) { fixture.seam(std::move(f)); };
    }
    if constexpr (can_fail) {
        out.fail_at = [&fixture](std::size_t n) { return fixture.fail_at(n); };
    }
    return out;
}

[[nodiscard]] inline std::string platform() {
    std::string out;
#if defined(__clang__)
    out = "clang " + std::to_string(__clang_major__);
#elif defined(__GNUC__)
    out = "gcc " + std::to_string(__GNUC__);
#endif
#if defined(__SANITIZE_ADDRESS__)
    out += ", address sanitizer";
#elif defined(__SANITIZE_THREAD__)
    out += ", thread sanitizer";
#endif
#if defined(__OPTIMIZE__)
    return out + ", optimised";
#else
    return out + ", not optimised";
#endif
}

/// What a verdict would need and was not seen, if it was looked for at all.
[[nodiscard]] inline std::vector<std::string> gaps_of(const tally& t, const capabilities& can) {
    std::vector<std::string> gaps;
    constexpr std::uint64_t percent_min = 30;
    if (t.histories > 0 && 100 * t.overlapping < percent_min * t.histories) {
        gaps.push_back("fewer than " + std::to_string(percent_min) + " % of the histories overlap");
    }
    const auto expect = [&](const std::string& what) {
        if (t.commands > 0 && t.answers.find(what) == t.answers.end()) {
            gaps.push_back("never seen: " + what);
        }
    };
    for (const std::string verb : {"succeed", "retry", "bury", "release", "advance", "extend", "nudge", "cancel"}) {
        for (const auto v : all_verdicts) {
            expect(verb + " " + std::string(name_of(v)));
        }
    }
    for (const auto* const what : {"enqueue inserted", "enqueue duplicate", "enqueue refused", "claim something",
                                   "claim nothing", "purge something", "purge nothing"}) {
        expect(what);
    }
    if (can.groups) {
        expect("group completed");
    }
    return gaps;
}

[[nodiscard]] inline bool is_chosen(const clause& c, const options& o) {
    return c.id.starts_with(o.clause) && (!o.layer || c.layer == *o.layer);
}

} // namespace detail

/// Who wants to know while clauses are run.
struct watcher {
    std::function<bool(const clause&)> begins{};       ///< false: this one is not run
    std::function<bool(const clause_report&)> ended{}; ///< false: none of the others is run
};

/// Runs the chosen clauses. Throws what the fixture's `open` throws when it is called for the first time.
template <class Fixture>
[[nodiscard]] report check(Fixture& fixture, const options& how = {}, const identity& whose = {},
                           const watcher& watching = {}) {
    report out{.identity = whose, .options = how};
    const auto root = std::filesystem::temp_directory_path() /
                      ("vouch-conformance-" + std::to_string(vouch::detail::mix(static_cast<std::uint64_t>(
                                                  std::chrono::steady_clock::now().time_since_epoch().count()))));
    places ground(root);
    stage on;
    on.open = [&fixture, counts = on.counts](const place& p) { return erase([&] { return fixture.open(p); }, counts); };
    on.hooks = detail::hooks_of(fixture, out);
    on.options = how;
    on.ground = &ground;
    on.can = on.open(ground.fresh()).capabilities();
    out.can = on.can;
    on.budget = budget_of(how.profile, on.can);
    out.platform = detail::platform();

    detail::watchdog dog(std::chrono::seconds{how.seconds_per_clause});
    bool goes_on = true;
    for (const auto& c : all_clauses()) {
        if (!goes_on || !detail::is_chosen(c, how) || (watching.begins && !watching.begins(c))) {
            out.clauses.push_back({.clause = c});
            continue;
        }
        dog.begin(std::string(c.id) + " (" + std::string(c.sentence) + "), seed " + std::to_string(how.seed));
        if (how.progress) {
            std::fprintf(stderr, "%-12s %-14s %s\n", std::string(c.id).c_str(), std::string(name_of(c.layer)).c_str(),
                         std::string(c.sentence).c_str());
        }
        out.clauses.push_back(detail::run_clause(on, c));
        dog.end();
        goes_on = !watching.ended || watching.ended(out.clauses.back());
    }
    out.tally = on.tally;
    out.gaps = detail::gaps_of(out.tally, out.can);
    return out;
}

} // namespace conformance
} // namespace v0
} // namespace vouch
