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
#include <string>
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

[[nodiscard]] inline bool is_chosen(const clause& c, const options& o) {
    return c.id.starts_with(o.clause) && (!o.layer || c.layer == *o.layer);
}

} // namespace detail

/// Called while clauses are run. Either may be empty.
struct check_callbacks {
    std::function<bool(const clause&)> begins{};       ///< false: this clause is skipped
    std::function<bool(const clause_report&)> ended{}; ///< false: all further clauses are skipped
};

/// Runs the chosen clauses. Throws what the fixture's `open` throws in its first call. A clause that takes longer than
/// `options::seconds_per_clause` ends the program with exit code 3.
template <class Fixture>
[[nodiscard]] report check(Fixture& fixture, const options& how = {}, const identity& whose = {},
                           const check_callbacks& callbacks = {}) {
    report out{.identity = whose, .options = how};
    const auto root = std::filesystem::temp_directory_path() /
                      ("vouch-conformance-" + std::to_string(vouch::detail::mix(static_cast<std::uint64_t>(
                                                  std::chrono::steady_clock::now().time_since_epoch().count()))));
    detail::locations locations(root);
    detail::run_context context;
    context.open = [&fixture, counts = context.counts](const location& p) {
        return erase([&] { return fixture.open(p); }, counts);
    };
    context.hooks = detail::hooks_of(fixture, out);
    context.options = how;
    context.locations = &locations;
    context.can = context.open(locations.fresh()).capabilities();
    out.can = context.can;
    context.budget = budget_of(how.profile, context.can);
    out.platform = detail::platform();

    detail::watchdog dog(std::chrono::seconds{how.seconds_per_clause});
    bool continues = true;
    for (const auto& c : all_clauses()) {
        if (!continues || !detail::is_chosen(c, how) || (callbacks.begins && !callbacks.begins(c))) {
            out.clauses.push_back({.clause = c});
            continue;
        }
        dog.begin(std::string(c.id) + " (" + std::string(c.sentence) + "), seed " + std::to_string(how.seed));
        if (how.progress) {
            std::fprintf(stderr, "%-12s %-14s %s\n", std::string(c.id).c_str(), std::string(name_of(c.layer)).c_str(),
                         std::string(c.sentence).c_str());
        }
        out.clauses.push_back(detail::run_clause(context, c));
        dog.end();
        continues = !callbacks.ended || callbacks.ended(out.clauses.back());
    }
    out.tally = context.tally;
    out.gaps = detail::gaps_of(out.tally, out.can);
    return out;
}

} // namespace conformance
} // namespace v0
} // namespace vouch
