// SPDX-License-Identifier: MIT
// expect: vouch: a reader needs `std::optional<time_point> next_due(std::string_view queue) const`
#include "whole.hpp"

struct lacking : whole::store {
    void next_due() const = delete;
};
static_assert(vouch::explain_store<lacking>());
