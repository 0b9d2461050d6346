// SPDX-License-Identifier: MIT
// The definition of a saga: named steps, each with a forward action and a compensation, in this process or at a remote
// participant; retries and timeouts; the topics emitted at the end. A definition is a plain value, usually made by
// `define_saga` (`builder.hpp`). Any number of threads may use a definition, if its actions allow that.
//
// Give a definition another version whenever you change its steps or their conditions: a saga continues with the
// version it began with, or not at all.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <vouch/contract/error.hpp>
#include <vouch/contract/limits.hpp>
#include <vouch/contract/time.hpp>
#include <vouch/contract/validate.hpp>
#include <vouch/outbox/codec.hpp>
#include <vouch/outbox/emission.hpp>
#include <vouch/outbox/emitter.hpp>
#include <vouch/policy/retry.hpp>
#include <vouch/saga/progress.hpp>
#include <vouch/saga/step_call.hpp>
#include <vouch/saga/step_results.hpp>

namespace vouch {
inline namespace v0 {

/// An action: does its work and returns its result as bytes. It throws `reject` if it has done nothing and never will;
/// after any other exception it is called again by policy.
using step_action = std::function<std::string(step_call&)>;

/// Decides whether a step runs. It must be a pure function: the same context and results give the same answer. It is
/// called when the step is next. Its answer is stored before anything follows from it, and then it is not called again.
/// If it throws, the step fails without an effect.
using step_condition = std::function<bool(const delivery&, const step_results&)>;

/// Options of a step in this process.
struct step_options {
    std::optional<retry_policy> retry{}; ///< unset: the saga's
    duration timeout{};                  ///< for the step with all its retries; 0: none
};

/// Options of a step at a remote participant. Commands are entries in the participant's queue in the same store, and the
/// end of a command is its reply.
struct command_options {
    std::string queue{}; ///< of the participant; required
    std::string topic{}; ///< of the forward command; required
    std::string undo{};  ///< topic of the compensating command; empty: there is none
    /// `attempts_max` applies to each command; the whole policy applies to sending the compensating command again.
    std::optional<retry_policy> retry{};
    duration timeout = std::chrono::hours{1}; ///< how long to wait for the reply, from the sending of the command
};

/// One step, as the builder makes it.
struct saga_step {
    std::string name{};
    step_action forward{};    ///< in this process: the action; for a command: makes its payload
    step_action undo{};       ///< likewise for the compensation; empty: there is none
    std::string queue{};      ///< of the participant; empty: the step runs in this process
    std::string topic{};      ///< of the forward command
    std::string undo_topic{}; ///< of the compensating command
    std::optional<retry_policy> retry{};
    duration timeout{};
    bool carries_compensation = false; ///< the payload of the compensating command is a `compensation`
    step_condition condition{};        ///< empty: the step always runs
    bool is_otherwise = false;         ///< the step runs exactly if the one before it is skipped

    [[nodiscard]] bool is_remote() const noexcept { return !queue.empty(); }
    [[nodiscard]] bool has_undo() const noexcept { return static_cast<bool>(undo); }
};

struct saga_options {
    std::uint32_t version = 1; ///< counts from 1
    std::string completed{};   ///< topic to emit when all steps are done; empty: none
    std::string compensated{}; ///< topic to emit when everything is undone; empty: none
    std::string queue{};       ///< the queue of these two; empty: every queue bound to the topic
    retry_policy retry{};      ///< of steps without their own
};

/// Prefix of the groups that sagas share with their commands.
inline constexpr std::string_view saga_group_prefix = "saga:";

struct saga_definition {
    std::string name{}; ///< also the topic of its entries
    saga_options options{};
    std::vector<saga_step> steps{};
    std::function<void(const delivery&)> check{}; ///< throws `reject` if the payload cannot be decoded

    [[nodiscard]] const retry_policy& retry_of(const saga_step& s) const { return s.retry ? *s.retry : options.retry; }

    [[nodiscard]] bool has_commands() const noexcept {
        return std::any_of(steps.begin(), steps.end(), [](const saga_step& s) { return s.is_remote(); });
    }

    /// The emission that starts this saga, as `outbox.start(saga, queue, context)` emits it. `how` names the queue, and
    /// whatever else an emission may say; topic, payload and progress come from here.
    ///
    /// A saga that sends commands gets a group of its own, which its commands share: that keeps a purge from removing a
    /// reply before the saga has read it. The group's name begins with `saga_group_prefix`, and its completion is
    /// reported like that of any other group. If `how` names another group, or the store has no groups, keep the
    /// participants' ended entries for longer than a saga takes: a reply that is gone counts as unknown.
    [[nodiscard]] emission begin(const emitter& from, emission how, std::string payload) const {
        how.topic = name;
        how.payload = std::move(payload);
        how.progress = encode_progress({.definition = name, .version = options.version});
        if (how.group.empty() && has_commands()) {
            how.group = std::string(saga_group_prefix) + to_string(from.fresh_id());
        }
        return how;
    }
    template <encodable Context>
    [[nodiscard]] emission begin(const emitter& from, emission how, const Context& context) const {
        return begin(from, std::move(how), encode(context));
    }
};

/// Throws `invalid_argument` for a definition that cannot run.
inline void validate(const saga_definition& d) {
    const auto name_max = limits{}.name_max;
    detail::check_required_name({"saga", "name"}, d.name, name_max);
    detail::check_name({"saga", "completed"}, d.options.completed, name_max);
    detail::check_name({"saga", "compensated"}, d.options.compensated, name_max);
    detail::check_name({"saga", "queue"}, d.options.queue, name_max);
    if (d.options.version == 0) {
        detail::refuse({"saga", "version"}, "is 0; versions count from 1");
    }
    if (d.steps.empty()) {
        detail::refuse({"saga", "steps"}, "are none; a saga needs at least one");
    }
    for (std::size_t i = 0; i < d.steps.size(); ++i) {
        const auto& s = d.steps[i];
        detail::check_required_name({"saga step", "name", i}, s.name, name_max);
        for (std::size_t earlier = 0; earlier < i; ++earlier) {
            if (d.steps[earlier].name == s.name) {
                detail::refuse({"saga step", "name", i}, "is also the name of step " + std::to_string(earlier));
            }
        }
        if (!s.forward) {
            detail::refuse({"saga step", "forward action", i}, "is missing");
        }
        if (s.is_otherwise && (i == 0 || !d.steps[i - 1].condition)) {
            detail::refuse({"saga step", "otherwise", i}, "needs a step with a condition before it");
        }
        if (s.timeout < duration::zero()) {
            detail::refuse({"saga step", "timeout", i}, "is negative");
        }
        if (s.is_remote()) {
            detail::check_required_name({"saga step", "queue", i}, s.queue, name_max);
            detail::check_required_name({"saga step", "topic", i}, s.topic, name_max);
            detail::check_name({"saga step", "undo topic", i}, s.undo_topic, name_max);
            if (s.timeout == duration::zero()) {
                detail::refuse({"saga step", "timeout", i}, "is 0; a command needs one");
            }
        }
    }
}

} // namespace v0
} // namespace vouch
