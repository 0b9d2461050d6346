// SPDX-License-Identifier: MIT
// How to tell a saga from any other entry without knowing sagas: by the first bytes of its progress. Observers count by
// it; the saga engine writes it.
#pragma once

#include <string_view>

namespace vouch {
inline namespace v0 {

namespace detail {

inline constexpr std::string_view saga_mark = "saga";

} // namespace detail

/// Whether these bytes claim to be the progress of a saga: the mark, then the number of a format. That number is a
/// control character, so that a handler's own text that begins with the word is not taken for one.
[[nodiscard]] constexpr bool is_saga_progress(std::string_view bytes) noexcept {
    constexpr auto size = detail::saga_mark.size();
    return bytes.size() > size && bytes.substr(0, size) == detail::saga_mark && bytes[size] > '\0' && bytes[size] < ' ';
}

} // namespace v0
} // namespace vouch
