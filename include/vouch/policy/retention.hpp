// SPDX-License-Identifier: MIT
// How long terminal entries stay. Retention is also the dedup window: once an entry is purged its key is free again.
// Dead entries wait for a person, so both rules say `never` until told otherwise.
#pragma once

#include <optional>

#include <vouch/contract/time.hpp>

namespace vouch {
inline namespace v0 {

class purge_rule {
  public:
    [[nodiscard]] static constexpr purge_rule immediately() noexcept { return purge_rule{duration::zero()}; }
    [[nodiscard]] static constexpr purge_rule never() noexcept { return purge_rule{std::nullopt}; }
    [[nodiscard]] static constexpr purge_rule after(duration age) noexcept { return purge_rule{age}; }

    /// The `before` of a purge at `now`; nothing if there is to be none.
    [[nodiscard]] constexpr std::optional<time_point> before(time_point now) const noexcept {
        if (!age_) {
            return std::nullopt;
        }
        // A purge spares what ended at `before` itself; one tick more lets an entry go when its age is reached.
        return later(later(now, -*age_), duration{1});
    }

  private:
    constexpr explicit purge_rule(std::optional<duration> age) noexcept : age_(age) {}
    std::optional<duration> age_;
};

struct retention {
    purge_rule succeeded = purge_rule::never();
    purge_rule dead = purge_rule::never();
};

} // namespace v0
} // namespace vouch
