// SPDX-License-Identifier: MIT
// expect: vouch: a reader needs `state_counts counts(std::string_view queue) const`
#include "whole.hpp"

// Reading changes nothing, so it must be possible on what is const.
struct lacking : whole::store {
    vouch::state_counts counts(std::string_view queue);
};
static_assert(vouch::explain_store<lacking>());
