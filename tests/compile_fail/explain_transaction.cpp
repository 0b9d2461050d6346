// SPDX-License-Identifier: MIT
// expect: vouch: a store needs a member type `transaction`
#include "whole.hpp"

struct lacking : whole::reader {
    static constexpr int contract_level = 1;
    whole::transaction begin();
    [[nodiscard]] vouch::capabilities capabilities() const;
};
static_assert(vouch::explain_store<lacking>());
