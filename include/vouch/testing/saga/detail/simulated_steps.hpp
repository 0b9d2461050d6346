// SPDX-License-Identifier: MIT
// The actions, conditions and participants of a simulated run. They take the place of the definition's own, have their
// effects in `step_effects`, and report conditions that the engine asks at the wrong time.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <vouch/run/delivery.hpp>
#include <vouch/saga/command.hpp>
#include <vouch/saga/definition.hpp>
#include <vouch/saga/progress.hpp>
#include <vouch/saga/step_call.hpp>
#include <vouch/saga/step_results.hpp>
#include <vouch/testing/saga/detail/step_effects.hpp>
#include <vouch/testing/saga/detail/stored_saga.hpp>
#include <vouch/testing/saga/detail/violation.hpp>

namespace vouch {
inline namespace v0 {
namespace testing {
namespace detail {

struct run_options {
    /// Participants recognise a command they have carried out by its id, not by its key: they act again on a
    /// compensating command that is sent again.
    bool dedup_by_id = false;
    std::vector<bool> skipped{}; ///< by index: the step's condition is false. That of an `otherwise` step follows
};

/// The options with an answer for every step of the definition.
[[nodiscard]] inline run_options complete(run_options how, const saga_definition& d) {
    how.skipped.resize(d.steps.size());
    for (std::size_t i = 0; i < d.steps.size(); ++i) {
        const auto& s = d.steps[i];
        how.skipped[i] = s.is_otherwise ? !how.skipped[i - 1] : how.skipped[i] && s.condition;
    }
    return how;
}

class simulated_steps {
  public:
    simulated_steps(const saga_definition& of, const run_options& how, step_effects& effects, const stored_saga& saga,
                    first_violation& wrong) noexcept
        : given_(of), how_(how), effects_(effects), saga_(saga), wrong_(wrong) {}
    simulated_steps(const simulated_steps&) = delete;
    simulated_steps& operator=(const simulated_steps&) = delete;

    /// The given definition's steps, policies and timeouts with simulated actions. It refers to this object.
    [[nodiscard]] saga_definition definition() {
        auto out = given_;
        out.check = nullptr;
        for (std::size_t i = 0; i < out.steps.size(); ++i) {
            auto& s = out.steps[i];
            if (s.condition && !s.is_otherwise) {
                s.condition = [this, i](const delivery&, const step_results&) { return answer(i); };
            }
            if (s.is_remote()) {
                make_remote(s);
            } else {
                make_local(s, i);
            }
        }
        return out;
    }

    /// Handles a command on behalf of its participant.
    [[nodiscard]] std::string handle_command(const delivery& d) {
        const auto command = command_of(d.entry());
        if (!command || d.entry().group.empty()) {
            wrong_.report("a participant cannot recognise a command");
            return {};
        }
        const auto i = command->number - 1;
        const auto& known_by = how_.dedup_by_id ? command->id : command->key;
        if (!command->is_compensation) {
            return effects_.run(i, known_by);
        }
        effects_.undo(i, command->payload, saga_.is_known_done(i), known_by);
        return {};
    }

  private:
    void make_local(saga_step& s, std::size_t i) {
        s.forward = [this, i](step_call& call) {
            check_answers(i);
            return effects_.run(i, call.key());
        };
        if (s.undo) {
            s.undo = [this, i](step_call& call) {
                effects_.undo(i, call.result(), saga_.is_known_done(i), call.key());
                return std::string(call.result());
            };
        }
    }
    static void make_remote(saga_step& s) {
        s.forward = [](step_call&) { return std::string{}; };
        if (s.undo) {
            s.undo = [](step_call& call) { return std::string(call.result()); };
        }
    }

    [[nodiscard]] bool is_undecided(std::size_t i) const {
        return saga_.state_of(i).value_or(step_state::undecided) == step_state::undecided;
    }
    /// The answer of a condition.
    [[nodiscard]] bool answer(std::size_t i) {
        if (!is_undecided(i)) {
            wrong_.report("the condition of step " + given_.steps[i].name +
                          " is asked again after its answer is stored");
        }
        return !how_.skipped[i];
    }
    /// No action may run while the answer of a condition up to that step is not stored.
    void check_answers(std::size_t up_to) {
        for (std::size_t i = 0; i <= up_to; ++i) {
            if (given_.steps[i].condition && is_undecided(i)) {
                wrong_.report("an action runs before the answer of the condition of step " + given_.steps[i].name +
                              " is stored");
            }
        }
    }

    const saga_definition& given_;
    const run_options& how_;
    step_effects& effects_;
    const stored_saga& saga_;
    first_violation& wrong_;
};

} // namespace detail
} // namespace testing
} // namespace v0
} // namespace vouch
