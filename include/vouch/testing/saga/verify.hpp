// SPDX-License-Identifier: MIT
// Checks a saga definition by simulation: runs the saga on the shipped engine and runner through every combination of a
// few faults, and checks each run.
//
//   CHECK(vouch::testing::verify(order_saga).is_sound());
//
// The faults: a step or its compensation fails, rejects, times out, crashes before or after its effect, or replies late;
// the process crashes before or after any commit; a runner is slower than its lease; the saga is cancelled, expires, or
// is abandoned and resumed. Every run must end completed, compensated, or dead; a dead saga must end compensated once
// the fault is repaired and the saga resumed. Every effect must be undone exactly when it should be, and only once for a
// participant that recognises a command by its key.
//
// `verify` checks the definition's shape, policies and timeouts, for every answer its conditions can give. It never
// calls the definition's own actions and conditions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include <vouch/saga/definition.hpp>
#include <vouch/saga/detail/rules.hpp>
#include <vouch/testing/saga/detail/fault_plan.hpp>
#include <vouch/testing/saga/detail/saga_run.hpp>

namespace vouch {
inline namespace v0 {
namespace testing {

/// How a participant recognises a command that it has already executed. With `command_id` it executes a compensating
/// command that is sent again a second time.
enum class dedup_by : std::uint8_t { key, command_id };

struct verify_options {
    std::size_t faults_max = 2;       ///< in one run; a fault that repeats, such as failing always, counts once
    std::size_t runs_max = 1'000'000; ///< a saga that needs more is reported as not sound
    dedup_by dedup = dedup_by::key;   ///< how the simulated participants recognise a command
};

struct verification {
    std::size_t runs = 0;
    std::size_t paths = 0;       ///< runs that differ in their store calls
    std::size_t completed = 0;   ///< of these paths
    std::size_t compensated = 0; ///< of these paths
    std::size_t dead = 0;        ///< of these paths, before the resume
    std::string violation{};     ///< what the first wrong run did; empty: every run was right
    std::string path{};          ///< the faults of that run

    [[nodiscard]] bool is_sound() const noexcept { return runs > 0 && violation.empty(); }
};

/// A summary of one line, and the violation with its path if there is one.
[[nodiscard]] inline std::string to_string(const verification& v) {
    auto out = std::to_string(v.paths) + " paths: " + std::to_string(v.completed) + " completed, " +
               std::to_string(v.compensated) + " compensated, " + std::to_string(v.dead) + " dead for an operator";
    return v.is_sound() ? out : out + "\nnot sound: " + v.violation + "\non the path: " + v.path;
}

namespace detail {

/// Every combination of answers of a definition's conditions: by index, whether the step is skipped.
[[nodiscard]] inline std::vector<std::vector<bool>> all_answers(const saga_definition& d) {
    std::vector<std::vector<bool>> out{std::vector<bool>(d.steps.size())};
    for (std::size_t i = 0; i < d.steps.size(); ++i) {
        if (d.steps[i].condition && !d.steps[i].is_otherwise) {
            const auto count = out.size();
            for (std::size_t n = 0; n < count; ++n) {
                out.push_back(out[n]);
                out.back()[i] = true;
            }
        }
    }
    return out;
}

/// `verify` on an engine with other rules, for tests of the verifier itself.
template <class Rules>
[[nodiscard]] verification verify_with(const saga_definition& definition, const verify_options& how = {}) {
    validate(definition);
    verification out;
    std::unordered_set<std::uint64_t> seen;
    for (const auto& skipped : all_answers(definition)) {
        std::vector<std::size_t> options;
        do {
            if (out.runs == how.runs_max) {
                out.violation = "not verified: more than runs_max = " + std::to_string(how.runs_max) +
                                " runs are needed; raise it or lower faults_max";
                return out;
            }
            fault_plan faults(std::move(options), how.faults_max);
            const auto result = saga_run<Rules>(definition, faults, {how.dedup == dedup_by::command_id, skipped}).run();
            out.runs += 1;
            if (seen.insert(result.calls).second) {
                out.paths += 1;
                out.completed += result.end == saga_end::completed ? 1U : 0U;
                out.compensated += result.end == saga_end::compensated ? 1U : 0U;
                out.dead += result.end == saga_end::dead ? 1U : 0U;
            }
            if (!result.violation.empty()) {
                out.violation = result.violation;
                out.path = result.path.empty() ? "no fault" : result.path;
                return out;
            }
            options = faults.next();
        } while (!options.empty());
    }
    return out;
}

} // namespace detail

/// Simulates every run of the saga with up to `faults_max` faults, and stops at the first one that is wrong. Throws
/// `invalid_argument` for a definition that cannot run.
[[nodiscard]] inline verification verify(const saga_definition& definition, const verify_options& how = {}) {
    return detail::verify_with<vouch::detail::saga_rules>(definition, how);
}

} // namespace testing
} // namespace v0
} // namespace vouch
