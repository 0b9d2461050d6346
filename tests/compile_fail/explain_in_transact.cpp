// SPDX-License-Identifier: MIT
// expect: vouch: a writer needs `std::vector<entry> claim(const claim_request&)`
#include "whole.hpp"

// A user who passes such a store to vouch gets the same sentence.
struct lacking : whole::transaction {
    void claim() = delete;
};

void use(whole::store_of<lacking>& store) {
    vouch::transact(store, [](auto&) {});
}
