// SPDX-License-Identifier: MIT
// The outside world of a simulated saga: every step has one effect, which happens once however often it is asked for,
// and is gone when the step is undone. Steps fail as the fault plan says. The truth about every effect is kept here, and
// every call that must not be made is reported.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <vouch/contract/entry.hpp>
#include <vouch/contract/id.hpp>
#include <vouch/run/failure.hpp>
#include <vouch/saga/command.hpp>
#include <vouch/saga/definition.hpp>
#include <vouch/saga/progress.hpp>
#include <vouch/testing/saga/detail/crashing_store.hpp>
#include <vouch/testing/saga/detail/violation.hpp>

namespace vouch {
inline namespace v0 {
namespace testing {
namespace detail {

/// When a participant settles the command it has carried out.
enum class reply_time : std::uint8_t { at_once, after_timeout, after_lease };

/// The faults of an action. Those after `fails_after_then_rejects` happen to remote steps only.
enum class action_fault : std::uint8_t {
    none,
    fails_once,
    fails_always,
    crashes_before,
    crashes_after,
    crashes_always,
    rejects,
    fails_after_always,
    fails_after_then_rejects,
    replies_late,
    replies_after_lease,
};
inline constexpr std::array<std::string_view, 11> action_faults{"",
                                                                "fails once",
                                                                "fails always",
                                                                "crashes before its effect",
                                                                "crashes after its effect",
                                                                "crashes always",
                                                                "rejects",
                                                                "fails after its effect, and always",
                                                                "fails after its effect, then rejects",
                                                                "replies late",
                                                                "replies after its lease"};
inline constexpr std::size_t local_action_faults = 9;

class step_effects {
  public:
    /// `skipped` says by index which steps have a condition that is false.
    step_effects(const saga_definition& d, simulated_process& in, const std::vector<bool>& skipped,
                 first_violation& wrong)
        : definition_(d), process_(in), wrong_(wrong) {
        steps_.resize(d.steps.size());
        for (std::size_t i = 0; i < steps_.size(); ++i) {
            steps_[i].is_skipped = i < skipped.size() && skipped[i];
        }
    }

    /// The truth about a step.
    struct step {
        /// A fault that every later call repeats.
        enum class habit : std::uint8_t { none, fails, crashes, rejects };

        bool is_skipped = false; ///< its condition is false
        bool has_effect = false;
        bool was_attempted = false; ///< called, or claimed by a process that then crashed: it may have an effect
        bool has_rejected = false;  ///< the last call rejected
        bool was_undone = false;    ///< its compensation was called
        id done_under{};            ///< the key of the call that had the effect
        id undone_under{};          ///< the key of the call that undid it
        habit forward = habit::none;
        habit undo = habit::none;
    };

    /// The forward action: returns its result, or throws. A call with the key of an earlier one has no further effect.
    std::string run(std::size_t i, const id& key) {
        auto& s = steps_[i];
        for (std::size_t earlier = 0; earlier < i; ++earlier) {
            report_if(!steps_[earlier].has_effect && !steps_[earlier].is_skipped, i,
                      "runs before an earlier step is done");
        }
        report_if(s.is_skipped, i, "runs although its condition is false");
        report_if(last_undone_.has_value(), i, "runs forward after compensation has begun");
        report_if(has_ended_, i, "runs after the saga has ended");
        const bool was_attempted_before = std::exchange(s.was_attempted, true);
        s.has_rejected = false;
        const auto fault = s.forward == step::habit::none && !s.has_effect ? choose(name(i), i) : action_fault::none;
        fail_before(fault, s.forward);
        if (fault == action_fault::rejects || s.forward == step::habit::rejects) {
            s.has_rejected = true;
            s.was_attempted = was_attempted_before;
            throw reject("rejected");
        }
        report_if(s.has_effect && s.done_under != key, i, "is done twice, under two keys");
        s.has_effect = true;
        s.done_under = key;
        fail_after(fault, s.forward);
        return result_of(i);
    }

    /// The compensation, given `result`. `is_known`: the store says that the forward action succeeded.
    void undo(std::size_t i, std::string_view result, bool is_known, const id& key) {
        auto& s = steps_[i];
        for (auto later = i + 1; later < steps_.size(); ++later) {
            report_if(steps_[later].has_effect && definition_.steps[later].has_undo(), i,
                      "is undone before a later step");
        }
        report_if(last_undone_ && i > *last_undone_, i, "is undone after an earlier step");
        report_if(s.has_rejected && !s.was_attempted, i, "is undone although it rejected");
        report_if(!s.was_attempted && !s.has_rejected, i, "is undone although it was never attempted");
        report_if(result != (is_known ? result_of(i) : std::string{}), i, "is undone with the wrong result");
        report_if(has_ended_, i, "is undone after the saga has ended");
        last_undone_ = i;
        s.was_undone = true;
        const auto fault = s.undo == step::habit::none ? choose("undo " + name(i), i) : action_fault::none;
        fail_before(fault, s.undo);
        if (fault == action_fault::rejects || s.undo == step::habit::rejects) {
            s.undo = step::habit::fails;
            throw reject("undo_rejected");
        }
        report_if(!s.undone_under.is_nil() && s.undone_under != key, i, "is undone twice, under two keys");
        s.undone_under = std::exchange(s.has_effect, false) ? key : s.undone_under;
        fail_after(fault, s.undo);
    }

    /// When the remote action that was just called replies. Resets to `at_once`.
    [[nodiscard]] reply_time take_reply_time() noexcept { return std::exchange(reply_, reply_time::at_once); }

    /// These claims, as they were claimed, are not settled in time. The steps they called, or may have called, may have
    /// had an effect, and their answers are lost.
    void lose_claims(const std::vector<entry>& claimed) {
        for (const auto& e : claimed) {
            const auto command = command_of(e);
            if (command && !command->is_compensation) {
                lose_answer(command->number - 1);
            } else if (!command) {
                const auto p = decode_progress(e.progress);
                if (p && may_call_action(*p)) {
                    lose_answer(p->at);
                }
            }
        }
    }
    void end() noexcept { has_ended_ = true; }
    /// Removes what makes steps fail, as an operator does before a resume.
    void repair() {
        has_ended_ = false;
        for (auto& s : steps_) {
            s.forward = s.undo = step::habit::none;
        }
    }

    [[nodiscard]] const std::vector<step>& steps() const noexcept { return steps_; }

  private:
    [[nodiscard]] static std::string result_of(std::size_t i) { return "r" + std::to_string(i); }

    void lose_answer(std::size_t i) {
        steps_.at(i).was_attempted = true;
        steps_.at(i).has_rejected = false;
    }
    /// Whether a claim of a saga with this progress calls a forward action in this process.
    [[nodiscard]] bool may_call_action(const saga_progress& p) const {
        const auto& steps = definition_.steps;
        if (p.direction != saga_direction::forward || p.at >= steps.size() || steps[p.at].is_remote()) {
            return false;
        }
        return p.at < p.steps.size() ? p.steps[p.at].state == step_state::begun : !steps[p.at].condition;
    }

    [[nodiscard]] action_fault choose(const std::string& where, std::size_t i) {
        const auto count = definition_.steps[i].is_remote() ? action_faults.size() : local_action_faults;
        return static_cast<action_fault>(
            process_.faults.choose(where, {action_faults.data(), action_faults.data() + count}));
    }

    void fail_before(action_fault fault, step::habit& habit) {
        habit = fault == action_fault::fails_always     ? step::habit::fails
                : fault == action_fault::crashes_always ? step::habit::crashes
                                                        : habit;
        if (fault == action_fault::crashes_before || habit == step::habit::crashes) {
            crash();
        }
        if (fault == action_fault::fails_once || habit == step::habit::fails) {
            throw failure("failed");
        }
    }
    void fail_after(action_fault fault, step::habit& habit) {
        if (fault == action_fault::crashes_after) {
            crash();
        }
        if (fault == action_fault::fails_after_always || fault == action_fault::fails_after_then_rejects) {
            habit = fault == action_fault::fails_after_always ? step::habit::fails : step::habit::rejects;
            throw failure("failed");
        }
        reply_ = fault == action_fault::replies_late          ? reply_time::after_timeout
                 : fault == action_fault::replies_after_lease ? reply_time::after_lease
                                                              : reply_time::at_once;
    }
    [[noreturn]] void crash() {
        process_.crash();
        throw failure("crash");
    }

    void report_if(bool is_wrong, std::size_t i, std::string_view what) {
        if (is_wrong) {
            wrong_.report("step " + name(i) + ' ' + std::string(what));
        }
    }
    [[nodiscard]] const std::string& name(std::size_t i) const { return definition_.steps[i].name; }

    const saga_definition& definition_;
    simulated_process& process_;
    first_violation& wrong_;
    std::vector<step> steps_{};
    std::optional<std::size_t> last_undone_{};
    reply_time reply_ = reply_time::at_once;
    bool has_ended_ = false;
};

} // namespace detail
} // namespace testing
} // namespace v0
} // namespace vouch
