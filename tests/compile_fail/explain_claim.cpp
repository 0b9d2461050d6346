// SPDX-License-Identifier: MIT
// expect: vouch: a writer needs `std::vector<entry> claim(const claim_request&)`
#include "whole.hpp"

struct lacking : whole::transaction {
    void claim() = delete;
};
static_assert(vouch::explain_store<whole::store_of<lacking>>());
