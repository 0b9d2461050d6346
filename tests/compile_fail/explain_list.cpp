// SPDX-License-Identifier: MIT
// expect: vouch: a reader needs `std::vector<entry> list(const query&) const`
#include "whole.hpp"

struct lacking : whole::store {
    void list() const = delete;
};
static_assert(vouch::explain_store<lacking>());
