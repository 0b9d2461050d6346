// SPDX-License-Identifier: MIT
// Goes through every course a saga can take, on the shipped engine and runner, with up to so many troubles at once:
// each step failing, rejecting, timing out, crashing before and after its effect and around every commit, answering
// late, its compensation failing; requests to cancel, expiry, runners slower than their lease. Each must end completed,
// compensated, or dead for an operator and then, resumed, compensated; and every effect that happened is undone exactly
// when it should be, and only once for a participant that knows a command by its key.
//
//   CHECK(vouch::testing::verify(order_saga).is_sound());
//
// The definition's own actions and conditions are not called: what is verified is its shape, with its policies and
// timeouts, for every way its conditions can answer.
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

struct verify_options {
    std::size_t troubles_max = 2;       ///< at once; a habit, such as failing always, is one
    std::size_t trials_max = 1'000'000; ///< after which it is given up, and not sound
    dedup_by dedup = dedup_by::key;     ///< what the participants know a command by that they have carried out
};

struct verification {
    std::size_t trials = 0;
    std::size_t paths = 0; ///< courses of events that differ in their store calls
    std::size_t completed = 0;
    std::size_t compensated = 0;
    std::size_t dead = 0;
    std::string complaint{}; ///< of the first course that went wrong; empty: none did
    std::string path{};      ///< what went wrong in it

    [[nodiscard]] bool is_sound() const noexcept { return trials > 0 && complaint.empty(); }
};

[[nodiscard]] inline std::string to_string(const verification& v) {
    auto out = std::to_string(v.paths) + " paths: " + std::to_string(v.completed) + " completed, " +
               std::to_string(v.compensated) + " compensated, " + std::to_string(v.dead) + " dead for an operator";
    return v.is_sound() ? out : out + "\nnot sound: " + v.complaint + "\non the path: " + v.path;
}

namespace detail {

/// Every way a definition's conditions can answer, by number of the step: true is skipped.
[[nodiscard]] inline std::vector<std::vector<bool>> all_answers(const saga_definition& d) {
    std::vector<std::vector<bool>> out{std::vector<bool>(d.steps.size())};
    for (std::size_t i = 0; i < d.steps.size(); ++i) {
        if (d.steps[i].condition && !d.steps[i].is_otherwise) {
            const auto so_far = out.size();
            for (std::size_t n = 0; n < so_far; ++n) {
                out.push_back(out[n]);
                out.back()[i] = true;
            }
        }
    }
    return out;
}

} // namespace detail

/// Stops at the first course that is not as it should be. `Rules` is for testing the verifier itself.
template <class Rules = vouch::detail::saga_rules>
[[nodiscard]] verification verify(const saga_definition& definition, verify_options how = {}) {
    validate(definition);
    verification out;
    std::unordered_set<std::uint64_t> seen;
    for (const auto& skipped : detail::all_answers(definition)) {
        std::vector<std::size_t> ways;
        do {
            if (out.trials == how.trials_max) {
                out.complaint = "more courses than trials_max";
                return out;
            }
            choices fate(std::move(ways), how.troubles_max);
            const auto result = saga_trial<Rules>(definition, fate, {how.dedup, skipped}).run();
            out.trials += 1;
            if (seen.insert(result.calls).second) {
                out.paths += 1;
                out.completed += result.end == saga_end::completed ? 1U : 0U;
                out.compensated += result.end == saga_end::compensated ? 1U : 0U;
                out.dead += result.end == saga_end::dead ? 1U : 0U;
            }
            if (!result.complaint.empty()) {
                out.complaint = result.complaint;
                out.path = result.path.empty() ? "the ordinary one" : result.path;
                return out;
            }
            ways = fate.next();
        } while (!ways.empty());
    }
    return out;
}

} // namespace testing
} // namespace v0
} // namespace vouch
