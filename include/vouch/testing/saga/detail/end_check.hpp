// SPDX-License-Identifier: MIT
// Checks a saga that has ended: what the store says about it must agree with the effects that remain.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <vouch/contract/entry.hpp>
#include <vouch/contract/query.hpp>
#include <vouch/memory.hpp>
#include <vouch/saga/definition.hpp>
#include <vouch/saga/inspect.hpp>
#include <vouch/saga/progress.hpp>
#include <vouch/testing/saga/detail/step_effects.hpp>
#include <vouch/testing/saga/detail/violation.hpp>

namespace vouch {
inline namespace v0 {
namespace testing {
namespace detail {

enum class saga_end : std::uint8_t { none, completed, compensated, dead };

[[nodiscard]] inline saga_end end_of(const entry& ended) {
    const auto s = inspect(ended);
    return !s                    ? saga_end::none
           : s->is_completed()   ? saga_end::completed
           : s->is_compensated() ? saga_end::compensated
           : s->is_stuck()       ? saga_end::dead
                                 : saga_end::none;
}

/// The queue of the topics a saga emits at its end, if its options name none.
inline constexpr const char* end_topics_queue = "ends";

class end_check {
  public:
    end_check(const saga_definition& of, const step_effects& effects, const memory::store& store,
              first_violation& wrong) noexcept
        : definition_(of), effects_(effects), store_(store), wrong_(wrong) {}

    /// Reports what is wrong with the end of a saga. `was_cancelled`: its cancellation was requested in time.
    void run(const entry& ended, bool was_cancelled) {
        const auto end = end_of(ended);
        const auto status = inspect(ended);
        if (!status || end == saga_end::none) {
            wrong_.report("the ended saga cannot be inspected");
            return;
        }
        if (end == saga_end::completed && was_cancelled) {
            wrong_.report("the saga completed although its cancellation was requested");
        }
        check_emitted(definition_.options.completed, end == saga_end::completed);
        check_emitted(definition_.options.compensated, end == saga_end::compensated);
        for (std::size_t i = 0; i < definition_.steps.size(); ++i) {
            check_step(i, end, *status);
        }
        if (end == saga_end::dead && status->direction != saga_direction::back) {
            wrong_.report("the saga is dead and has not begun to compensate");
        }
    }

  private:
    void check_emitted(const std::string& topic, bool is_expected) {
        if (topic.empty()) {
            return;
        }
        auto q = query::all(definition_.options.queue.empty() ? end_topics_queue : definition_.options.queue);
        q.topic = topic;
        if (store_.list(q).size() != (is_expected ? 1U : 0U)) {
            wrong_.report("topic " + topic + (is_expected ? " was not emitted exactly once" : " was emitted"));
        }
    }

    void check_step(std::size_t i, saga_end end, const saga_status& status) {
        const auto& s = effects_.steps()[i];
        const auto& name = definition_.steps[i].name;
        if (end == saga_end::completed && (s.has_effect == s.is_skipped || s.was_undone)) {
            wrong_.report("the saga completed, and step " + name + " is not in effect");
        }
        if (i < status.steps.size() && status.steps[i].state == step_state::skipped && !s.is_skipped) {
            wrong_.report("step " + name + " is recorded as skipped although its condition is true");
        }
        const bool is_past = end == saga_end::compensated || (end == saga_end::dead && i > status.at);
        if (is_past && s.has_effect && definition_.steps[i].has_undo()) {
            wrong_.report("step " + name + " is still in effect");
        }
    }

    const saga_definition& definition_;
    const step_effects& effects_;
    const memory::store& store_;
    first_violation& wrong_;
};

} // namespace detail
} // namespace testing
} // namespace v0
} // namespace vouch
