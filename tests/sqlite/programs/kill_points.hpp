// SPDX-License-Identifier: MIT
// The points at which a process can be killed, and the plan of this process. The state here belongs to one child
// process with one thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include <signal.h>

namespace kill_test {

enum class point : std::uint8_t {
    in_enqueue,
    after_enqueue,
    in_commit,
    after_commit,
    before_handler,
    in_handler,
    before_settle_commit,
    in_purge,
    in_migration,
    any_moment, ///< the parent kills the child
};

inline constexpr std::array all_points{
    point::in_enqueue, point::after_enqueue,        point::in_commit, point::after_commit, point::before_handler,
    point::in_handler, point::before_settle_commit, point::in_purge,  point::in_migration, point::any_moment,
};

[[nodiscard]] constexpr std::string_view name_of(point p) noexcept {
    switch (p) {
    case point::in_enqueue: return "in enqueue";
    case point::after_enqueue: return "after enqueue, before COMMIT";
    case point::in_commit: return "in COMMIT";
    case point::after_commit: return "after COMMIT, before it is logged";
    case point::before_handler: return "between claim and handle";
    case point::in_handler: return "in the handler";
    case point::before_settle_commit: return "between settle and COMMIT";
    case point::in_purge: return "in purge";
    case point::in_migration: return "in migration";
    case point::any_moment: return "at a random moment";
    }
    return "?";
}

/// The process dies when it reaches `where` after having passed it `passes` times. Without `where`: never.
struct kill_plan {
    std::optional<point> where{};
    std::uint64_t passes = 0;
};

inline kill_plan own_plan{};

[[noreturn]] inline void die() noexcept {
    for (;;) {
        raise(SIGKILL);
    }
}

/// Whether the process must die here. Call it once per pass.
[[nodiscard]] inline bool is_due(point p) noexcept { return own_plan.where == p && own_plan.passes-- == 0; }

inline void reach(point p) noexcept {
    if (is_due(p)) {
        die();
    }
}

} // namespace kill_test
