// SPDX-License-Identifier: MIT
// expect: vouch: a writer needs `std::size_t purge(const purge_request&)`
#include "whole.hpp"

// The right name with the wrong answer is not there either.
struct lacking : whole::transaction {
    bool purge(const vouch::purge_request&);
};
static_assert(vouch::explain_store<whole::store_of<lacking>>());
