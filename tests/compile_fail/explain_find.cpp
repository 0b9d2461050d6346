// SPDX-License-Identifier: MIT
// expect: vouch: a reader needs `std::optional<entry> find(const id&) const`
#include "whole.hpp"

struct lacking : whole::store {
    void find() const = delete;
};
static_assert(vouch::explain_store<lacking>());
