// SPDX-License-Identifier: MIT
// What a saga consists of: named steps, each with a forward action and a way to undo it, in this process or at a remote
// participant; retries and timeouts; what is emitted at the end. A definition is a value, checked when it is built, and
// only read afterwards, by as many threads as like.
//
//   const auto order_saga = vouch::define_saga<order>("order", {.completed = "order.confirmed"})
//       .step("payment", charge, refund)                                                   // in this process
//       .step("gift wrap", wrap).when([](const order& o) { return o.is_gift; })            // or skipped
//       .command("shipping", {.queue = "shipping", .topic = "schedule", .undo = "cancel"}) // at a participant
//       .build();
//
// Change the steps or their conditions, and the version changes too: a saga is carried on by the version it began with,
// or not at all.
#pragma once

#include <algorithm>
#include <chrono>
#include <concepts>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <vouch/contract/error.hpp>
#include <vouch/contract/limits.hpp>
#include <vouch/contract/saga_progress.hpp>
#include <vouch/contract/time.hpp>
#include <vouch/contract/validate.hpp>
#include <vouch/outbox/codec.hpp>
#include <vouch/outbox/emission.hpp>
#include <vouch/outbox/emitter.hpp>
#include <vouch/policy/retry.hpp>
#include <vouch/saga/compensation.hpp>
#include <vouch/saga/step_call.hpp>
#include <vouch/saga/step_results.hpp>

namespace vouch {
inline namespace v0 {

/// An action, brought to one form: does something, and gives its result as bytes. It throws `reject` if it has done
/// nothing and never will, and anything else to be called again by policy.
using step_action = std::function<std::string(step_call&)>;

/// Whether a step is done at all. A pure function: the same context and results always give the same answer. It is
/// asked when it is the step's turn, and its answer is recorded before anything follows from it; after that it is not
/// asked again. Throwing is the step's failure, with nothing done.
using step_condition = std::function<bool(const delivery&, const step_results&)>;

struct step_options {
    std::optional<retry_policy> retry{}; ///< unset: the saga's
    /// How long the step may take, retries included; 0: as long as its retries do. A command counts from its sending.
    duration timeout{};
};

/// A step at a remote participant: commands go to its queue in the same store, and what becomes of them is the reply.
struct command_options {
    std::string queue{};                 ///< required
    std::string topic{};                 ///< required; of the forward command
    std::string undo{};                  ///< topic of the compensating command; empty: nothing to undo
    std::optional<retry_policy> retry{}; ///< attempts_max: of each command; all of it: of the compensating commands
    duration timeout = std::chrono::hours{1}; ///< after which the reply is not waited for
};

struct saga_step {
    std::string name{};
    step_action forward{}; ///< for a command: makes its payload
    step_action undo{};    ///< empty: there is none. For a command: makes its payload
    std::string queue{};   ///< of the participant; empty: in this process
    std::string topic{};
    std::string undo_topic{};
    std::optional<retry_policy> retry{};
    duration timeout{};
    bool carries_compensation = false; ///< its compensating command has a `compensation` for its payload
    step_condition condition{};        ///< empty: it is always done
    bool is_otherwise = false;         ///< it is done exactly if the step before it was skipped

    [[nodiscard]] bool is_remote() const noexcept { return !queue.empty(); }
    [[nodiscard]] bool has_undo() const noexcept { return static_cast<bool>(undo); }
};

struct saga_options {
    std::uint32_t version = 1;
    std::string completed{};   ///< topic emitted when all steps are done; empty: none
    std::string compensated{}; ///< topic emitted when all is undone; empty: none
    std::string queue{};       ///< where these go; empty: to every queue bound to them
    retry_policy retry{};      ///< for steps that say nothing of their own
};

/// How the groups begin that sagas share with their commands.
inline constexpr std::string_view saga_group_prefix = "saga:";

struct saga_definition {
    std::string name{}; ///< also the topic of its entries
    saga_options options{};
    std::vector<saga_step> steps{};
    std::function<void(const delivery&)> check{}; ///< throws if the payload is no context of this saga

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

/// Throws `invalid_argument` for a definition that cannot be run.
inline void validate(const saga_definition& d) {
    const auto name_max = limits{}.name_max;
    detail::check_required_name({"saga", "name"}, d.name, name_max);
    detail::check_name({"saga", "completed"}, d.options.completed, name_max);
    detail::check_name({"saga", "compensated"}, d.options.compensated, name_max);
    detail::check_name({"saga", "queue"}, d.options.queue, name_max);
    if (d.options.version == 0) {
        detail::refuse({"saga", "version"}, "is 0, versions count from 1");
    }
    if (d.steps.empty()) {
        detail::refuse({"saga", "steps"}, "are none, a saga has at least one");
    }
    for (std::size_t i = 0; i < d.steps.size(); ++i) {
        const auto& s = d.steps[i];
        detail::check_required_name({"saga step", "name", i}, s.name, name_max);
        for (std::size_t earlier = 0; earlier < i; ++earlier) {
            if (d.steps[earlier].name == s.name) {
                detail::refuse({"saga step", "name", i}, "is the same as that of step " + std::to_string(earlier));
            }
        }
        if (!s.forward) {
            detail::refuse({"saga step", "forward action", i}, "is missing");
        }
        if (s.is_otherwise && (i == 0 || !d.steps[i - 1].condition)) {
            detail::refuse({"saga step", "otherwise", i}, "has no step with a condition before it");
        }
        if (s.timeout < duration::zero()) {
            detail::refuse({"saga step", "timeout", i}, "is negative");
        }
        if (s.is_remote()) {
            detail::check_required_name({"saga step", "queue", i}, s.queue, name_max);
            detail::check_required_name({"saga step", "topic", i}, s.topic, name_max);
            detail::check_name({"saga step", "undo topic", i}, s.undo_topic, name_max);
            if (s.timeout == duration::zero()) {
                detail::refuse({"saga step", "timeout", i}, "is 0, a command needs one");
            }
        }
    }
}

namespace detail {

template <class F, class Context>
concept action_of = std::invocable<F&, const Context&, step_call&> || std::invocable<F&, const Context&> ||
    std::invocable<F&, step_call&> || std::invocable<F&>;

template <class F, class Context>
concept condition_of = std::predicate<F&, const Context&, const step_results&> || std::predicate<F&, const Context&> ||
    std::predicate<F&, const step_results&>;

/// Calls a condition in whatever form it was given.
template <class Context, class F>
[[nodiscard]] step_condition make_condition(F&& given) {
    static_assert(condition_of<std::decay_t<F>, Context>,
                  "vouch: a condition takes `const Context&`, then `const step_results&`, and returns a bool; either "
                  "argument may be left out");
    return [f = std::forward<F>(given)](const delivery& d, const step_results& results) mutable -> bool {
        if constexpr (std::predicate<decltype(f)&, const step_results&>) {
            return f(results);
        } else if constexpr (std::predicate<decltype(f)&, const Context&>) {
            return f(d.as<Context>());
        } else {
            return f(d.as<Context>(), results);
        }
    };
}

template <class Context, class F>
[[nodiscard]] decltype(auto) act(F& f, step_call& call) {
    if constexpr (std::invocable<F&, step_call&>) {
        return f(call);
    } else if constexpr (std::invocable<F&>) {
        return f();
    } else if constexpr (std::invocable<F&, const Context&>) {
        return f(call.template as<Context>());
    } else {
        return f(call.template as<Context>(), call);
    }
}

/// Calls an action in whatever form it was given, and encodes what it returns.
template <class Context, class F>
[[nodiscard]] step_action make_action(F&& given) {
    static_assert(action_of<std::decay_t<F>, Context>,
                  "vouch: an action takes `const Context&`, then `step_call&`; either may be left out");
    return [f = std::forward<F>(given)](step_call& call) mutable -> std::string {
        using returned = std::remove_cvref_t<decltype(act<Context>(f, call))>;
        if constexpr (std::is_void_v<returned>) {
            act<Context>(f, call);
            return {};
        } else if constexpr (std::convertible_to<returned, std::string_view>) {
            return std::string(std::string_view(act<Context>(f, call)));
        } else {
            static_assert(encodable<returned>, "vouch: an action returns nothing, a string, or a value with a codec");
            return encode(act<Context>(f, call));
        }
    };
}

} // namespace detail

/// `Context` is what the saga's payload decodes to.
template <decodable Context>
class saga_builder {
  public:
    saga_builder(std::string name, saga_options options) {
        made_.name = std::move(name);
        made_.options = std::move(options);
        made_.check = [](const delivery& d) { static_cast<void>(d.as<Context>()); };
    }

    /// A step in this process.
    template <class Forward>
    saga_builder& step(std::string name, Forward&& forward, step_options how = {}) {
        made_.steps.push_back({.name = std::move(name),
                               .forward = detail::make_action<Context>(std::forward<Forward>(forward)),
                               .retry = std::move(how.retry),
                               .timeout = how.timeout});
        return *this;
    }
    template <class Forward, class Undo>
    requires detail::action_of<std::decay_t<Undo>, Context> saga_builder& step(std::string name, Forward&& forward,
                                                                               Undo&& undo, step_options how = {}) {
        step(std::move(name), std::forward<Forward>(forward), std::move(how));
        made_.steps.back().undo = detail::make_action<Context>(std::forward<Undo>(undo));
        return *this;
    }

    /// A step at a participant. The forward command carries the saga's payload, the compensating one a `compensation`:
    /// that payload and the forward command's reply. Both together fit into a payload, or the saga turns round.
    saga_builder& command(std::string name, command_options how) {
        return command(std::move(name), std::move(how), [](step_call& call) { return call.payload(); });
    }
    /// The same, with payloads made by these.
    template <class Forward>
    saga_builder& command(std::string name, command_options how, Forward&& payload) {
        const bool can_undo = !how.undo.empty();
        command(std::move(name), std::move(how), std::forward<Forward>(payload), [](step_call& call) {
            return compensation{call.payload(),
                                call.is_known() ? std::optional(std::string(call.result())) : std::nullopt};
        });
        made_.steps.back().carries_compensation = can_undo;
        return *this;
    }
    template <class Forward, class Undo>
    saga_builder& command(std::string name, command_options how, Forward&& payload, Undo&& undo_payload) {
        if (how.queue.empty()) {
            detail::refuse({"saga step", "queue", made_.steps.size()}, "is empty");
        }
        const bool can_undo = !how.undo.empty();
        made_.steps.push_back({.name = std::move(name),
                               .forward = detail::make_action<Context>(std::forward<Forward>(payload)),
                               .queue = std::move(how.queue),
                               .topic = std::move(how.topic),
                               .undo_topic = std::move(how.undo),
                               .retry = std::move(how.retry),
                               .timeout = how.timeout});
        if (can_undo) {
            made_.steps.back().undo = detail::make_action<Context>(std::forward<Undo>(undo_payload));
        }
        return *this;
    }

    /// The step just added is done only if this says so, else it is skipped: a pure function of the context and of the
    /// results of the steps before, as `step_condition` describes.
    template <class Condition>
    saga_builder& when(Condition&& condition) {
        last("when").condition = detail::make_condition<Context>(std::forward<Condition>(condition));
        return *this;
    }
    /// The step just added is done exactly if the one before it was skipped: of the two, one is chosen.
    saga_builder& otherwise() {
        auto& step = last("otherwise");
        step.is_otherwise = true;
        const auto before = made_.steps.size() > 1 ? made_.steps[made_.steps.size() - 2].name : std::string{};
        step.condition = [before](const delivery&, const step_results& results) { return results.is_skipped(before); };
        return *this;
    }

    /// Throws `invalid_argument` for a definition that cannot be run.
    [[nodiscard]] saga_definition build() const {
        validate(made_);
        return made_;
    }

  private:
    [[nodiscard]] saga_step& last(const char* wanted_by) {
        if (made_.steps.empty()) {
            detail::refuse({"saga step", wanted_by, 0}, "comes before any step");
        }
        if (made_.steps.back().condition) {
            detail::refuse({"saga step", wanted_by, made_.steps.size() - 1}, "is a second condition");
        }
        return made_.steps.back();
    }

    saga_definition made_;
};

template <decodable Context>
[[nodiscard]] saga_builder<Context> define_saga(std::string name, saga_options options = {}) {
    return {std::move(name), std::move(options)};
}

} // namespace v0
} // namespace vouch
