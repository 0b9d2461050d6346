// SPDX-License-Identifier: MIT
// expect: vouch: a reader needs `state_counts counts(std::string_view queue) const`
#include "whole.hpp"

struct lacking : whole::store {
    void counts() const = delete;
};
static_assert(vouch::explain_store<lacking>());
