// SPDX-License-Identifier: MIT
// The fence a claim hands out. Good once the claiming transaction has committed, used up by the settle that lands, and
// worthless from the moment somebody else claims the entry.
#pragma once

#include <cstdint>

#include <vouch/contract/id.hpp>

namespace vouch {
inline namespace v0 {

struct ticket {
    vouch::id id{};
    std::uint64_t epoch = 0;

    [[nodiscard]] friend constexpr auto operator<=>(const ticket&, const ticket&) noexcept = default;
};

} // namespace v0
} // namespace vouch
