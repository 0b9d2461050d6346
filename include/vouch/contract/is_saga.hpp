// SPDX-License-Identifier: MIT
// How a saga's entry is told from any other, for those who must treat it differently without knowing more of sagas: a
// saga may have done work that has to be undone, so it is never buried, cancelled or started afresh like another entry.
// A look at the first bytes of the progress; nothing is decoded.
#pragma once

#include <string_view>

#include <vouch/contract/entry.hpp>

namespace vouch {
inline namespace v0 {

/// How the progress of every saga begins; the number of its format follows.
inline constexpr std::string_view saga_progress_mark = "saga";

/// Whether these bytes claim to be the progress of a saga. The format is a control character, so that a handler's own
/// text that begins with the word is not taken for one.
[[nodiscard]] constexpr bool is_saga_progress(std::string_view bytes) noexcept {
    constexpr auto size = saga_progress_mark.size();
    return bytes.size() > size && bytes.substr(0, size) == saga_progress_mark && bytes[size] > '\0' &&
           bytes[size] < ' ';
}

/// Whether an entry is a saga: one that was begun by `saga_definition::begin`, or has passed its first checkpoint.
[[nodiscard]] inline bool is_saga(const entry& e) noexcept { return is_saga_progress(e.progress); }

} // namespace v0
} // namespace vouch
