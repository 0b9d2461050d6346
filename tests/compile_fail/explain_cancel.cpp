// SPDX-License-Identifier: MIT
// expect: vouch: a writer needs `verdict cancel(const id&, std::string_view error, time_point now)`
#include "whole.hpp"

struct lacking : whole::transaction {
    void cancel() = delete;
};
static_assert(vouch::explain_store<whole::store_of<lacking>>());
