// SPDX-License-Identifier: MIT
// A fixture of the memory store. With FORGETFUL set in the environment, its next_due always returns none.
#pragma once

#include <cstdlib>
#include <map>
#include <optional>
#include <string_view>

#include <vouch/conformance/location.hpp>
#include <vouch/memory.hpp>

namespace maybe_forgetful {

struct store : vouch::memory::store {
    using vouch::memory::store::store;

    [[nodiscard]] std::optional<vouch::time_point> next_due(std::string_view queue) const {
        const auto due = vouch::memory::store::next_due(queue);
        return std::getenv("FORGETFUL") == nullptr ? due : std::nullopt;
    }
};

struct fixture {
    store open(const vouch::conformance::location& p) { return stores[p]; }

    std::map<vouch::conformance::location, store> stores{};
};

} // namespace maybe_forgetful
