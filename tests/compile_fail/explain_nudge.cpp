// SPDX-License-Identifier: MIT
// expect: vouch: a writer needs `verdict nudge(const id&, time_point now)`
#include "whole.hpp"

struct lacking : whole::transaction {
    void nudge() = delete;
};
static_assert(vouch::explain_store<whole::store_of<lacking>>());
