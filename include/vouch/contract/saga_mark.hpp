// SPDX-License-Identifier: MIT
// How to tell that an entry is a saga which has begun: its progress starts with this mark. The runner and the observers
// need no more of sagas than that.
#pragma once

#include <string_view>

namespace vouch {
inline namespace v0 {

inline constexpr std::string_view saga_mark = "saga"; ///< a byte for the format follows, no text

/// Whether these bytes claim to be the progress of a saga.
[[nodiscard]] constexpr bool is_saga_progress(std::string_view bytes) noexcept {
    return bytes.size() > saga_mark.size() && bytes.substr(0, saga_mark.size()) == saga_mark &&
           bytes[saga_mark.size()] > '\0' && bytes[saga_mark.size()] < ' ';
}

} // namespace v0
} // namespace vouch
