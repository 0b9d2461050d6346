// SPDX-License-Identifier: MIT
// Starts a dead saga again from its first step. Usually `resume` is what is wanted: it continues a dead saga under the
// keys that its participants know, and repeats nothing.
#pragma once

#include <optional>

#include <vouch/contract/explain.hpp>
#include <vouch/contract/requeue.hpp>
#include <vouch/contract/verdict.hpp>
#include <vouch/saga/progress.hpp>

namespace vouch {
inline namespace v0 {

/// Gives a dead saga a successor that is another saga with the same payload: it starts at the first step, under keys of
/// its own, and repeats what the dead one has done and not undone. `resume` is usually what is wanted. Returns
/// inserted; duplicate of the successor it already has; or refused, if the entry is absent, not dead, not a saga, or
/// its progress cannot be read.
template <class Writer>
[[nodiscard]] receipt requeue_saga(Writer& tx, const requeue_request& r) {
    static_assert(explain_writer<Writer>());
    const auto found = tx.find(r.dead);
    const auto progress = found ? decode_progress(found->progress) : std::nullopt;
    if (!progress) {
        return {};
    }
    return detail::replace_dead(tx, found, r,
                                encode_progress({.definition = progress->definition,
                                                 .version = progress->version,
                                                 .origin = r.successor,
                                                 .owner = r.successor}));
}

} // namespace v0
} // namespace vouch
