// SPDX-License-Identifier: MIT
// Builds the definition of a saga, step by step:
//
//   const auto order_saga = vouch::define_saga<order>("order", {.completed = "order.confirmed"})
//       .step("payment", charge, refund)                                                   // in this process
//       .step("gift wrap", wrap).when([](const order& o) { return o.is_gift; })            // may be skipped
//       .command("shipping", {.queue = "shipping", .topic = "schedule", .undo = "cancel"}) // at a participant
//       .build();
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include <vouch/contract/validate.hpp>
#include <vouch/outbox/codec.hpp>
#include <vouch/run/delivery.hpp>
#include <vouch/saga/compensation.hpp>
#include <vouch/saga/definition.hpp>
#include <vouch/saga/detail/action.hpp>
#include <vouch/saga/step_call.hpp>
#include <vouch/saga/step_results.hpp>

namespace vouch {
inline namespace v0 {

/// Builds a definition. `Context` is the type of the saga's payload.
///
/// An action is callable with `const Context&` and `step_call&`, in this order; either may be left out. It returns
/// nothing, a string, or a value with a codec.
template <decodable Context>
class saga_builder {
  public:
    /// Use `define_saga`.
    saga_builder(std::string name, saga_options options) {
        made_.name = std::move(name);
        made_.options = std::move(options);
        made_.check = [](const delivery& d) { static_cast<void>(d.as<Context>()); };
    }

    /// Adds a step in this process, without or with a compensation.
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

    /// Adds a step at a participant. The payload of the forward command is the saga's payload; the payload of the
    /// compensating command is a `compensation`: the saga's payload and the forward command's reply. If both together
    /// exceed the store's limit for a payload, the step fails and the saga compensates.
    saga_builder& command(std::string name, command_options how) {
        return command(std::move(name), std::move(how), [](step_call& call) { return call.payload(); });
    }
    /// The same with payloads made by these actions.
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

    /// Makes the last step conditional: it is skipped unless `condition` returns true. The condition is a pure function
    /// of `const Context&` and `const step_results&`, in this order; either may be left out. See `step_condition`.
    template <class Condition>
    saga_builder& when(Condition&& condition) {
        last("when").condition = detail::make_condition<Context>(std::forward<Condition>(condition));
        return *this;
    }
    /// Makes the last step the alternative to the conditional step before it: exactly one of the two runs.
    saga_builder& otherwise() {
        auto& step = last("otherwise");
        step.is_otherwise = true;
        const auto before = made_.steps.size() > 1 ? made_.steps[made_.steps.size() - 2].name : std::string{};
        step.condition = [before](const delivery&, const step_results& results) { return results.is_skipped(before); };
        return *this;
    }

    /// Returns the definition. Throws `invalid_argument` if it cannot run.
    [[nodiscard]] saga_definition build() const {
        validate(made_);
        return made_;
    }

  private:
    [[nodiscard]] saga_step& last(const char* wanted_by) {
        if (made_.steps.empty()) {
            detail::refuse({"saga step", wanted_by, 0}, "has no step before it");
        }
        if (made_.steps.back().condition) {
            detail::refuse({"saga step", wanted_by, made_.steps.size() - 1}, "is a second condition");
        }
        return made_.steps.back();
    }

    saga_definition made_;
};

/// Begins a definition. Entries of the saga have `name` as their topic.
template <decodable Context>
[[nodiscard]] saga_builder<Context> define_saga(std::string name, saga_options options = {}) {
    return {std::move(name), std::move(options)};
}

} // namespace v0
} // namespace vouch
