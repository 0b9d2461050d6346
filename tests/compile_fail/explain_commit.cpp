// SPDX-License-Identifier: MIT
// expect: vouch: a transaction needs `void commit()`
#include "whole.hpp"

struct lacking : whole::transaction {
    void commit() = delete;
};
static_assert(vouch::explain_store<whole::store_of<lacking>>());
