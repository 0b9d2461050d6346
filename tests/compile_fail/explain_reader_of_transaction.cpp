// SPDX-License-Identifier: MIT
// expect: vouch: a reader needs `std::optional<entry> find(const id&) const`
#include "whole.hpp"

// A store may read and its transaction not.
struct lacking : whole::transaction {
    void find() const = delete;
};
static_assert(vouch::explain_store<whole::store_of<lacking>>());
