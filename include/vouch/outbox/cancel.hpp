// SPDX-License-Identifier: MIT
// Cancelling a saga. A saga is never killed with work done: cancelling it is a request, stored as a mark whose id is
// derived from the saga's, together with a nudge so that the saga sees it soon. The saga then undoes what it has done
// and ends compensated.
//
// Marks are entries of the queue `saga_marks_queue`, which no worker serves, so a purge of the saga's queue cannot
// remove a mark before the saga has seen it. One small entry stays per request: purge that queue by age, with a limit
// longer than any saga takes.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include <vouch/contract/draft.hpp>
#include <vouch/contract/error.hpp>
#include <vouch/contract/explain.hpp>
#include <vouch/contract/id.hpp>
#include <vouch/contract/is_saga.hpp>
#include <vouch/contract/saga_origin.hpp>
#include <vouch/contract/state.hpp>
#include <vouch/contract/time.hpp>
#include <vouch/contract/verdict.hpp>

namespace vouch {
inline namespace v0 {

inline constexpr std::string_view saga_marks_queue = "saga.marks";

/// The id of the mark that asks a saga to compensate. `origin` is the saga's first entry, so a resume keeps the request.
[[nodiscard]] constexpr id cancel_mark_of(const id& origin) noexcept { return derive(origin, "saga.cancel"); }

/// Asks a saga to undo what it has done, within the caller's transaction. Returns applied, or repeated if the saga was
/// due anyway or had been asked before: it sees the mark before it completes. A saga that is already being undone is
/// undone as before. Returns stale if the saga has ended, and unknown if there is no such entry or it is not a saga
/// (`is_saga`); then nothing is written. Throws `unsupported` if this version cannot read the saga's progress.
template <class Writer>
[[nodiscard]] verdict request_cancel(Writer& tx, const id& saga, time_point now) {
    static_assert(explain_writer<Writer>());
    const auto found = tx.find(saga);
    if (!found || !is_saga(*found)) {
        return verdict::unknown;
    }
    if (is_terminal(found->state)) {
        return verdict::stale;
    }
    const auto stored = saga_origin(found->progress);
    if (!stored) {
        throw error(error_kind::unsupported, "saga: this version cannot read the progress of " + to_string(saga) +
                                                 "; use the version that wrote it");
    }
    const auto answer = tx.nudge(saga, now);
    if (answer == verdict::applied || answer == verdict::repeated) {
        const auto origin = stored->is_nil() ? first_entry_of(tx, *found) : *stored;
        const std::array mark{draft{.id = cancel_mark_of(origin),
                                    .queue = std::string(saga_marks_queue),
                                    .topic = "saga.cancel",
                                    .result = std::string{}}};
        tx.enqueue(mark, now);
    }
    return answer;
}

} // namespace v0
} // namespace vouch
