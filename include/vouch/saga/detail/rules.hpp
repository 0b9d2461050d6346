// SPDX-License-Identifier: MIT
// The decisions of the saga engine, each a pure function: what an ended command tells of its step, which step is to be
// undone next, when to give up. The engine (`saga.hpp`) carries them out. They are a parameter of the engine so that a
// test can replace one by a wrong one and see that it is caught; the default is what is shipped.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include <vouch/contract/entry.hpp>
#include <vouch/contract/id.hpp>
#include <vouch/contract/state.hpp>
#include <vouch/saga/origin.hpp>
#include <vouch/saga/progress.hpp>

namespace vouch {
inline namespace v0 {

struct saga_rules {
    /// What a forward command that has ended tells of its step; null: it is gone, and nothing is known of it.
    ///
    /// A rejection says that this attempt has done nothing. It says nothing about earlier ones, so it is a known
    /// failure only if the command was claimed once. `epoch` counts every claim ever; the other counters do not:
    /// a dead entry no longer tells a claim that lapsed from one that was handed back.
    [[nodiscard]] static step_state learned_from(const entry* command) noexcept {
        if (command == nullptr) {
            return step_state::unknown;
        }
        if (command->state == state::succeeded) {
            return step_state::done;
        }
        const bool has_rejected_at_once = command->result.has_value() && command->epoch == 1;
        const bool was_never_claimed = command->epoch == 0;
        return has_rejected_at_once || was_never_claimed ? step_state::failed : step_state::unknown;
    }

    /// The same, of a command that was still live when the saga turned round.
    [[nodiscard]] static step_state learned_late(const entry* command) noexcept { return learned_from(command); }

    /// What an action in this process that has used up its attempts, or its time, tells of its step.
    [[nodiscard]] static step_state learned_from_failing() noexcept { return step_state::unknown; }

    /// What an action in this process that rejects tells of its step: as with a command, nothing of earlier tries.
    [[nodiscard]] static step_state learned_from_rejecting(bool is_first_try) noexcept {
        return is_first_try ? step_state::failed : step_state::unknown;
    }

    /// What is known of a step that was begun in this process when the saga turns round before calling it in this
    /// claim.
    [[nodiscard]] static step_state learned_from_claims(bool is_first_try) noexcept {
        return is_first_try ? step_state::failed : step_state::unknown;
    }

    /// Whether a step is done whose condition has answered; else it is skipped.
    [[nodiscard]] static bool is_chosen(bool answer) noexcept { return answer; }

    /// Whether a condition's answer is recorded before anything follows from it. Else a condition that answers
    /// otherwise later would have a step skipped that was done, or done that was skipped.
    [[nodiscard]] static bool records_answers() noexcept { return true; }

    /// The step after one that is done or skipped.
    [[nodiscard]] static std::size_t after(std::size_t step) noexcept { return step + 1; }

    /// Whether what the saga waits for may still come to something, so that nothing earlier is undone yet.
    [[nodiscard]] static bool must_wait_for(const entry& command) noexcept { return is_live(command.state); }

    /// The last step that has done something, or may have; none: all is undone.
    [[nodiscard]] static std::optional<std::size_t> next_to_undo(const saga_progress& p) noexcept {
        for (std::size_t i = p.steps.size(); i-- > 0;) {
            if (p.steps[i].state == step_state::done || p.steps[i].state == step_state::unknown) {
                return i;
            }
        }
        return std::nullopt;
    }

    /// The forward result handed to a compensation.
    [[nodiscard]] static std::string_view handed_to_undo(const saga_progress& p, std::size_t step) noexcept {
        return p.steps[step].result;
    }

    /// The idempotency key of the command that is sent for the step whose turn it is.
    [[nodiscard]] static id key_of(const saga_progress& p) noexcept {
        return saga_key(p.origin, p.steps[p.at].name, p.direction == saga_direction::back);
    }

    /// Whether a compensation whose commands have failed so often is given up.
    [[nodiscard]] static bool gives_up(std::uint32_t tries, std::uint32_t tries_max) noexcept {
        return tries >= tries_max;
    }

    /// Whether a saga on its way forward heeds a request to turn round.
    [[nodiscard]] static bool heeds_cancel() noexcept { return true; }

    /// Whether running out of time or of attempts turns the saga round; else it is buried where it stands.
    [[nodiscard]] static bool turns_round_at_the_end() noexcept { return true; }
};

} // namespace v0
} // namespace vouch
