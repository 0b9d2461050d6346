// SPDX-License-Identifier: MIT
// expect: vouch: a store needs `static constexpr int contract_level`
#include "whole.hpp"

struct lacking : whole::store {
    void contract_level() = delete;
};
static_assert(vouch::explain_store<lacking>());
