// SPDX-License-Identifier: MIT
// How long terminal entries are kept. Retention is also the dedup window: when an entry is purged, its key is free
// again. The default is to keep everything.
#pragma once

#include <optional>

#include <vouch/contract/time.hpp>

namespace vouch {
inline namespace v0 {

/// When an entry is old enough to be purged. Its age counts from its end.
class purge_rule {
  public:
    [[nodiscard]] static constexpr purge_rule immediately() noexcept { return purge_rule{duration::zero()}; }
    [[nodiscard]] static constexpr purge_rule never() noexcept { return purge_rule{std::nullopt}; }
    [[nodiscard]] static constexpr purge_rule after(duration age) noexcept { return purge_rule{age}; }

    /// The `purge_request::before` of a purge at `now`; nothing if the rule is `never`.
    [[nodiscard]] constexpr std::optional<time_point> before(time_point now) const noexcept {
        if (!age_) {
            return std::nullopt;
        }
        // A purge keeps an entry that ended exactly at `before`; one tick more removes it when it reaches its age.
        return later(later(now, -*age_), duration{1});
    }

  private:
    constexpr explicit purge_rule(std::optional<duration> age) noexcept : age_(age) {}
    std::optional<duration> age_;
};

/// Rules for the two terminal states.
struct retention {
    purge_rule succeeded = purge_rule::never();
    purge_rule dead = purge_rule::never();
};

} // namespace v0
} // namespace vouch
