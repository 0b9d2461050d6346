// SPDX-License-Identifier: MIT
// expect: vouch: a writer needs `std::size_t purge(const purge_request&)`
#include "whole.hpp"

struct lacking : whole::transaction {
    void purge() = delete;
};
static_assert(vouch::explain_store<whole::store_of<lacking>>());
