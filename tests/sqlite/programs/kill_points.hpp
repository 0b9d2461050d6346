// SPDX-License-Identifier: MIT
// The places at which a process dies, and the appointment it has with one of them. Everything here is the state of one
// child process, which has one thread.
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
    any_moment, ///< nothing the child knows of: the parent kills it
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
    case point::after_commit: return "after COMMIT, before anybody knows";
    case point::before_handler: return "between claim and handle";
    case point::in_handler: return "in the handler";
    case point::before_settle_commit: return "between settle and COMMIT";
    case point::in_purge: return "in purge";
    case point::in_migration: return "in migration";
    case point::any_moment: return "at a random moment";
    }
    return "?";
}

/// Dies when it comes to `where` and has been there `passes` times before. Without `where`: never.
struct appointment {
    std::optional<point> where{};
    std::uint64_t passes = 0;
};

inline appointment mine{};

[[noreturn]] inline void die() noexcept {
    for (;;) {
        raise(SIGKILL);
    }
}

/// Whether this is the place and the time; asked once per pass.
[[nodiscard]] inline bool is_due(point p) noexcept { return mine.where == p && mine.passes-- == 0; }

inline void reach(point p) noexcept {
    if (is_due(p)) {
        die();
    }
}

} // namespace kill_test
