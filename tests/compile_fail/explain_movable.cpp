// SPDX-License-Identifier: MIT
// expect: vouch: a transaction must be movable
#include "whole.hpp"

struct fixed : whole::transaction {
    fixed() = default;
    fixed(const fixed&) = delete;
};
static_assert(vouch::explain_store<whole::store_of<fixed>>());
