// SPDX-License-Identifier: MIT
// A saga of three steps in this process, for tests of the engine.
#pragma once

#include <cstddef>
#include <string>
#include <utility>

#include <vouch/saga.hpp>

#include "saga_support.hpp"

namespace saga_support {

/// Three steps; the caller gives one of them.
template <class Forward>
vouch::saga_definition three(stage& on, std::size_t which, Forward&& forward, vouch::step_options how = {},
                             vouch::saga_options options = {}) {
    auto d = define(std::move(options));
    for (std::size_t i = 1; i <= 3; ++i) {
        const auto n = std::to_string(i);
        if (i == which) {
            d.step("s" + n, forward, on.does("undo " + n), how);
        } else {
            d.step("s" + n, on.does("do " + n, "r" + n), on.does("undo " + n));
        }
    }
    return d.build();
}

} // namespace saga_support
