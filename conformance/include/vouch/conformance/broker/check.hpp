// SPDX-License-Identifier: MIT
// `check_broker(fixture, options) -> report`: runs the clauses against a fixture, without any test framework.
#pragma once

#include <chrono>
#include <cstdio>
#include <exception>
#include <functional>
#include <random>
#include <string>
#include <utility>

#include <vouch/conformance/broker/clause.hpp>
#include <vouch/conformance/broker/clauses/all_clauses.hpp>
#include <vouch/conformance/broker/detail/quoted.hpp>
#include <vouch/conformance/broker/detail/trial.hpp>
#include <vouch/conformance/broker/detail/unmet.hpp>
#include <vouch/conformance/broker/detail/watchdog.hpp>
#include <vouch/conformance/broker/hooks.hpp>
#include <vouch/conformance/broker/options.hpp>
#include <vouch/conformance/broker/report.hpp>
#include <vouch/contract/error.hpp>

namespace vouch {
inline namespace v0 {
namespace conformance {

namespace broker::detail {

/// A word that no other run has, so that messages of earlier runs are not taken for this one's.
[[nodiscard]] inline std::string run_name() {
    std::random_device random;
    return "kit" + std::to_string(random()) + std::to_string(random());
}

[[nodiscard]] inline failure failure_of(const std::function<void()>& check) {
    try {
        check();
        return {};
    } catch (const unmet& u) {
        return {u.what, u.expected, u.seen};
    } catch (const error& e) {
        return {"a call throws", "no exception",
                "vouch::error of the kind " + std::string(vouch::name_of(e.kind())) + ": " + shown(e.what())};
    } catch (const std::exception& e) {
        return {"a call throws", "no exception", "an exception: " + shown(e.what())};
    }
}

/// Runs one clause. After a failure the next clause gets new clients.
[[nodiscard]] inline clause_report run_clause(const hooks& fixture, const options& how, shared_clients& clients,
                                              const clause& c, const std::string& run) {
    clause_report out{.clause = c};
    if (!has(fixture, c.needs)) {
        out.result = result::untested;
        return out;
    }
    const auto begin = std::chrono::steady_clock::now();
    trial t(fixture, how, clients, run + "-" + std::string(c.id));
    out.failure = failure_of([&] { c.check(t); });
    out.result = out.failure.what.empty() ? result::pass : result::fail;
    if (out.result == result::fail) {
        clients = {};
    }
    out.milliseconds = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
    return out;
}

/// Runs the chosen clauses. `hangs` gets the report so far if one of them hangs; then the process ends.
[[nodiscard]] inline report check_hooks(const hooks& fixture, const options& how, const identity& whose,
                                        const std::function<void(const report&)>& hangs) {
    report out{.identity = whose};
    watchdog dog(how.per_clause, [&] {
        auto so_far = out;
        const auto& all = all_clauses();
        for (auto i = so_far.clauses.size(); i < all.size(); ++i) {
            so_far.clauses.push_back({.clause = all[i]});
        }
        auto& hanging = so_far.clauses[out.clauses.size()];
        hanging.result = result::hangs;
        hanging.failure.what =
            "no answer for " + std::to_string(how.per_clause.count()) + " s (--per-clause N waits for N seconds)";
        hangs(so_far);
    });
    const auto run = run_name();
    shared_clients clients;
    for (const auto& c : all_clauses()) {
        clause_report ended{.clause = c};
        if (is_chosen(c.id, how)) {
            if (how.progress) {
                std::fprintf(stderr, "%-8s %s\n", std::string(c.id).c_str(), std::string(c.sentence).c_str());
            }
            dog.begin();
            ended = run_clause(fixture, how, clients, c, run);
            dog.end();
        }
        out.clauses.push_back(std::move(ended));
    }
    return out;
}

} // namespace broker::detail

/// Runs the chosen clauses in this process. A clause that takes longer than `options::per_clause` ends the program with
/// exit code 3, after a call of `hangs` with the report so far, on another thread.
template <class Fixture>
[[nodiscard]] broker::report check_broker(Fixture& fixture, const broker::options& how = {},
                                          const broker::identity& whose = {},
                                          const std::function<void(const broker::report&)>& hangs = {}) {
    const auto hooks = broker::hooks_of(fixture);
    return broker::detail::check_hooks(hooks, how, whose, [&](const broker::report& so_far) {
        if (hangs) {
            hangs(so_far);
        }
    });
}

} // namespace conformance
} // namespace v0
} // namespace vouch
