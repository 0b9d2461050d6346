// SPDX-License-Identifier: MIT
// A claimed saga that compensates: every step that succeeded, or may have, is undone in reverse order, by an action in
// this process or by a compensating command, until nothing is left to undo or a compensation is stuck.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include <vouch/contract/outcome.hpp>
#include <vouch/contract/state.hpp>
#include <vouch/contract/time.hpp>
#include <vouch/policy/retry.hpp>
#include <vouch/run/failure.hpp>
#include <vouch/saga/definition.hpp>
#include <vouch/saga/detail/claim_state.hpp>
#include <vouch/saga/detail/command_channel.hpp>
#include <vouch/saga/detail/outcome.hpp>
#include <vouch/saga/progress.hpp>
#include <vouch/saga/step_call.hpp>

namespace vouch {
inline namespace v0 {
namespace detail {

template <class Store, class Rules>
class compensation_pass {
  public:
    compensation_pass(claim_state<Store>& claim, command_channel<Store>& commands) noexcept
        : claim_(claim), commands_(commands) {}

    /// Ends the way forward for this reason, and begins to compensate.
    [[nodiscard]] saga_outcome start(const std::string& reason) {
        auto& p = claim_.progress;
        p.direction = saga_direction::back;
        p.reason = error_code(reason);
        p.tries = 0;
        if (p.at < p.steps.size() && !p.is_waiting()) {
            auto& state = claim_.record().state;
            if (state == step_state::undecided) {
                state = step_state::failed;
            } else if (state == step_state::begun) {
                const bool may_have_run = !claim_.step().is_remote();
                state = may_have_run ? Rules::state_after_interruption(claim_.is_first_attempt()) : step_state::failed;
            }
        }
        claim_.is_changed = true;
        return run();
    }

    [[nodiscard]] saga_outcome run() {
        auto& p = claim_.progress;
        if (p.is_waiting()) {
            const bool is_forward = claim_.record().state == step_state::begun;
            if (auto unresolved = is_forward ? resolve_forward_command() : resolve_undo_command()) {
                return std::move(*unresolved);
            }
        }
        auto next = Rules::next_to_undo(p);
        while (next && !claim_.definition.steps[*next].has_undo()) {
            p.steps[*next].state = step_state::kept;
            next = Rules::next_to_undo(p);
        }
        if (!next) {
            // Emitting may have to wait until the topic is bound, so what has been learned is checkpointed first.
            const auto& topic = claim_.definition.options.compensated;
            const bool must_save = claim_.is_changed && !topic.empty();
            return must_save ? claim_.checkpoint(claim_.now) : claim_.finish("compensated", topic);
        }
        if (p.at != *next) {
            p.at = *next;
            p.tries = 0;
            claim_.is_changed = true;
        }
        if (claim_.step().is_remote()) {
            return send_undo();
        }
        return claim_.is_changed ? claim_.checkpoint(claim_.now) : run_undo();
    }

    /// Whether the current claim would call a compensation in this process.
    [[nodiscard]] bool is_at_local_undo() const {
        const auto& p = claim_.progress;
        return !p.is_waiting() && p.at < claim_.definition.steps.size() && !claim_.step().is_remote();
    }

  private:
    /// The forward command that was live when compensation began: cancels it, or waits for it if it is claimed. Returns
    /// nothing once the step's state is known.
    [[nodiscard]] std::optional<saga_outcome> resolve_forward_command() {
        const auto command = commands_.cancel(claim_.progress.reason);
        if (command && Rules::must_wait_for(*command)) {
            return claim_.wait_until(commands_.recheck_at(*command, command->lease_until.value_or(claim_.now)));
        }
        auto& record = claim_.record();
        record.state = Rules::state_from_late_reply(command ? &*command : nullptr);
        if (record.state == step_state::done) {
            record.result = command->result.value_or(std::string{});
            if (claim_.is_too_large() || !commands_.undo_fits(record.result)) {
                record.result.clear();
                record.state = step_state::unknown;
            }
        }
        commands_.forget();
        return std::nullopt;
    }

    /// Returns nothing once the compensating command has succeeded, or must be sent again at once.
    [[nodiscard]] std::optional<saga_outcome> resolve_undo_command() {
        auto& p = claim_.progress;
        auto command = commands_.find();
        if (command && is_live(command->state) && claim_.now < *p.deadline) {
            return claim_.wait_until(commands_.recheck_at(*command, *p.deadline));
        }
        command = commands_.cancel("timed_out");
        if (command && is_live(command->state)) {
            return claim_.wait_until(commands_.recheck_at(*command, command->lease_until.value_or(claim_.now)));
        }
        if (command && command->state == state::succeeded) {
            claim_.record().state = step_state::undone;
            commands_.forget();
            return std::nullopt;
        }
        if (claim_.is_resumed) { // the attempts of the dead entry do not count
            p.tries = 0;
            commands_.forget();
            return std::nullopt;
        }
        const auto code = !command ? std::string("reply_lost") : command->last_error;
        const bool has_rejected = command && command->result;
        p.tries += 1;
        const auto delay = delay_after(claim_.policy(), claim_.entry().id, p.tries);
        if (has_rejected || !delay || Rules::gives_up(p.tries, attempts_max_of(claim_.entry(), claim_.policy()))) {
            return saga_outcome{bury{.error = code}};
        }
        commands_.forget();
        return claim_.checkpoint(later(claim_.now, *delay));
    }

    /// If the command cannot be sent, what has been learned is checkpointed first, so that a dead saga shows where it
    /// is stuck.
    [[nodiscard]] saga_outcome send_undo() {
        const auto& p = claim_.progress;
        try {
            step_call call(claim_.delivery, p, p.at, Rules::result_for_undo(p, p.at));
            if (!commands_.send(claim_.step().undo_topic, claim_.step().undo(call), Rules::command_key(p))) {
                return claim_.is_changed ? claim_.checkpoint(claim_.now) : stuck("invalid_command");
            }
        } catch (...) {
            const auto why = claim_.current_exception();
            return claim_.is_changed ? claim_.checkpoint(claim_.now) : claim_.retry_or(why, stuck);
        }
        return claim_.checkpoint(*p.deadline);
    }

    [[nodiscard]] saga_outcome run_undo() {
        const auto& p = claim_.progress;
        if (claim_.entry().attempts + p.tries > attempts_max_of(claim_.entry(), claim_.policy())) {
            return stuck("attempts_exhausted");
        }
        try {
            step_call call(claim_.delivery, p, p.at, Rules::result_for_undo(p, p.at));
            static_cast<void>(claim_.step().undo(call));
        } catch (...) {
            return claim_.retry_or(claim_.current_exception(), stuck);
        }
        claim_.record().state = step_state::undone;
        return claim_.checkpoint(claim_.now);
    }

    [[nodiscard]] static saga_outcome stuck(const std::string& code) { return {bury{.error = code}}; }

    claim_state<Store>& claim_;
    command_channel<Store>& commands_;
};

} // namespace detail
} // namespace v0
} // namespace vouch
