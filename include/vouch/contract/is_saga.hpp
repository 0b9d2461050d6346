// SPDX-License-Identifier: MIT
// How a saga's entry is told from any other, for those who must treat it differently without knowing more of sagas: a
// saga may have done work that has to be undone, so it is never buried, cancelled or started afresh like another entry.
// A look at the first bytes of the progress; nothing is decoded.
#pragma once

#include <string_view>

#include <vouch/contract/entry.hpp>

namespace vouch {
inline namespace v0 {

/// How the progress of every saga begins, in every format. A handler of its own that checkpoints begins otherwise.
inline constexpr std::string_view saga_progress_mark = "saga";

/// Whether these bytes claim to be the progress of a saga.
[[nodiscard]] constexpr bool is_saga_progress(std::string_view bytes) noexcept {
    return bytes.substr(0, saga_progress_mark.size()) == saga_progress_mark;
}

/// Whether an entry is a saga: one that was begun by `saga_definition::begin`, or has passed its first checkpoint.
[[nodiscard]] inline bool is_saga(const entry& e) noexcept { return is_saga_progress(e.progress); }

} // namespace v0
} // namespace vouch
