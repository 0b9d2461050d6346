// SPDX-License-Identifier: MIT
// expect: vouch: a store needs `transaction begin()`
#include "whole.hpp"

struct lacking : whole::store {
    void begin() = delete;
};
static_assert(vouch::explain_store<lacking>());
