// SPDX-License-Identifier: MIT
// Proof of one claim, also called a fencing token. A ticket is valid once the claiming transaction has committed. The
// settle that is applied uses it up. It becomes stale when another claim takes over or the entry is cancelled.
#pragma once

#include <cstdint>
#include <string>

#include <vouch/contract/id.hpp>
#include <vouch/contract/text_stream.hpp>

namespace vouch {
inline namespace v0 {

/// Names one claim of one entry.
struct ticket {
    vouch::id id{};
    std::uint64_t epoch = 0; ///< the entry's `epoch` after the claim

    [[nodiscard]] friend constexpr auto operator<=>(const ticket&, const ticket&) noexcept = default;
};

/// Writes the id and the epoch: `00000000-0000-0000-0000-000000000001, epoch 2`.
template <text_stream Stream>
Stream& operator<<(Stream& out, const ticket& t) {
    return detail::write_text(out, to_string(t.id) + ", epoch " + std::to_string(t.epoch));
}

} // namespace v0
} // namespace vouch
