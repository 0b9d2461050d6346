// SPDX-License-Identifier: MIT
// expect: vouch: a writer needs `std::vector<verdict> extend(std::span<const ticket>, time_point now, duration lease)`
#include "whole.hpp"

struct lacking : whole::transaction {
    void extend() = delete;
};
static_assert(vouch::explain_store<whole::store_of<lacking>>());
