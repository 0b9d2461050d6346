// SPDX-License-Identifier: MIT
// Asking a saga to turn round. A saga is never just killed: cancelling it is a request, a mark with an id derived from
// the saga's, and a nudge so that it is seen soon. The saga then undoes what it has done and ends compensated.
//
// Marks are entries of a queue of their own, which nobody works on: a purge of the saga's queue does not take them away
// before they are seen. One small entry stays per request; purge that queue by age, longer than a saga may take.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include <vouch/contract/draft.hpp>
#include <vouch/contract/error.hpp>
#include <vouch/contract/explain.hpp>
#include <vouch/contract/id.hpp>
#include <vouch/contract/is_saga.hpp>
#include <vouch/contract/state.hpp>
#include <vouch/contract/time.hpp>
#include <vouch/contract/verdict.hpp>
#include <vouch/saga/origin.hpp>
#include <vouch/saga/progress.hpp>

namespace vouch {
inline namespace v0 {

inline constexpr std::string_view saga_marks_queue = "saga.marks";

/// The id of the mark that asks a saga to turn round. `origin` is its first entry, so that a resume does not lose it.
[[nodiscard]] constexpr id cancel_mark_of(const id& origin) noexcept { return derive(origin, "saga.cancel"); }

/// Requests that the saga be turned round, within the caller's transaction. Applied, or repeated if it was due anyway
/// or had been asked before: the mark is seen before the saga completes; one that is being undone goes on being undone.
/// Stale: it has ended; unknown: there is no such entry, or it is no saga (`is_saga`); then nothing is written. Throws
/// `unsupported` if it is a saga whose progress this version cannot read.
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
    const auto progress = decode_progress(found->progress);
    if (!progress) {
        throw error(error_kind::unsupported,
                    "saga: the progress of " + to_string(saga) + " cannot be read; use the version that wrote it");
    }
    const auto answer = tx.nudge(saga, now);
    if (answer == verdict::applied || answer == verdict::repeated) {
        const auto origin = progress->origin.is_nil() ? first_entry_of(tx, *found) : progress->origin;
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
