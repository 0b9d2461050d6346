// SPDX-License-Identifier: MIT
// expect: vouch: a writer needs `std::vector<receipt> enqueue(std::span<const draft>, time_point now)`
#include "whole.hpp"

struct lacking : whole::transaction {
    void enqueue() = delete;
};
static_assert(vouch::explain_store<whole::store_of<lacking>>());
