// SPDX-License-Identifier: MIT
// Whether a saga that has ended, has ended as it should: the world is asked what is in effect, the store what was said.
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

namespace vouch {
inline namespace v0 {
namespace testing {

enum class saga_end : std::uint8_t { none, completed, compensated, dead };

[[nodiscard]] inline saga_end end_of(const entry& ended) {
    const auto s = inspect(ended);
    return !s                    ? saga_end::none
           : s->is_completed()   ? saga_end::completed
           : s->is_compensated() ? saga_end::compensated
           : s->is_stuck()       ? saga_end::dead
                                 : saga_end::none;
}

inline void judge_emitted(saga_world& world, const memory::store& work, const saga_options& options,
                          const std::string& topic, bool wanted) {
    if (!topic.empty()) {
        auto q = query::all(options.queue.empty() ? "ends" : options.queue);
        q.topic = topic;
        if (work.list(q).size() != (wanted ? 1U : 0U)) {
            world.complain("topic " + topic + (wanted ? " was not emitted once" : " was emitted"));
        }
    }
}

/// Makes the world complain about what is not as it should be.
inline void judge(saga_world& world, const saga_definition& shape, const memory::store& work, const entry& ended,
                  bool must_turn_round) {
    const auto end = end_of(ended);
    const auto status = inspect(ended);
    if (!status || end == saga_end::none) {
        world.complain("it cannot be inspected");
        return;
    }
    if (end == saga_end::completed && must_turn_round) {
        world.complain("it has completed though it was asked to turn round");
    }
    judge_emitted(world, work, shape.options, shape.options.completed, end == saga_end::completed);
    judge_emitted(world, work, shape.options, shape.options.compensated, end == saga_end::compensated);
    for (std::size_t i = 0; i < shape.steps.size(); ++i) {
        const auto& s = world.steps()[i];
        const auto& name = shape.steps[i].name;
        if (end == saga_end::completed && (s.has_effect == s.is_skipped || s.was_undone)) {
            world.complain("it has completed, and step " + name + " is not in effect");
        }
        if (i < status->steps.size() && (status->steps[i].state == step_state::skipped) > s.is_skipped) {
            world.complain("step " + name + " is on record as skipped, and is not");
        }
        const bool is_past = end == saga_end::compensated || (end == saga_end::dead && i > status->at);
        if (is_past && s.has_effect && shape.steps[i].has_undo()) {
            world.complain("step " + name + " is still in effect");
        }
    }
    if (end == saga_end::dead && status->direction != saga_direction::back) {
        world.complain("it is dead with work done, and nobody has tried to undo it");
    }
}

} // namespace testing
} // namespace v0
} // namespace vouch
