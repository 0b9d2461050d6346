// SPDX-License-Identifier: MIT
// How a dead entry gets another chance: a successor takes its place. The dead entry itself never changes.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <utility>

#include <vouch/contract/draft.hpp>
#include <vouch/contract/entry.hpp>
#include <vouch/contract/explain.hpp>
#include <vouch/contract/id.hpp>
#include <vouch/contract/is_saga.hpp>
#include <vouch/contract/time.hpp>
#include <vouch/contract/verdict.hpp>

namespace vouch {
inline namespace v0 {

struct requeue_request {
    id dead{};      ///< the entry to replace
    id successor{}; ///< the id of its successor: a fresh one
    time_point now{};
};

namespace detail {

/// An entry with a parent is a saga's command. The saga has already acted on its end, so the saga is what can be
/// continued, not the command.
template <class Writer>
receipt replace_dead(Writer& tx, const std::optional<entry>& found, const requeue_request& r, std::string progress) {
    if (!found || found->state != state::dead || !found->parent.is_nil()) {
        return {};
    }
    const std::array drafts{draft{.id = r.successor,
                                  .queue = found->queue,
                                  .topic = found->topic,
                                  .payload = found->payload,
                                  .predecessor = found->id,
                                  .attempts_max = found->attempts_max,
                                  .trail = found->trail,
                                  .headers = found->headers,
                                  .progress = std::move(progress)}};
    return tx.enqueue(drafts, r.now).front();
}

} // namespace detail

/// Gives a dead entry a successor that starts from the beginning: attempts 0, due now, no expiry. Returns inserted;
/// duplicate of the successor it already has; or refused, if the entry is absent, not dead, has a parent, or is a saga:
/// starting a saga again would repeat its work under other keys. `resume` continues a saga.
template <class Writer>
[[nodiscard]] receipt requeue(Writer& tx, const requeue_request& r) {
    static_assert(explain_writer<Writer>());
    const auto found = tx.find(r.dead);
    return found && is_saga(*found) ? receipt{} : detail::replace_dead(tx, found, r, {});
}

/// Gives a dead entry a successor that continues from the last checkpoint. Returns the same as `requeue`, but does not
/// refuse sagas.
template <class Writer>
[[nodiscard]] receipt resume(Writer& tx, const requeue_request& r) {
    static_assert(explain_writer<Writer>());
    const auto found = tx.find(r.dead);
    return detail::replace_dead(tx, found, r, found ? found->progress : std::string{});
}

} // namespace v0
} // namespace vouch
