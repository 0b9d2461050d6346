// SPDX-License-Identifier: MIT
// The decisions of the saga engine, each a pure function: what a command that has ended says about its step, which step
// is undone next, when to give up. The rest of `detail/` carries them out. They are a template parameter of the engine,
// so that a test can plant a wrong decision and see the verifier catch it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include <vouch/contract/entry.hpp>
#include <vouch/contract/id.hpp>
#include <vouch/contract/saga_origin.hpp>
#include <vouch/contract/state.hpp>
#include <vouch/saga/command.hpp>
#include <vouch/saga/progress.hpp>

namespace vouch {
inline namespace v0 {
namespace detail {

struct saga_rules {
    /// The state of a step whose forward command has ended. Null: the command is gone, and nothing is known of it.
    ///
    /// A rejection says that this attempt did nothing. It says nothing about earlier attempts, so it is a known failure
    /// only if the command was claimed once. `epoch` counts every claim; the other counters do not: in a dead entry, a
    /// claim that lapsed cannot be told from one that was released. A participant in another service counts its claims
    /// itself, and its reply carries a result only if it rejects in its first attempt.
    [[nodiscard]] static step_state state_from_reply(const entry* command) noexcept {
        if (command == nullptr) {
            return step_state::unknown;
        }
        if (command->state == state::succeeded) {
            return step_state::done;
        }
        const bool was_tried_once = command->epoch == 1 || is_relayed(*command);
        const bool was_rejected_at_once = command->result.has_value() && was_tried_once;
        const bool was_never_claimed = command->epoch == 0;
        return was_rejected_at_once || was_never_claimed ? step_state::failed : step_state::unknown;
    }

    /// The same for a command that was still live when the saga began to compensate.
    [[nodiscard]] static step_state state_from_late_reply(const entry* command) noexcept {
        return state_from_reply(command);
    }

    /// The state of a step whose action in this process has used up its attempts or its time.
    [[nodiscard]] static step_state state_after_failure() noexcept { return step_state::unknown; }

    /// The state of a step whose action in this process rejects. As for a command, a rejection says nothing about
    /// earlier attempts.
    [[nodiscard]] static step_state state_after_reject(bool is_first_attempt) noexcept {
        return is_first_attempt ? step_state::failed : step_state::unknown;
    }

    /// The state of a step in this process when the saga begins to compensate before this claim calls its action.
    [[nodiscard]] static step_state state_after_interruption(bool is_first_attempt) noexcept {
        return is_first_attempt ? step_state::failed : step_state::unknown;
    }

    /// Whether a step runs, given its condition's answer; otherwise it is skipped.
    [[nodiscard]] static bool runs_step(bool answer) noexcept { return answer; }

    /// Whether a condition's answer is stored before anything follows from it. If it were not, a condition whose answer
    /// changes could skip a step that ran, or run one that was skipped.
    [[nodiscard]] static bool records_answers() noexcept { return true; }

    /// The step after one that is done or skipped.
    [[nodiscard]] static std::size_t next_step(std::size_t step) noexcept { return step + 1; }

    /// Whether the command may still have an effect, so that no earlier step may be undone yet.
    [[nodiscard]] static bool must_wait_for(const entry& command) noexcept { return is_live(command.state); }

    /// The last step that had an effect, or may have had one; none if everything is undone.
    [[nodiscard]] static std::optional<std::size_t> next_to_undo(const saga_progress& p) noexcept {
        for (std::size_t i = p.steps.size(); i-- > 0;) {
            if (p.steps[i].state == step_state::done || p.steps[i].state == step_state::unknown) {
                return i;
            }
        }
        return std::nullopt;
    }

    /// The forward result that a compensation receives.
    [[nodiscard]] static std::string_view result_for_undo(const saga_progress& p, std::size_t step) noexcept {
        return p.steps[step].result;
    }

    /// The idempotency key of a command for the current step.
    [[nodiscard]] static id command_key(const saga_progress& p) noexcept {
        return saga_key(p.origin, p.steps[p.at].name, p.direction == saga_direction::back);
    }

    /// Whether the saga stops sending a compensating command that has failed this often.
    [[nodiscard]] static bool gives_up(std::uint32_t tries, std::uint32_t tries_max) noexcept {
        return tries >= tries_max;
    }

    /// Whether a saga on its way forward obeys a request to cancel.
    [[nodiscard]] static bool honours_cancel() noexcept { return true; }

    /// Whether a saga compensates when its entry expires or uses up its attempts; otherwise the entry is buried.
    [[nodiscard]] static bool compensates_at_end() noexcept { return true; }
};

} // namespace detail
} // namespace v0
} // namespace vouch
