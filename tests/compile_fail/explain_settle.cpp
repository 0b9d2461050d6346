// SPDX-License-Identifier: MIT
// expect: vouch: a writer needs `std::vector<settlement> settle(std::span<const settle>, time_point now)`
#include "whole.hpp"

struct lacking : whole::transaction {
    void settle() = delete;
};
static_assert(vouch::explain_store<whole::store_of<lacking>>());
