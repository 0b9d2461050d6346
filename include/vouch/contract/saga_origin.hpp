// SPDX-License-Identifier: MIT
// The identity of a saga: the id of its first entry. Keys, commands and requests to cancel are derived from it, so it
// must not change when a dead saga is resumed under another entry.
#pragma once

#include <string_view>

#include <vouch/contract/entry.hpp>
#include <vouch/contract/id.hpp>

namespace vouch {
inline namespace v0 {

/// The idempotency key of a step's action, or of its compensation. It is the same for every attempt, for every command
/// that is sent again, and after a resume. `saga` is the saga's first entry.
[[nodiscard]] constexpr id saga_key(const id& saga, std::string_view step, bool is_compensation) noexcept {
    return derive(derive(saga, step), is_compensation ? "undo" : "forward");
}

/// The first entry of the saga that `e` continues, for a saga whose progress names no origin yet because it has not
/// reached a checkpoint. A resume copies the progress, so predecessors with the same progress belong to the same saga.
template <class Reader>
[[nodiscard]] id first_entry_of(const Reader& from, const entry& e) {
    auto first = e.id;
    auto before = e.predecessor;
    while (!before.is_nil()) {
        const auto found = from.find(before);
        if (found && found->progress != e.progress) {
            break;
        }
        first = before;
        before = found ? found->predecessor : id{};
    }
    return first;
}

} // namespace v0
} // namespace vouch
