// SPDX-License-Identifier: MIT
// expect: vouch: a store needs `vouch::capabilities capabilities() const`
#include "whole.hpp"

struct lacking : whole::store {
    void capabilities() const = delete;
};
static_assert(vouch::explain_store<lacking>());
