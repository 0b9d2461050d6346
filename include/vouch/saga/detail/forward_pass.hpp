// SPDX-License-Identifier: MIT
// A claimed saga on its way forward: asks the current step's condition, runs its action or sends its command, reads the
// reply, and goes to the next step. A step that fails for good ends the way forward: the saga compensates.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include <vouch/contract/outcome.hpp>
#include <vouch/contract/state.hpp>
#include <vouch/contract/time.hpp>
#include <vouch/policy/retry.hpp>
#include <vouch/saga/definition.hpp>
#include <vouch/saga/detail/claim_state.hpp>
#include <vouch/saga/detail/command_channel.hpp>
#include <vouch/saga/detail/compensation_pass.hpp>
#include <vouch/saga/detail/outcome.hpp>
#include <vouch/saga/progress.hpp>
#include <vouch/saga/step_call.hpp>
#include <vouch/saga/step_results.hpp>

namespace vouch {
inline namespace v0 {
namespace detail {

template <class Store, class Rules>
class forward_pass {
  public:
    forward_pass(claim_state<Store>& claim, command_channel<Store>& commands,
                 compensation_pass<Store, Rules>& back) noexcept
        : claim_(claim), commands_(commands), back_(back) {}

    [[nodiscard]] saga_outcome run() {
        if (claim_.progress.at == claim_.definition.steps.size()) {
            return complete();
        }
        if (claim_.progress.is_waiting()) {
            return read_reply();
        }
        if (claim_.record().state == step_state::undecided) {
            return decide();
        }
        return claim_.step().is_remote() ? send() : run_action();
    }

  private:
    /// Asks the step's condition. A step that has one on record and none in the definition runs.
    [[nodiscard]] saga_outcome decide() {
        const auto& step = claim_.step();
        bool answer = true;
        try {
            answer = !step.condition || step.condition(claim_.delivery, step_results(claim_.progress));
        } catch (...) {
            return retry_or_fail();
        }
        if (Rules::runs_step(answer)) {
            claim_.record().state = step_state::begun;
        } else {
            claim_.record().state = step_state::skipped;
            claim_.delivery.tag("skipped " + step.name);
            claim_.begin_step(Rules::next_step(claim_.progress.at));
            if (claim_.is_too_large()) {
                step_back();
                return back_.start("progress_too_large");
            }
        }
        return Rules::records_answers() ? claim_.checkpoint(claim_.now) : run();
    }

    [[nodiscard]] saga_outcome run_action() {
        if (claim_.is_unsaved && claim_.step().timeout > duration::zero()) {
            return claim_.checkpoint(claim_.now); // otherwise every claim would restart the timeout
        }
        if (claim_.entry().attempts > attempts_max_of(claim_.entry(), claim_.policy())) {
            return fail_step(Rules::state_after_failure(), "attempts_exhausted");
        }
        if (is_too_late(claim_.now) && !claim_.is_first_attempt()) {
            return fail_step(Rules::state_after_failure(), "timed_out");
        }
        try {
            step_call call(claim_.delivery, claim_.progress, claim_.progress.at, {});
            claim_.record().result = claim_.step().forward(call);
        } catch (...) {
            return after_exception();
        }
        claim_.record().state = step_state::done;
        claim_.begin_step(Rules::next_step(claim_.progress.at));
        return claim_.is_too_large() ? drop_result() : claim_.checkpoint(claim_.now);
    }

    /// Call inside a catch clause.
    [[nodiscard]] saga_outcome after_exception() {
        const auto why = claim_.current_exception();
        if (why.is_permanent) {
            return fail_step(Rules::state_after_reject(claim_.is_first_attempt()), why.code);
        }
        auto next = after_failure(claim_.entry(), why.code, claim_.policy(), claim_.delivery.time());
        const auto* const again = std::get_if<retry>(&next);
        if (again == nullptr) {
            return fail_step(Rules::state_after_failure(), why.code);
        }
        if (claim_.is_expired(again->at)) { // the entry expires before the retry
            return fail_step(Rules::state_after_failure(), "expired");
        }
        return is_too_late(again->at) ? fail_step(Rules::state_after_failure(), "timed_out")
                                      : saga_outcome{std::move(next)};
    }

    [[nodiscard]] saga_outcome send() {
        const auto& p = claim_.progress;
        try {
            step_call call(claim_.delivery, p, p.at, {});
            if (!commands_.undo_fits(std::nullopt) ||
                !commands_.send(claim_.step().topic, claim_.step().forward(call), Rules::command_key(p))) {
                return fail_step(step_state::failed, "invalid_command");
            }
        } catch (...) {
            return retry_or_fail();
        }
        return claim_.checkpoint(*p.deadline);
    }

    [[nodiscard]] saga_outcome read_reply() {
        const auto command = commands_.find();
        if (command && is_live(command->state)) {
            const auto deadline = *claim_.progress.deadline;
            return claim_.now < deadline ? saga_outcome{release{.at = commands_.recheck_at(*command, deadline)}}
                                         : back_.start("timed_out");
        }
        const auto learned = Rules::state_from_reply(command ? &*command : nullptr);
        commands_.forget();
        if (learned != step_state::done) {
            return fail_step(learned, !command ? "reply_lost" : command->last_error);
        }
        claim_.record().state = learned;
        claim_.record().result = command->result.value_or(std::string{});
        if (!commands_.undo_fits(claim_.record().result)) {
            claim_.record().result.clear();
            return fail_step(step_state::unknown, "result_too_large");
        }
        claim_.begin_step(Rules::next_step(claim_.progress.at));
        if (claim_.is_too_large()) {
            return drop_result();
        }
        const bool runs_action = claim_.progress.at < claim_.definition.steps.size() && !claim_.step().is_remote() &&
                                 claim_.record().state == step_state::begun;
        return runs_action ? claim_.checkpoint(claim_.now) : run();
    }

    [[nodiscard]] saga_outcome complete() {
        auto out = claim_.finish("completed", claim_.definition.options.completed);
        out.completes = std::holds_alternative<succeed>(out.outcome) && Rules::honours_cancel();
        return out;
    }

    [[nodiscard]] saga_outcome fail_step(step_state learned, const std::string& code) {
        claim_.record().state = learned;
        return back_.start(code);
    }

    /// For a step of which nothing has been started. Call inside a catch clause.
    [[nodiscard]] saga_outcome retry_or_fail() {
        return claim_.retry_or(claim_.current_exception(),
                               [&](const std::string& code) { return fail_step(step_state::failed, code); });
    }

    /// A result that is too large to be kept cannot be given to the compensation: the step's state is unknown.
    [[nodiscard]] saga_outcome drop_result() {
        step_back();
        claim_.record().result.clear();
        return fail_step(step_state::unknown, "progress_too_large");
    }

    /// Returns from a step that has just begun, and of which nothing has run, to the one before it.
    void step_back() {
        claim_.progress.steps.resize(claim_.progress.at);
        claim_.progress.at -= 1;
    }

    [[nodiscard]] bool is_too_late(time_point at) const {
        const auto timeout = claim_.step().timeout;
        return timeout > duration::zero() && at >= later(claim_.progress.since, timeout);
    }

    claim_state<Store>& claim_;
    command_channel<Store>& commands_;
    compensation_pass<Store, Rules>& back_;
};

} // namespace detail
} // namespace v0
} // namespace vouch
