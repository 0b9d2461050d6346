// SPDX-License-Identifier: MIT
// The status of a saga, read from its entry. The saga's definition is not needed.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <vouch/contract/entry.hpp>
#include <vouch/contract/id.hpp>
#include <vouch/contract/is_saga.hpp>
#include <vouch/contract/state.hpp>
#include <vouch/contract/time.hpp>
#include <vouch/saga/progress.hpp>

namespace vouch {
inline namespace v0 {

struct saga_status {
    vouch::id id{};
    vouch::id origin{}; ///< the saga's first entry, before any resume; nil before the first checkpoint
    std::string definition{};
    std::uint32_t version = 0;
    vouch::state state = vouch::state::pending; ///< of the entry
    saga_direction direction = saga_direction::forward;
    std::size_t at = 0;                      ///< index of the current step
    std::vector<step_record> steps{};        ///< the steps that have begun, with their results
    std::string reason{};                    ///< why the saga compensates; empty on the way forward
    std::string last_error{};                ///< of the entry; says why a dead saga is stuck
    std::uint32_t attempts = 0;              ///< of the current step, since the last checkpoint
    std::uint32_t tries = 0;                 ///< failed attempts of the current compensation before the last checkpoint
    vouch::id waits_for{};                   ///< the command whose reply the saga waits for; nil: none
    std::optional<time_point> waits_until{}; ///< that command's timeout
    std::string waits_in{}; ///< that command's queue, topic and state; only set by `inspect(reader, id)`

    [[nodiscard]] bool is_completed() const noexcept {
        return state == vouch::state::succeeded && direction == saga_direction::forward;
    }
    [[nodiscard]] bool is_compensated() const noexcept {
        return state == vouch::state::succeeded && direction == saga_direction::back;
    }
    /// Dead: an operator must remove the cause and `resume` it.
    [[nodiscard]] bool is_stuck() const noexcept { return state == vouch::state::dead; }
    /// The current step's name; empty if all steps are done or the saga has not begun.
    [[nodiscard]] std::string_view step() const noexcept {
        return at < steps.size() ? std::string_view(steps[at].name) : std::string_view{};
    }
};

/// The status of a saga; nothing if the entry is not a saga or its progress cannot be read.
[[nodiscard]] inline std::optional<saga_status> inspect(const entry& e) {
    // A saga that has succeeded keeps its final progress as its result.
    const bool has_succeeded = e.state == state::succeeded && e.result && is_saga_progress(*e.result);
    auto p = is_saga(e) ? decode_progress(has_succeeded ? *e.result : e.progress) : std::nullopt;
    if (!p) {
        return std::nullopt;
    }
    return saga_status{.id = e.id,
                       .origin = p->origin,
                       .definition = std::move(p->definition),
                       .version = p->version,
                       .state = e.state,
                       .direction = p->direction,
                       .at = p->at,
                       .steps = std::move(p->steps),
                       .reason = std::move(p->reason),
                       .last_error = e.last_error,
                       .attempts = e.attempts,
                       .tries = p->tries,
                       .waits_for = p->command,
                       .waits_until = p->deadline};
}

/// The same by id, including the state of the command the saga waits for. `Reader` is a store or a transaction.
template <class Reader>
[[nodiscard]] std::optional<saga_status> inspect(const Reader& from, const id& saga) {
    const auto found = from.find(saga);
    auto status = found ? inspect(*found) : std::nullopt;
    if (status && !status->waits_for.is_nil()) {
        const auto command = from.find(status->waits_for);
        status->waits_in = command ? command->queue + ' ' + command->topic + ' ' + std::string(name_of(command->state))
                                   : std::string("gone");
    }
    return status;
}

/// The status as one line, without payloads and results. Times are in milliseconds since `start`.
[[nodiscard]] inline std::string to_string(const saga_status& s, time_point start = {}) {
    auto out = s.definition + " v" + std::to_string(s.version) + ' ';
    if (s.is_completed() || s.is_compensated()) {
        out += s.is_completed() ? "completed" : "compensated";
    } else {
        out += s.is_stuck() ? "dead, " : "";
        out += std::string(name_of(s.direction)) + " at ";
        out += s.step().empty() ? std::string("the end") : std::string(s.step());
    }
    if (!s.reason.empty()) {
        out += " because " + s.reason;
    }
    out += " [";
    for (std::size_t i = 0; i < s.steps.size(); ++i) {
        out += (i == 0 ? "" : ", ") + s.steps[i].name + ' ' + std::string(name_of(s.steps[i].state));
    }
    out += ']';
    if (is_terminal(s.state)) {
        return s.is_stuck() && !s.last_error.empty() ? out + ", stuck with " + s.last_error : out;
    }
    if (s.attempts + s.tries > 0) {
        out += ", attempt " + std::to_string(s.attempts + s.tries);
    }
    if (!s.waits_for.is_nil()) {
        out += ", waits for " + (s.waits_in.empty() ? to_string(s.waits_for) : s.waits_in);
    }
    if (!s.waits_for.is_nil() && s.waits_until) {
        const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(*s.waits_until - start).count();
        out += " until " + std::to_string(ms) + "ms";
    }
    return out;
}

} // namespace v0
} // namespace vouch
