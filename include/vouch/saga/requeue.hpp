// SPDX-License-Identifier: MIT
// Beginning a dead saga anew. That is not what is usually wanted: `resume` carries a dead saga on, under the keys its
// participants know, and does nothing a second time.
#pragma once

#include <optional>

#include <vouch/contract/explain.hpp>
#include <vouch/contract/id.hpp>
#include <vouch/contract/time.hpp>
#include <vouch/contract/transact.hpp>
#include <vouch/contract/verdict.hpp>
#include <vouch/saga/progress.hpp>

namespace vouch {
inline namespace v0 {

/// Gives a dead saga a successor that is another saga with the same payload: it begins at the first step, under keys of
/// its own, and does again what the dead one has done and not undone. Inserted; duplicate of the successor it already
/// has; or refused, if it is absent, not dead, no saga, or its progress cannot be read.
template <class Writer>
[[nodiscard]] receipt requeue_saga(Writer& tx, const id& dead, const id& fresh, time_point now) {
    static_assert(explain_writer<Writer>());
    const auto found = tx.find(dead);
    const auto progress = found ? decode_progress(found->progress) : std::nullopt;
    if (!progress) {
        return {};
    }
    return detail::replace_dead(
        tx, found, fresh, now,
        encode_progress(
            {.definition = progress->definition, .version = progress->version, .origin = fresh, .owner = fresh}));
}

} // namespace v0
} // namespace vouch
