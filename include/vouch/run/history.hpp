// SPDX-License-Identifier: MIT
// The history of attempts: one line per settled outcome, retries and releases included, appended inside the settling
// transaction. So an outcome and its line are committed together or not at all. Without a sink it costs nothing.
#pragma once

#include <functional>
#include <variant>

#include <vouch/contract/attempt.hpp>
#include <vouch/contract/entry.hpp>
#include <vouch/contract/outcome.hpp>
#include <vouch/contract/time.hpp>

namespace vouch {
inline namespace v0 {

/// Appends a line through the settling transaction. If it throws, the outcome is kept and settled again later, as with an
/// `audit_sink`.
template <class Transaction>
using history_sink = std::function<void(Transaction&, const attempt_line&)>;

/// The line of an outcome for a claimed entry.
[[nodiscard]] inline attempt_line attempt_line_of(const entry& claimed, const outcome& result, time_point now) {
    using kind = attempt_line::kind;
    constexpr kind kinds[]{kind::succeeded, kind::retrying, kind::dead, kind::released, kind::advanced};
    attempt_line out{.id = claimed.id,
                     .epoch = claimed.epoch,
                     .what = kinds[result.index()],
                     .at = now,
                     .claimed_at = claimed.last_attempt_at.value_or(now),
                     .attempt = claimed.attempts,
                     .worker = claimed.worker};
    if (const auto* const failed = std::get_if<retry>(&result)) {
        out.error = failed->error;
    } else if (const auto* const dead = std::get_if<bury>(&result)) {
        out.error = dead->error;
    }
    return out;
}

} // namespace v0
} // namespace vouch
