// SPDX-License-Identifier: MIT
// `check(fixture, options) -> report`: runs the clauses against a fixture, without any test framework.
//
// A fixture has one function, `open(const location&)`, which returns a store. It may also have the hooks `crash`,
// `seam`, `fail_at` and `forget`, which conformance/README.md describes. Without a hook the suite can check less, and
// the report says what.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <vouch/conformance/any_store.hpp>
#include <vouch/conformance/clause.hpp>
#include <vouch/conformance/clauses/all_clauses.hpp>
#include <vouch/conformance/detail/clause_runner.hpp>
#include <vouch/conformance/detail/fixture_hooks.hpp>
#include <vouch/conformance/detail/gaps.hpp>
#include <vouch/conformance/detail/locations.hpp>
#include <vouch/conformance/detail/trial.hpp>
#include <vouch/conformance/detail/watchdog.hpp>
#include <vouch/conformance/location.hpp>
#include <vouch/conformance/options.hpp>
#include <vouch/conformance/report.hpp>
#include <vouch/contract/id.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance {

namespace detail {

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

} // namespace detail

/// Called while clauses are run. Each may be empty.
struct check_callbacks {
    std::function<bool(const clause&)> begins{};       ///< false: this clause is skipped
    std::function<bool(const clause_report&)> ended{}; ///< false: all further clauses are skipped
    std::function<void(const report&)> opened{};       ///< before the first clause, when the store is known
    /// A clause hangs: the report so far, with this clause. When the call returns, the process ends with exit code 3.
    /// Called on another thread.
    std::function<void(const report&)> hangs{};
};

namespace detail {

/// `clause` had no answer within the time that the options allow.
[[nodiscard]] inline clause_report hanging(const clause& c, const options& how) {
    return {.clause = c,
            .result = result::hangs,
            .failure = {.what = "no answer for " + std::to_string(how.seconds_per_clause) +
                                " s (--patience N waits for N seconds)"},
            .seed = how.seed};
}

/// The fixture's first `open` gave no answer.
struct open_hangs : std::runtime_error {
    using std::runtime_error::runtime_error;
};

/// A new name for a folder. The folder does not exist yet.
[[nodiscard]] inline std::filesystem::path fresh_folder() {
    const auto now = static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
    return std::filesystem::temp_directory_path() / ("vouch-conformance-" + std::to_string(vouch::detail::mix(now)));
}

/// Fills in what is known about the store before the first clause, and makes the context of the run.
template <class Fixture>
[[nodiscard]] run_context opened_context(Fixture& fixture, locations& where, report& out) {
    run_context context;
    context.open = [&fixture, counts = context.counts](const location& p) {
        return erase([&] { return fixture.open(p); }, counts);
    };
    context.hooks = hooks_of(fixture, out);
    context.options = out.options;
    context.locations = &where;
    context.can = context.open(where.fresh()).capabilities();
    context.budget = budget_of(out.options.profile, context.can);
    out.can = context.can;
    out.platform = platform();
    return context;
}

/// `check` with its files below `folder`, which it makes and removes.
template <class Fixture>
[[nodiscard]] report check_in(const std::filesystem::path& folder, Fixture& fixture, const options& how,
                              const identity& whose, const check_callbacks& callbacks) {
    report out{.identity = whose, .options = how};
    const clause* current = nullptr; // what the watchdog reports; changed only while it does not watch
    watchdog dog(std::chrono::seconds{how.seconds_per_clause}, [&] {
        auto so_far = out;
        if (current != nullptr) {
            so_far.clauses.push_back(hanging(*current, how));
        }
        const auto& all = all_clauses();
        for (auto i = so_far.clauses.size(); i < all.size(); ++i) {
            so_far.clauses.push_back({.clause = all[i]});
        }
        if (callbacks.hangs) {
            callbacks.hangs(so_far);
        }
    });
    dog.begin("the fixture's open");
    locations where(folder);
    auto context = opened_context(fixture, where, out);
    dog.end();
    if (callbacks.opened) {
        callbacks.opened(out);
    }
    bool continues = true;
    for (const auto& c : all_clauses()) {
        if (!continues || !is_chosen(c, how) || (callbacks.begins && !callbacks.begins(c))) {
            out.clauses.push_back({.clause = c});
            continue;
        }
        if (how.progress) {
            std::fprintf(stderr, "%-12s %-14s %s\n", std::string(c.id).c_str(), std::string(name_of(c.layer)).c_str(),
                         std::string(c.sentence).c_str());
        }
        current = &c;
        dog.begin(std::string(c.id) + " (" + std::string(c.sentence) + "), seed " + std::to_string(how.seed));
        auto ended = run_clause(context, c);
        dog.end();
        out.tally += ended.tally;
        out.clauses.push_back(std::move(ended));
        continues = !callbacks.ended || callbacks.ended(out.clauses.back());
    }
    out.gaps = gaps_of(out.tally, out.can);
    return out;
}

} // namespace detail

/// Runs the chosen clauses in this process. Throws what the fixture's `open` throws in its first call. A clause that
/// takes longer than `options::seconds_per_clause` ends the program with exit code 3.
template <class Fixture>
[[nodiscard]] report check(Fixture& fixture, const options& how = {}, const identity& whose = {},
                           const check_callbacks& callbacks = {}) {
    return detail::check_in(detail::fresh_folder(), fixture, how, whose, callbacks);
}

} // namespace conformance
} // namespace v0
} // namespace vouch
